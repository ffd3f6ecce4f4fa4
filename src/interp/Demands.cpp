#include "interp/Demands.h"

#include "hloc/hlo/SolverCall.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <algorithm>

namespace hloc::interp {

namespace {

/// The parameter leaves whose elements a value is made of, by moving them or by small corrections.
using Origins = llvm::SmallVector<unsigned, 1>;
/// Origins of each leaf of a value.
using LeafOrigins = llvm::SmallVector<Origins, 1>;

class Tracer {
public:
  explicit Tracer(std::vector<Demand> &demands) : demands(demands) {}

  LeafOrigins run(const HloComputation &computation, llvm::ArrayRef<LeafOrigins> arguments) {
    if (depth == maxDepth)
      return LeafOrigins(numLeaves(computation.root()->shape()));
    ++depth;
    auto leave = llvm::scope_exit([&] { --depth; });
    std::vector<LeafOrigins> values(computation.instructions().size());
    for (const HloInstruction *instr : computation.instructions()) {
      if (instr->opcode() == Opcode::Parameter) {
        values[instr->id()] = arguments[size_t(instr->parameterNumber())];
        continue;
      }
      llvm::SmallVector<const LeafOrigins *, 4> operands;
      for (const HloInstruction *operand : instr->operands())
        operands.push_back(&values[operand->id()]);
      note(*instr, operands);
      values[instr->id()] = follow(*instr, operands);
    }
    return values[computation.root()->id()];
  }

private:
  static constexpr unsigned maxDepth = 100;

  static unsigned numLeaves(const Shape &shape) { return unsigned(shape.leaves().size()); }

  /// What the op expects of its operands.
  void note(const HloInstruction &instr, llvm::ArrayRef<const LeafOrigins *> operands) {
    auto each = [&](unsigned operand, auto change) {
      if (operand < operands.size())
        for (const Origins &leaf : *operands[operand])
          for (unsigned origin : leaf)
            change(demands[origin]);
    };
    auto shapeOf = [&](unsigned operand) -> const Shape & { return instr.operand(operand)->shape(); };
    switch (instr.opcode()) {
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice: {
      unsigned first = *firstIndexOperand(instr.opcode());
      for (unsigned i = first; i < operands.size(); ++i)
        each(i, [&](Demand &demand) { demand.bound(std::max<int64_t>(1, shapeOf(0).dim(i - first))); });
      break;
    }
    case Opcode::Gather:
      noteIndices(instr, AttributeKey::StartIndexMap, 1, each);
      break;
    case Opcode::Scatter:
      noteIndices(instr, AttributeKey::ScatterDimsToOperandDims, instr.numOperands() / 2, each);
      break;
    case Opcode::Clamp:
    case Opcode::Maximum:
    case Opcode::Minimum:
      for (unsigned i = 0; i < operands.size(); ++i)
        each(i, [](Demand &demand) { demand.isClamped = true; });
      break;
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
      noteIdentity(instr, each);
      break;
    case Opcode::Conditional:
      if (!isPred(shapeOf(0).elementType()))
        each(0, [&](Demand &demand) {
          demand.bound(int64_t(instr.calledComputations().size()));
          demand.mustLieInside = true;
        });
      break;
    case Opcode::Cholesky:
      each(0, [](Demand &demand) { demand.positiveDefinite = true; });
      break;
    case Opcode::CustomCall:
      noteSolver(instr, each);
      break;
    case Opcode::TriangularSolve:
      each(0, [](Demand &demand) { demand.triangular = true; });
      break;
    case Opcode::BatchNormInference:
      each(4, [](Demand &demand) { demand.nonNegative = true; });
      break;
    case Opcode::BatchNormGrad:
      each(3, [](Demand &demand) { demand.nonNegative = true; });
      break;
    case Opcode::RaggedDot:
      each(2, [&](Demand &demand) {
        demand.sumAtMost = shapeOf(0).dim(unsigned(instr.ints(AttributeKey::LhsRaggedDims)[0]));
      });
      break;
    default:
      break;
    }
  }

  template <typename Each> void noteSolver(const HloInstruction &instr, Each each) {
    std::optional<SolverCall> call = SolverCall::of(instr);
    if (call && call->routine == SolverRoutine::Cholesky)
      each(0, [](Demand &demand) { demand.positiveDefinite = true; });
    if (call && call->routine == SolverRoutine::TriangularSolve)
      each(0, [](Demand &demand) { demand.triangular = true; });
  }

  template <typename Each>
  void noteIndices(const HloInstruction &instr, AttributeKey indexedDims, unsigned operand, Each each) {
    for (int64_t dim : instr.ints(indexedDims))
      each(operand, [&](Demand &demand) {
        demand.bound(std::max<int64_t>(1, instr.operand(0)->shape().dim(unsigned(dim))));
        demand.isScattered |= instr.opcode() == Opcode::Scatter;
        demand.unique |= instr.flag(AttributeKey::UniqueIndices);
        if (instr.opcode() == Opcode::Scatter && instr.flag(AttributeKey::UniqueIndices))
          demand.apart = std::max(demand.apart, windowSize(instr, unsigned(dim)));
        demand.sorted |= instr.flag(AttributeKey::IndicesAreSorted);
      });
    if (std::optional<IndexVectors> vectors = uniqueVectors(instr, indexedDims, operand))
      each(operand, [&](Demand &demand) { demand.vectors = *vectors; });
  }

