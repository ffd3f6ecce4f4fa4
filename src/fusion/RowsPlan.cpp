#include "fusion/ReductionMatch.h"

#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace hloc {
namespace {

/// Threads of a block that has several rows, and of a row that is read once a stage.
constexpr int64_t threadsPerBlock = 256, threadsOfLongRow = 1024;
/// Registers for what a thread holds of a row: with what it computes of them they are no more than 128.
constexpr int64_t mostHeld = 32;
/// Threads that may hold so much: a multiprocessor has room for one such block and another.
constexpr int64_t mostThreadsPerRow = 512;
/// Bytes of a sector, the unit of memory traffic.
constexpr int64_t sectorBytes = 32;
constexpr unsigned bitsPerRegister = 32;

int64_t powerOf2Ceil(int64_t x) { return int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(x, 1)))); }

// --- which fusions

/// Row by row: the operand's dimensions in their order, and inside of them the new ones.
std::optional<RowRole> roleOfBroadcast(const HloInstruction &broadcast, const RowsShape &rows) {
  const Shape &from = broadcast.operand(0)->shape(), &to = broadcast.shape();
  llvm::ArrayRef<int64_t> dims = broadcast.ints(AttributeKey::Dimensions);
  llvm::SmallVector<int64_t> kept;
  int64_t inside = 1;
  for (int64_t dim : to.minorToMajor()) {
    const int64_t *at = llvm::find(dims, dim);
    if (at != dims.end()) {
      if (to.dim(dim) != 1)
        kept.push_back(at - dims.begin());
    } else if (kept.empty()) {
      inside *= to.dim(dim);
    } else if (to.dim(dim) != 1) {
      return std::nullopt;
    }
  }
  llvm::SmallVector<int64_t> order;
  llvm::copy_if(from.minorToMajor(), std::back_inserter(order), [&](int64_t dim) { return from.dim(dim) != 1; });
  if (order != kept)
    return std::nullopt;
  return inside == 1             ? std::optional(RowRole::Row)
         : inside == rows.length ? std::optional(RowRole::Element)
                                 : std::nullopt;
}

/// What `instr` is if its operand `number`, whose role is that, is read at the same row.
std::optional<RowRole> roleOfReader(const HloInstruction &instr, unsigned number, RowRole role, const RowsShape &rows) {
  if (instr.opcode() == Opcode::GetTupleElement)
    return role;
  if (instr.opcode() == Opcode::Reduce)
    return role == RowRole::Element && number < instr.numOperands() / 2 ? std::optional(RowRole::Row) : std::nullopt;
  if (!instr.shape().isArray() || !instr.operand(number)->shape().isArray())
    return std::nullopt;
  if (isRenaming(instr) || (instr.opcode() != Opcode::Bitcast && readsSamePosition(instr, number)))
    return role;
  if (instr.opcode() == Opcode::Broadcast && role == RowRole::Row)
    return roleOfBroadcast(instr, rows);
  return std::nullopt;
}

/// The rows of these reductions, operands before users.
std::variant<RowsShape, Rejection> rowsOf(llvm::ArrayRef<const HloInstruction *> reductions) {
  std::variant<ReductionFrame, Rejection> match = frameOf(reductions);
  if (auto *why = std::get_if<Rejection>(&match))
    return *why;
  const auto &frame = std::get<ReductionFrame>(match);
  if (!frame.minorIsReduced || frame.dims.size() > 2)
    return Rejection{"what is reduced is no row of memory"};
  for (const Accumulator &accumulator : frame.accumulators)
    if (!accumulator.combiner)
      return Rejection{fmt::format("`{}` chooses elements", frame.heroes[accumulator.hero].instr->name().str())};
  for (const ReductionHero &hero : frame.heroes)
    for (unsigned i = 0; i < hero.instr->numResults(); ++i)
      if (hero.instr->resultShape(i).minorToMajor() != hero.kept.minorToMajor())
        return Rejection{fmt::format("results of `{}` lie in another order than rows", hero.instr->name().str())};
  return RowsShape{frame.numResults(), frame.numReduced()};
}

