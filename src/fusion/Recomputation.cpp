#include "hloc/fusion/Recomputation.h"

#include "fusion/HeroMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

namespace hloc {
namespace {

/// An instruction read in more ways than this counts as computed by a function of its own, whose callers share nothing:
/// the number of ways can double with each instruction.
constexpr size_t maxAccesses = 16;
/// 2^53: doubles are exact up to here.
constexpr double mostEvaluations = 9007199254740992.0;

/// How an instruction is read: in which index space, through which map from there, in which loops or behind which
/// dynamic offsets. Equal accesses are one evaluation.
struct Access {
  unsigned space = 0;
  IndexingMap map;
  unsigned loops = 0; ///< 0: in none that the map depends on
  double count = 0;   ///< points at which it is read
  bool isSameAs(const Access &other) const { return space == other.space && loops == other.loops && map == other.map; }
};

double pointsOf(llvm::ArrayRef<IndexingVariable> variables) {
  double points = 1;
  for (const IndexingVariable &variable : variables)
    points *= double(variable.bounds.size());
  return points;
}

class Counter {
public:
  Counter(const FusionGraph &graph, MLIRContext *context)
      : graph(graph), context(context), accesses(graph.computation().instructions().size()),
        kept(accesses.size(), false) {}

  std::vector<Evaluation> run(const ComputedSpaces &computed) {
    for (const HloInstruction *instr : computed.kept)
      kept[instr->id()] = true;
    for (const ComputedSpace &space : computed.spaces) {
      ++lastSpace;
      for (const ComputedSpace::Value &value : space.values) {
        IndexingMap map = value.map;
        map.simplify();
        double count = pointsOf(map.dims());
        read(*value.instr, {lastSpace, std::move(map), 0, count});
      }
    }
    std::vector<Evaluation> result;
    for (const HloInstruction *instr : llvm::reverse(graph.instructions()))
      if (!accesses[instr->id()].empty())
        result.push_back(evaluate(*instr));
    std::reverse(result.begin(), result.end());
    return result;
  }

private:
  void read(const HloInstruction &written, Access access) {
    const HloInstruction &instr = behindTuple(written);
    if (instr.numOperands() == 0) // parameters, constants, iotas
      return;
    std::vector<Access> &known = accesses[instr.id()];
    if (llvm::none_of(known, [&](const Access &other) { return other.isSameAs(access); }))
      known.push_back(std::move(access));
  }

  Evaluation evaluate(const HloInstruction &instr) {
    std::vector<Access> &own = accesses[instr.id()];
    Evaluation evaluation{&instr};
    for (const Access &access : own)
      evaluation.count = std::min(evaluation.count + access.count, mostEvaluations);
    if (own.size() > maxAccesses)
      own = {{++lastSpace, IndexingMap::identity(context, instr.resultShape().dims()), 0, evaluation.count}};
    if (!kept[instr.id()])
      for (unsigned i = 0; i < instr.numOperands(); ++i)
        evaluation.steps = std::max(evaluation.steps, readOperand(instr, i, evaluation.count));
    std::vector<Access>().swap(own);
    return evaluation;
  }

  /// Steps of the loop in which the operand is read.
  int64_t readOperand(const HloInstruction &instr, unsigned number, double count) {
    const HloInstruction &operand = *instr.operand(number);
    const std::vector<Access> &own = accesses[instr.id()];
    if (readsOperandsInPlace(instr) && operand.shape().isArray() && operand.shape().sameDims(instr.shape())) {
      for (const Access &access : own)
        read(operand, access);
      return 1;
    }
    std::optional<OperandIndexing> indexing = operandIndexing(instr, number, context);
    if (!indexing) { // nothing is known but that it is read
      if (operand.shape().isArray())
        read(operand, {++lastSpace, IndexingMap::identity(context, operand.shape().dims()), 0, count});
      return 1;
    }
    if (indexing->map.isKnownEmpty())
      return 1;
    double steps = pointsOf(indexing->map.ranges());
    double perElement = elementsRead(*indexing, operand, instr);
    bool entersLoop = !indexing->map.ranges().empty() || !indexing->runtimes.empty();
    for (const Access &access : own)
      readThrough(access, *indexing, perElement, entersLoop ? loopsOf(access.loops, instr) : access.loops, operand);
    return hasTrait(instr.opcode(), OpcodeTrait::Contracts) ? int64_t(std::min(steps, mostEvaluations)) : 1;
  }

  /// Reads of the operand for each element of the result, on average. Where some elements read nothing (pad,
  /// concatenate, dynamic-update-slice) the others read each element once.
  static double elementsRead(const OperandIndexing &indexing, const HloInstruction &operand,
                             const HloInstruction &instr) {
    double reads = pointsOf(indexing.map.dims()) * pointsOf(indexing.map.ranges());
    if (!indexing.map.constraints().empty() && indexing.map.ranges().empty())
      reads = std::min(reads, double(operand.shape().numElements()));
    return reads / double(instr.resultShape().numElements());
  }

