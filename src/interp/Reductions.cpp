// Which dimensions of the parameters are reduced. Values are followed through everything that keeps the place of an
// element or moves whole dimensions; what becomes of others is not known and not needed: it is about which elements of
// an argument meet in one result, so that some results can be spared a NaN.

#include "Demands.h"
#include "LeafWalk.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::interp {

namespace {

/// A parameter's leaf that an array is made of. `dims[d]`: those of the leaf's dimensions that dimension d runs over.
struct Source {
  unsigned leaf;
  llvm::SmallVector<uint64_t, 4> dims;
  bool isFactor; ///< the elements are the leaf's own but for sign and factors
};
using Sources = llvm::SmallVector<Source, 2>;

void add(Sources &to, const Source &source) {
  constexpr size_t limit = 32; // leaves of large tuples: a few will do
  auto *found = llvm::find_if(to, [&](const Source &other) { return other.leaf == source.leaf; });
  if (found == to.end()) {
    if (to.size() < limit)
      to.push_back(source);
    return;
  }
  for (auto [mine, theirs] : llvm::zip(found->dims, source.dims))
    mine |= theirs;
  found->isFactor &= source.isFactor;
}

class DimTracer : public LeafWalk<DimTracer, Sources> {
public:
  explicit DimTracer(std::vector<Demand> &demands) : demands(demands) {}

private:
  friend LeafWalk;

  Leaves follow(const HloInstruction &instr, Operands operands) {
    using enum Opcode;
    const Opcode opcode = instr.opcode();
    if (opcode == Copy || opcode == OptimizationBarrier)
      return *operands[0];
    if (llvm::is_contained({Broadcast, Transpose, Reshape, Bitcast}, opcode))
      return {moved(instr, (*operands[0])[0])};
    if (opcode == Reduce || opcode == ReduceWindow)
      return reduced(instr, operands);
    if (opcode == Dot)
      return {contracted(instr, (*operands[0])[0], (*operands[1])[0])};
    if (!llvm::is_contained({Convolution, Sort, Scan, Fft}, opcode))
      return {merged(instr, operands)};
    for (const Leaves *operand : operands)
      for (const Sources &leaf : *operand)
        for (const Source &source : leaf)
          note(source, ~uint64_t(0));
    return {};
  }

  /// Elements stay where they are, or move within their dimensions.
  Sources merged(const HloInstruction &instr, Operands operands) {
    bool keepsFactors = instr.opcode() == Opcode::Multiply || instr.opcode() == Opcode::Negate ||
                        instr.opcode() == Opcode::Abs || instr.opcode() == Opcode::Convert ||
                        family(instr.opcode()) == OpcodeFamily::Movement;
    bool keepsPlaces = isElementwise(instr.opcode()) || instr.opcode() == Opcode::Map ||
                       (family(instr.opcode()) == OpcodeFamily::Movement && instr.opcode() != Opcode::Gather);
    Sources all;
    if (!keepsPlaces || !instr.shape().isArray())
      return all;
    for (const Leaves *operand : operands)
      for (const Sources &leaf : *operand)
        for (const Source &source : leaf) {
          Source here = source;
          here.dims.resize(instr.shape().rank(), 0); // scalars have none; starts of slices do not count
          here.isFactor &= keepsFactors;
          add(all, here);
        }
    return all;
  }

  /// Whole dimensions move, or merge and split.
  static Sources moved(const HloInstruction &instr, const Sources &operand) {
    const Shape &from = instr.operand(0)->shape(), &to = instr.shape();
    Sources all;
    for (const Source &source : operand) {
      Source here{source.leaf, llvm::SmallVector<uint64_t, 4>(to.rank(), 0), source.isFactor};
      llvm::ArrayRef<int64_t> dims = instr.ints(AttributeKey::Dimensions);
      if (instr.opcode() == Opcode::Broadcast) {
        for (size_t i = 0; i < dims.size(); ++i)
          here.dims[size_t(dims[i])] |= source.dims[i];
      } else if (instr.opcode() == Opcode::Transpose) {
        for (size_t i = 0; i < dims.size(); ++i)
          here.dims[i] = source.dims[size_t(dims[i])];
      } else {
        regroup(from.dims(), to.dims(), source.dims, here.dims);
      }
      add(all, here);
    }
    return all;
  }