  static std::optional<IndexVectors> uniqueVectors(const HloInstruction &instr, AttributeKey indexedDims,
                                                   unsigned operand) {
    const Shape &indices = instr.operand(operand)->shape();
    const int64_t dim = instr.intOr(AttributeKey::IndexVectorDim, 0);
    if (!instr.flag(AttributeKey::UniqueIndices) || instr.ints(indexedDims).size() < 2 || dim >= indices.rank())
      return std::nullopt;
    IndexVectors vectors{{indices.dims().begin(), indices.dims().end()}, unsigned(dim), {}};
    for (int64_t to : instr.ints(indexedDims)) {
      const int64_t apart = instr.opcode() == Opcode::Scatter ? windowSize(instr, unsigned(to)) : 1;
      vectors.components.push_back(
          {std::max<int64_t>(1, instr.operand(0)->shape().dim(unsigned(to)) / apart), apart, to});
    }
    return vectors;
  }

  /// Of a scatter's updates along a dimension of its operand.
  static int64_t windowSize(const HloInstruction &scatter, unsigned dim) {
    auto isLeftOut = [&](int64_t i) {
      return llvm::is_contained(scatter.ints(AttributeKey::InsertedWindowDims), i) ||
             llvm::is_contained(scatter.ints(AttributeKey::InputBatchingDims), i);
    };
    if (isLeftOut(dim))
      return 1;
    size_t position = 0;
    for (unsigned i = 0; i < dim; ++i)
      position += !isLeftOut(i);
    llvm::ArrayRef<int64_t> windowDims = scatter.ints(AttributeKey::UpdateWindowDims);
    const Shape &updates = scatter.operand(scatter.numOperands() / 2 + 1)->shape();
    return position < windowDims.size() ? std::max<int64_t>(1, updates.dim(unsigned(windowDims[position]))) : 1;
  }

  template <typename Each> void noteIdentity(const HloInstruction &instr, Each each) {
    const HloInstruction &root = *instr.computation(AttributeKey::ToApply)->root();
    unsigned n = instr.numOperands() / 2;
    if (n == 1 && family(root.opcode()) == OpcodeFamily::Binary)
      each(1, [&](Demand &demand) { demand.identityOf = root.opcode(); });
  }

  /// Where the elements of the result come from.
  LeafOrigins follow(const HloInstruction &instr, llvm::ArrayRef<const LeafOrigins *> operands) {
    auto unionOf = [&](unsigned first) {
      LeafOrigins merged(numLeaves(instr.shape()));
      for (unsigned i = first; i < operands.size(); ++i)
        if (operands[i]->size() == merged.size())
          for (unsigned leaf = 0; leaf < merged.size(); ++leaf)
            for (unsigned origin : (*operands[i])[leaf])
              if (!llvm::is_contained(merged[leaf], origin))
                merged[leaf].push_back(origin);
      return merged;
    };
    switch (instr.opcode()) {
    case Opcode::Tuple: {
      LeafOrigins all;
      for (const LeafOrigins *operand : operands)
        all.append(*operand);
      return all;
    }
    case Opcode::GetTupleElement: {
      unsigned start = 0, index = unsigned(instr.intOr(AttributeKey::Index, 0));
      for (unsigned i = 0; i < index; ++i)
        start += numLeaves(instr.operand(0)->shape().element(i));
      return LeafOrigins(operands[0]->begin() + start, operands[0]->begin() + start + numLeaves(instr.shape()));
    }
    case Opcode::Call:
    case Opcode::Fusion: {
      std::vector<LeafOrigins> arguments;
      for (const LeafOrigins *operand : operands)
        arguments.push_back(*operand);
      return run(*instr.calledComputations()[0], arguments);
    }
    case Opcode::While:
      for (const HloComputation *callee : instr.calledComputations())
        run(*callee, {*operands[0]});
      return *operands[0];
    case Opcode::Conditional: {
      llvm::SmallVector<HloComputation *, 2> branches = instr.calledComputations();
      for (unsigned i = 0; i < branches.size(); ++i)
        run(*branches[i], {*operands[i + 1]});
      return LeafOrigins(numLeaves(instr.shape()));
    }
    case Opcode::Copy:
    case Opcode::Bitcast:
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::Broadcast:
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::Reverse:
    case Opcode::Convert:
    case Opcode::OptimizationBarrier:
      return *operands[0];
    case Opcode::Select: // as in `i < 0 ? i + n : i`
      return unionOf(1);
    case Opcode::Concatenate:
    case Opcode::Add:
    case Opcode::Clamp:
    case Opcode::Maximum:
    case Opcode::Minimum:
      return isFloat(instr.shape().elementType()) ? LeafOrigins(1) : unionOf(0);
    default:
      return LeafOrigins(numLeaves(instr.shape()));
    }
  }

  std::vector<Demand> &demands;
  unsigned depth = 0;
};

} // namespace

std::vector<Demand> demandsOf(const HloModule &module) {
  std::vector<LeafOrigins> arguments;
  unsigned count = 0;
  for (const HloInstruction *parameter : module.entry()->parameters()) {
    LeafOrigins leaves;
    for (size_t i = 0, n = parameter->shape().leaves().size(); i < n; ++i)
      leaves.push_back({count++});
    arguments.push_back(std::move(leaves));
  }
  std::vector<Demand> demands(count);
  Tracer(demands).run(*module.entry(), arguments);
  noteReductions(module, demands);
  return demands;
}

} // namespace hloc::interp