/// Finds the stages and checks that each element which depends on reductions depends on those of its own row.
class RowsMatch {
public:
  explicit RowsMatch(const FusionGraph &graph)
      : graph(graph), roles(graph.computation().instructions().size(), RowRole::Other), stageOf(roles.size(), 0) {}

  std::optional<Rejection> match(RowsPlan &plan) {
    llvm::SmallVector<const HloInstruction *> heroes;
    llvm::copy_if(graph.instructions(), std::back_inserter(heroes),
                  [](const HloInstruction *instr) { return instr->opcode() == Opcode::Reduce; });
    if (heroes.empty())
      return Rejection{"there is no reduction"};
    std::variant<RowsShape, Rejection> shape = rowsOf(heroes);
    if (auto *why = std::get_if<Rejection>(&shape))
      return *why;
    plan.rows = std::get<RowsShape>(shape);
    if (std::optional<Rejection> why = assignRoles(plan.rows))
      return why;
    if (std::optional<Rejection> why = assignRoots(plan))
      return why;
    return assignStages(heroes, plan);
  }

private:
  RowRole roleOf(const HloInstruction &instr) const { return roles[behindTuple(instr).id()]; }

  std::optional<Rejection> assignRoles(const RowsShape &rows) {
    for (const HloInstruction *instr : graph.instructions()) {
      std::optional<RowRole> role = roleInRows(*instr, rows, [&](const HloInstruction &read) { return roleOf(read); });
      if (!role)
        return Rejection{fmt::format("`{}` reads a reduction at other rows than its own", instr->name().str())};
      bool isReduction = instr->opcode() == Opcode::Reduce;
      roles[instr->id()] = isReduction ? RowRole::Row : *role;
      for (const HloInstruction *operand : instr->operands())
        stageOf[instr->id()] = std::max(stageOf[instr->id()], stageOf[behindTuple(*operand).id()]);
      stageOf[instr->id()] += unsigned(isReduction);
    }
    return std::nullopt;
  }

  std::optional<Rejection> assignRoots(RowsPlan &plan) {
    for (auto [i, root] : llvm::enumerate(graph.roots())) {
      if (deviceBits(root.shape.elementType()) < 8)
        return Rejection{fmt::format("output {} shares bytes between elements", i)};
      if (root.shape.numElements() == plan.rows.elements())
        plan.roots.push_back(unsigned(i));
      else if (root.shape.numElements() == plan.rows.count)
        plan.rowRoots.push_back(unsigned(i));
      else
        return Rejection{fmt::format("output {} has neither an element a row nor those of all rows", i)};
    }
    return std::nullopt;
  }

  std::optional<Rejection> assignStages(llvm::ArrayRef<const HloInstruction *> heroes, RowsPlan &plan) const {
    std::vector<llvm::SmallVector<const HloInstruction *>> stages;
    for (const HloInstruction *hero : heroes) {
      unsigned stage = stageOf[hero->id()];
      stages.resize(std::max<size_t>(stages.size(), stage));
      stages[stage - 1].push_back(hero);
    }
    bool isRead =
        llvm::any_of(plan.roots, [&](unsigned root) { return roleOf(*graph.roots()[root].instr) == RowRole::Element; });
    if (stages.size() == 1 && !isRead)
      return Rejection{"elements of rows depend on no reduction"};
    for (llvm::ArrayRef<const HloInstruction *> stage : stages) {
      std::variant<ReductionFrame, Rejection> frame = frameOf(stage);
      if (auto *why = std::get_if<Rejection>(&frame))
        return *why;
      plan.stages.push_back(std::move(std::get<ReductionFrame>(frame)));
    }
    return std::nullopt;
  }

  const FusionGraph &graph;
  std::vector<RowRole> roles;
  std::vector<unsigned> stageOf; ///< stages that are complete where the instruction can be computed
};

// --- which threads

/// What moves and what is held of each element.
struct Streams {
  StreamWidths widths;
  unsigned heldBits = bitsPerRegister; ///< of the widest value that is reduced or as large as the rows
};

