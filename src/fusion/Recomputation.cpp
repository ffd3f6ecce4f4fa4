#include "hloc/fusion/Recomputation.h"

#include "fusion/HeroMatch.h"
#include "fusion/ReadMaps.h"
#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

namespace hloc {
namespace {

/// An instruction read in more ways than this counts as computed by a function of its own, whose callers share nothing:
/// the number of ways can double with each instruction.
constexpr size_t maxReads = 16;

/// Of the loop in which a thread reads an operand of `instr`.
int64_t stepsOf(const HloInstruction &instr, MLIRContext *context) {
  int64_t most = 1;
  if (!hasTrait(instr.opcode(), OpcodeTrait::Contracts))
    return most;
  for (unsigned i = 0; i < instr.numOperands(); ++i)
    if (std::optional<OperandIndexing> indexing = operandIndexing(instr, i, context);
        indexing && !indexing->map.isKnownEmpty())
      most = std::max(most, int64_t(std::min(pointsOf(indexing->map.ranges()), mostPoints)));
  return most;
}

std::vector<Evaluation> count(const FusionGraph &graph, const ComputedSpaces &computed, MLIRContext *context) {
  PlanContext given(context);
  ReadMaps maps(graph, given);
  for (const ComputedSpace &space : computed.spaces) {
    const unsigned number = maps.newSpace();
    for (const ComputedSpace::Value &value : space.values) {
      IndexingMap map = value.map;
      map.simplify();
      const double points = pointsOf(map.dims());
      maps.read(*value.instr, {number, maps.maps().intern(std::move(map)), 0, points});
    }
  }
  std::vector<Evaluation> result;
  maps.follow([&](const HloInstruction &instr, ArrayRef<ReadMaps::Read> reads) {
    if (instr.numOperands() == 0) // parameters, constants, iotas
      return;
    Evaluation &evaluation = result.emplace_back(Evaluation{&instr});
    for (const ReadMaps::Read &read : reads)
      evaluation.count = std::min(evaluation.count + read.count, mostPoints);
    if (llvm::is_contained(computed.kept, &instr))
      return;
    evaluation.steps = stepsOf(instr, context);
    const ReadMaps::Read ofItsOwn{maps.newSpace(), MapPool::same, 0, evaluation.count};
    maps.readOperands(instr, reads.size() > maxReads ? ArrayRef(ofItsOwn) : reads);
  });
  std::reverse(result.begin(), result.end());
  return result;
}

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
  return count(graph, spaces, context);
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