  void readThrough(const Access &access, const OperandIndexing &indexing, double perElement, unsigned loops,
                   const HloInstruction &operand) {
    IndexingMap map = compose(access.map, indexing.map);
    map.simplify();
    if (map.isKnownEmpty())
      return;
    double inLoops = pointsOf(map.ranges());
    map.removeUnusedSymbols();
    // Outside of the loops whose variables it does not depend on.
    double count = access.count * perElement * (pointsOf(map.ranges()) / inLoops);
    bool depends = !map.ranges().empty() || !map.runtimes().empty();
    read(operand, {access.space, std::move(map), depends ? loops : 0, std::min(count, mostEvaluations)});
  }

  /// A number for the loop or the offsets of `instr`, inside of `outer`.
  unsigned loopsOf(unsigned outer, const HloInstruction &instr) {
    return loopNumbers.try_emplace({outer, &instr}, loopNumbers.size() + 1).first->second;
  }

  const FusionGraph &graph;
  MLIRContext *context;
  std::vector<std::vector<Access>> accesses; ///< by instruction
  llvm::BitVector kept;
  llvm::DenseMap<std::pair<unsigned, const HloInstruction *>, unsigned> loopNumbers;
  unsigned lastSpace = 0;
};

bool isMovement(const HloInstruction &instr) {
  return hasTrait(instr.opcode(), OpcodeTrait::Moves) || hasTrait(instr.opcode(), OpcodeTrait::Rearranges) ||
         hasTrait(instr.opcode(), OpcodeTrait::PassesOn) || !instr.resultShape().isArray();
}

/// "2.5", "256"
std::string times(double factor) {
  return factor < 10 && std::round(factor) != factor ? fmt::format("{:.1f}", factor)
                                                     : fmt::format("{:.0f}", std::round(factor));
}

/// Elements of the arrays that the kernel has to read and write.
double elementsMoved(const FusionGraph &graph) {
  double elements = 0;
  for (const HloInstruction *parameter : graph.parameters())
    if (graph.isLive(*parameter))
      elements += double(parameter->shape().numElements());
  for (const FusionRoot &root : graph.roots())
    elements += double(root.shape.numElements());
  return elements;
}

/// The operand whose elements are read most often, and how often each is.
std::string describeReads(const Evaluation &evaluation) {
  const HloInstruction *most = nullptr;
  double reads = 0;
  for (const HloInstruction *operand : evaluation.instr->operands()) {
    if (!operand->shape().isArray() || operand->shape().rank() == 0)
      continue;
    double own = evaluation.count * double(evaluation.steps) / double(operand->shape().numElements());
    if (own > reads) {
      most = operand;
      reads = own;
    }
  }
  return most && reads >= 2 ? fmt::format("; each element of `{}` is read {} times", most->name().str(), times(reads))
                            : "";
}

KernelRemark remark(DiagnosticKind kind, const Evaluation &evaluation, double factor, std::string message) {
  return {text(kind).str(), evaluation.instr->name().str(), uint64_t(std::round(factor)), std::move(message)};
}

} // namespace

std::vector<Evaluation> evaluations(const FusionGraph &graph, const KernelPlan &kernel, MLIRContext *context) {
  ComputedSpaces spaces =
      visitHero(kernel.plan, [&](const auto &plan) { return computedSpaces(plan, graph, context); });
  return Counter(graph, context).run(spaces);
}

std::vector<KernelRemark> remarksOn(const FusionGraph &graph, const KernelPlan &kernel, MLIRContext *context) {
  /// A loop that a warp could share.
  constexpr int64_t longLoop = 32;
  std::vector<KernelRemark> remarks;
  const double moved = elementsMoved(graph);
  std::vector<double> usersFactor(graph.computation().instructions().size(), 0);
  std::vector<Evaluation> all = evaluations(graph, kernel, context);
  for (const Evaluation &evaluation : llvm::reverse(all)) {
    const HloInstruction &instr = *evaluation.instr;
    const double factor = evaluation.factor();
    const bool moves = isMovement(instr);
    for (const HloInstruction *operand : instr.operands()) {
      double &known = usersFactor[behindTuple(*operand).id()];
      known = std::max(known, moves ? usersFactor[instr.id()] : factor);
    }
    if (moves)
      continue;
    double repeated = (evaluation.count - evaluation.count / factor) * double(evaluation.steps);
    // What an instruction recomputes because its users are recomputed is said of them.
    bool starts = evaluation.steps > 1 || factor >= 1.5 * usersFactor[instr.id()];
    if (factor >= 2 && repeated > moved && starts) {
      std::string steps = evaluation.steps > 1 ? fmt::format(", in a loop of {} steps", evaluation.steps) : "";
      remarks.push_back(
          remark(DiagnosticKind::Recomputation, evaluation, factor,
                 fmt::format("`{}` is computed {} times for each of its {} elements{}", instr.name().str(),
                             times(factor), instr.resultShape().numElements(), steps)));
    } else if (evaluation.steps >= longLoop) {
      remarks.push_back(
          remark(DiagnosticKind::SerialReduction, evaluation, double(evaluation.steps),
                 fmt::format("each of the {} elements of `{}` is made by one thread in a loop of {} steps{}",
                             instr.resultShape().numElements(), instr.name().str(), evaluation.steps,
                             describeReads(evaluation))));
    }
  }
  std::reverse(remarks.begin(), remarks.end());
  return remarks;
}

} // namespace hloc