Streams streamsOf(const FusionGraph &graph, const RowsPlan &plan) {
  Streams streams;
  int64_t elements = plan.rows.elements();
  for (const HloInstruction *instr : graph.instructions()) {
    if (!instr->shape().isArray() || instr->shape().numElements() != elements)
      continue;
    if (instr->opcode() == Opcode::Parameter)
      streams.widths.add(instr->shape());
    if (isFloat(instr->shape().elementType()) || instr->opcode() == Opcode::Parameter)
      streams.heldBits = std::max(streams.heldBits, deviceBits(instr->shape().elementType()));
  }
  for (unsigned root : plan.roots)
    streams.widths.add(graph.roots()[root].shape);
  return streams;
}

uint64_t sharedBytesOf(const RowsPlan &plan, int64_t warps) {
  int64_t bytes = 0;
  for (const ReductionFrame &stage : plan.stages)
    bytes += warps * accumulatorBytes(stage);
  return uint64_t(bytes);
}

LaunchGeometry launchOf(const RowsPlan &plan, const TargetInfo &target) {
  LaunchGeometry launch;
  launch.block = {plan.threadsPerRow * plan.rowsPerBlock, 1, 1};
  int64_t blocks = (plan.rows.count + plan.rowsPerBlock - 1) / plan.rowsPerBlock;
  int64_t gridRows = (blocks + int64_t(target.maxGridX) - 1) / int64_t(target.maxGridX);
  launch.grid = {uint32_t((blocks + gridRows - 1) / gridRows), uint32_t(gridRows), 1};
  if (plan.threadsPerRow > target.warpSize)
    launch.sharedBytes = sharedBytesOf(plan, launch.block.x / target.warpSize);
  return launch;
}

void chooseThreads(RowsPlan &plan, const Streams &streams, const TargetInfo &target) {
  int64_t warp = target.warpSize, device = int64_t(target.multiprocessors) * target.threadsPerMultiprocessor;
  plan.perThread = unsigned(std::min<int64_t>(streams.widths.elements(target), plan.rows.length & -plan.rows.length));
  int64_t registers = int64_t(plan.perThread) * streams.heldBits / bitsPerRegister; // of a vector
  int64_t vectors = plan.vectors(), most = std::max<int64_t>(mostHeld / registers, 1);
  int64_t threads = powerOf2Ceil(llvm::divideCeil(vectors, most));
  // Neighbours read whole sectors; where rows do not begin with one, in few pieces.
  if (plan.rows.length * int64_t(streams.widths.narrowest) % (sectorBytes * 8) != 0)
    threads = std::max(threads, std::min(powerOf2Ceil(vectors), warp));
  while (threads * int64_t(plan.perThread) * int64_t(streams.widths.narrowest) < sectorBytes * 8 &&
         threads < powerOf2Ceil(vectors))
    threads *= 2;
  // More where rows are few; beyond a warp there is a barrier a stage, which one element each is not worth.
  auto mayDouble = [&] {
    return threads < warp ? threads < vectors : threads < threadsPerBlock && vectors > 2 * threads;
  };
  while (plan.rows.count * threads < device / 4 && mayDouble())
    threads *= 2;
  plan.inRegisters = threads <= mostThreadsPerRow;
  if (!plan.inRegisters)
    threads = threadsOfLongRow;
  plan.threadsPerRow = uint32_t(threads);
  plan.heldRegisters = unsigned(plan.inRegisters ? plan.vectorsPerThread() * registers : 0);
  int64_t rowsPerBlock = std::max<int64_t>(threadsPerBlock / threads, 1);
  while (rowsPerBlock * threads > warp && plan.rows.count / rowsPerBlock < 2 * int64_t(target.multiprocessors))
    rowsPerBlock /= 2;
  plan.rowsPerBlock = uint32_t(std::max<int64_t>(rowsPerBlock, 1));
}

} // namespace

std::optional<RowsShape> rowsOfReduction(const HloInstruction &reduce) {
  std::variant<RowsShape, Rejection> rows = rowsOf({&reduce});
  return std::holds_alternative<RowsShape>(rows) ? std::optional(std::get<RowsShape>(rows)) : std::nullopt;
}