  /// Dimensions belong together as soon as their products agree.
  static void regroup(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, llvm::ArrayRef<uint64_t> masks,
                      llvm::MutableArrayRef<uint64_t> result) {
    size_t i = 0, j = 0;
    while (i < from.size() || j < to.size()) {
      size_t firstTo = j;
      uint64_t mask = 0;
      int64_t fromSize = 1, toSize = 1;
      do {
        if (i < from.size() && (fromSize <= toSize || j == to.size())) {
          mask |= masks[i];
          fromSize *= from[i++];
        } else if (j < to.size()) {
          toSize *= to[j++];
        } else {
          break;
        }
      } while (fromSize != toSize);
      for (size_t k = firstTo; k < j; ++k)
        result[k] = mask;
    }
  }

  void note(const Source &source, uint64_t dims, int64_t factors = 0) {
    demands[source.leaf].reducedDims |= dims;
    if (source.isFactor)
      demands[source.leaf].factors = std::max(demands[source.leaf].factors, factors);
  }

  Leaves reduced(const HloInstruction &instr, Operands operands) {
    bool isWindow = instr.opcode() == Opcode::ReduceWindow;
    const HloInstruction &root = *instr.computation(AttributeKey::ToApply)->root();
    unsigned numArrays = instr.numOperands() / 2;
    Sources all;
    for (unsigned i = 0; i < numArrays; ++i) {
      const Shape &shape = instr.operand(i)->shape();
      llvm::SmallVector<bool> gone(shape.rank(), false);
      int64_t count = 1;
      if (isWindow) {
        Window window = instr.windowOr(shape.rank());
        for (unsigned d = 0; d < shape.rank(); ++d)
          if (window.dims[d].size > 1)
            gone[d] = true, count *= window.dims[d].size;
      } else {
        for (int64_t d : instr.ints(AttributeKey::Dimensions))
          gone[size_t(d)] = true, count *= shape.dim(unsigned(d));
      }
      for (const Source &source : (*operands[i])[0]) {
        uint64_t mask = 0;
        Source here{source.leaf, {}, source.isFactor && root.opcode() == Opcode::Multiply};
        for (unsigned d = 0; d < shape.rank(); ++d) {
          mask |= gone[d] ? source.dims[d] : 0;
          if (!gone[d] || isWindow)
            here.dims.push_back(source.dims[d]);
        }
        note(source, mask, root.opcode() == Opcode::Multiply ? count : 0);
        add(all, here);
      }
    }
    return Leaves(numArrays, all);
  }

  Sources contracted(const HloInstruction &instr, const Sources &lhs, const Sources &rhs) {
    Sources all;
    size_t numBatch = instr.ints(AttributeKey::LhsBatchDims).size();
    size_t freeOfLhs =
        instr.operand(0)->shape().rank() - numBatch - instr.ints(AttributeKey::LhsContractingDims).size();
    auto follow = [&](const Sources &sources, unsigned rank, llvm::ArrayRef<int64_t> batch,
                      llvm::ArrayRef<int64_t> contracting, size_t firstFree) {
      for (const Source &source : sources) {
        Source here{source.leaf, llvm::SmallVector<uint64_t, 4>(instr.shape().rank(), 0), false};
        for (size_t i = 0; i < batch.size(); ++i)
          here.dims[i] = source.dims[size_t(batch[i])];
        uint64_t mask = 0;
        size_t next = firstFree;
        for (unsigned d = 0; d < rank; ++d)
          if (llvm::is_contained(contracting, int64_t(d)))
            mask |= source.dims[d];
          else if (!llvm::is_contained(batch, int64_t(d)))
            here.dims[next++] = source.dims[d];
        note(source, mask);
        add(all, here);
      }
    };
    follow(lhs, instr.operand(0)->shape().rank(), instr.ints(AttributeKey::LhsBatchDims),
           instr.ints(AttributeKey::LhsContractingDims), numBatch);
    follow(rhs, instr.operand(1)->shape().rank(), instr.ints(AttributeKey::RhsBatchDims),
           instr.ints(AttributeKey::RhsContractingDims), numBatch + freeOfLhs);
    return all;
  }

  std::vector<Demand> &demands;
};

} // namespace

void noteReductions(const HloModule &module, std::vector<Demand> &demands) {
  std::vector<DimTracer::Leaves> arguments;
  unsigned count = 0;
  for (const HloInstruction *parameter : module.entry()->parameters()) {
    DimTracer::Leaves leaves;
    for (const Shape::Leaf &leaf : parameter->shape().leaves()) {
      Source source{count++, {}, true};
      for (unsigned d = 0, rank = leaf.shape.isArray() ? leaf.shape.rank() : 0; d < rank; ++d)
        source.dims.push_back(d < 64 ? uint64_t(1) << d : 0);
      leaves.push_back({source});
    }
    arguments.push_back(std::move(leaves));
  }
  DimTracer(demands).run(*module.entry(), arguments);
}

} // namespace hloc::interp