std::optional<RowRole> roleInRows(const HloInstruction &instr, const RowsShape &rows,
                                  llvm::function_ref<RowRole(const HloInstruction &)> roleOf) {
  RowRole own = RowRole::Other;
  // Tuples are read through the elements that are taken of them.
  if (&behindTuple(instr) != &instr || instr.opcode() == Opcode::Tuple)
    return own;
  for (auto [i, operand] : llvm::enumerate(instr.operands())) {
    RowRole read = roleOf(*operand);
    if (read == RowRole::Other)
      continue;
    std::optional<RowRole> role = roleOfReader(instr, unsigned(i), read, rows);
    if (!role || (own != RowRole::Other && own != *role))
      return std::nullopt;
    own = *role;
  }
  return own;
}

template <>
HeroMatch<RowsPlan> matchHero<RowsPlan>(const FusionGraph &graph, const FusionAliasing &, const TargetInfo &target) {
  RowsPlan plan;
  if (std::optional<Rejection> why = RowsMatch(graph).match(plan))
    return std::move(*why);
  chooseThreads(plan, streamsOf(graph, plan), target);
  LaunchGeometry launch = launchOf(plan, target);
  if (launch.sharedBytes > target.staticSharedBytes)
    return Rejection{"the results of all warps do not fit into shared memory"};
  return {std::move(plan), launch};
}

/// Lanes without an element of their own read one of another thread, which may have stored it.
template <> bool mayTakePlace<RowsPlan>(const RowsPlan &, const FusionGraph &, unsigned, unsigned) { return false; }

template <>
ComputedSpaces computedSpaces<RowsPlan>(const RowsPlan &plan, const FusionGraph &graph, mlir::MLIRContext *context) {
  ComputedSpaces result;
  const Shape &space = plan.stages.front().operandShape();
  for (const ReductionFrame &stage : plan.stages) {
    if (result.spaces.empty() || !plan.inRegisters)
      result.spaces.emplace_back();
    for (const ReductionHero &hero : stage.heroes) {
      result.kept.push_back(hero.instr);
      for (unsigned i = 0; i < hero.instr->numOperands() / 2; ++i)
        result.spaces.back().values.push_back(
            {hero.instr->operand(i), bitcastIndexing(space, hero.instr->operand(i)->shape(), context)});
    }
  }
  if (!plan.inRegisters)
    result.spaces.emplace_back();
  for (unsigned root : plan.roots)
    result.spaces.back().values.push_back(
        {graph.roots()[root].instr, bitcastIndexing(space, graph.roots()[root].shape, context)});
  if (plan.rowRoots.empty())
    return result;
  ComputedSpace &ofRows = result.spaces.emplace_back();
  for (unsigned root : plan.rowRoots)
    ofRows.values.push_back({graph.roots()[root].instr, bitcastIndexing(plan.stages.front().heroes.front().kept,
                                                                        graph.roots()[root].shape, context)});
  return result;
}

/// Addresses, accumulators and what is computed of a vector beside what is held of a row.
template <> unsigned plannedRegisters<RowsPlan>(const RowsPlan &plan) {
  return plan.heldRegisters <= mostHeld / 2 ? KernelSpec::usualRegisters : 2 * KernelSpec::usualRegisters;
}

std::string RowsPlan::toString() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << fmt::format("whole rows: {} of {}; ", rows.count, rows.length);
  auto list = [&](llvm::StringRef name, llvm::ArrayRef<unsigned> numbers) {
    if (numbers.empty())
      return;
    os << name << " ";
    llvm::interleave(numbers, os, ",");
    os << ", ";
  };
  list("roots", roots);
  list("roots of rows", rowRoots);
  os << fmt::format("{} stage{}; {} x {} per thread{}, {} thread{} a row, {} row{} a block", stages.size(),
                    stages.size() == 1 ? "" : "s", vectorsPerThread(), perThread,
                    inRegisters ? "" : ", read in each stage", threadsPerRow, threadsPerRow == 1 ? "" : "s",
                    rowsPerBlock, rowsPerBlock == 1 ? "" : "s");
  return result;
}

} // namespace hloc
