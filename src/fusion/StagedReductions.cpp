#include "fusion/StagedMatch.h"
#include "hloc/fusion/HloIndexing.h"

#include "fmt/format.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace hloc {
namespace {

// --- roles

/// The operand's dimensions in their order, and among them the new ones: inside of all, or between slices and columns.
PlaceAnswer<ReducedRole> roleOfBroadcast(const HloInstruction &broadcast, const ReducedShape &shape) {
  const Shape &from = broadcast.operand(0)->shape(), &to = broadcast.shape();
  llvm::ArrayRef<int64_t> dims = broadcast.ints(AttributeKey::Dimensions);
  llvm::SmallVector<int64_t> kept;
  int64_t columns = 1, length = 1;
  bool hasSlices = false;
  for (int64_t dim : to.minorToMajor()) {
    if (to.dim(dim) == 1 && !llvm::is_contained(dims, dim))
      continue;
    const int64_t *at = llvm::find(dims, dim);
    if (at == dims.end()) {
      if (hasSlices)
        return Elsewhere();
      length *= to.dim(dim);
      continue;
    }
    if (to.dim(dim) == 1)
      continue;
    kept.push_back(at - dims.begin());
    hasSlices |= length > 1;
    if (!hasSlices)
      columns *= to.dim(dim);
  }
  llvm::SmallVector<int64_t> order;
  llvm::copy_if(from.minorToMajor(), std::back_inserter(order), [&](int64_t dim) { return from.dim(dim) != 1; });
  if (order != kept)
    return Elsewhere();
  if (length == 1)
    return ReducedRole::Result;
  return placeIf(length == shape.length && columns == shape.columns, ReducedRole::Element);
}

} // namespace

PlaceAnswer<ReducedRole> roleThrough(const HloInstruction &instr, unsigned number, ReducedRole role,
                                     const ReducedShape &shape) {
  if (instr.opcode() == Opcode::GetTupleElement)
    return role;
  if (instr.opcode() == Opcode::Reduce)
    return placeIf(role == ReducedRole::Element && number < instr.numOperands() / 2, ReducedRole::Result);
  if (instr.opcode() == Opcode::Broadcast && role == ReducedRole::Result)
    return roleOfBroadcast(instr, shape);
  return placeIf(isRenaming(instr) || (instr.opcode() != Opcode::Bitcast && readsSamePosition(instr, number)), role);
}

namespace {

// --- which fusions

llvm::StringRef nameOf(ReducedLines lines) { return lines == ReducedLines::Rows ? "row" : "column"; }

/// Reducers that choose between elements begin with one of them: there is no number that changes nothing.
std::optional<Rejection> rejectChoice(const ReductionFrame &frame) {
  for (const Accumulator &accumulator : frame.accumulators)
    if (!accumulator.combiner)
      return Rejection{fmt::format("`{}` chooses elements", frame.heroes[accumulator.hero].instr->name().str())};
  return std::nullopt;
}

/// What these reductions reduce, operands before users.
std::variant<ReducedShape, Rejection> shapeOf(llvm::ArrayRef<const HloInstruction *> reductions, ReducedLines lines) {
  std::variant<ReductionFrame, Rejection> match = frameOf(reductions);
  if (auto *why = std::get_if<Rejection>(&match))
    return *why;
  const auto &frame = std::get<ReductionFrame>(match);
  bool isOfRows = lines == ReducedLines::Rows;
  if (frame.minorIsReduced != isOfRows || frame.dims.size() > (isOfRows ? 2 : 3))
    return Rejection{fmt::format("what is reduced is no {} of memory", nameOf(lines).str())};
  if (std::optional<Rejection> why = rejectChoice(frame))
    return std::move(*why);
  for (const ReductionHero &hero : frame.heroes)
    for (unsigned i = 0; i < hero.instr->numResults(); ++i)
      if (hero.instr->resultShape(i).minorToMajor() != hero.kept.minorToMajor())
        return Rejection{fmt::format("results of `{}` lie in another order than {}s", hero.instr->name().str(),
                                     nameOf(lines).str())};
  return ReducedShape{frame.numResults(), frame.numReduced(), isOfRows ? 1 : frame.dims.back()};
}

/// The columns that these reductions reduce, of all that there are in memory.
std::variant<ReductionFrame, Rejection> columnsOf(llvm::ArrayRef<const HloInstruction *> reductions) {
  std::variant<ReductionFrame, Rejection> match = frameOf(reductions);
  auto *frame = std::get_if<ReductionFrame>(&match);
  if (!frame)
    return match;
  if (frame->minorIsReduced || frame->dims.size() != 2)
    return Rejection{"what is reduced is neither a row nor a column of memory"};
  if (std::optional<Rejection> why = rejectChoice(*frame))
    return std::move(*why);
  return match;
}

/// Finds the stages and checks that each element which depends on reductions depends on those that it is part of.
class StagesMatch {
public:
  StagesMatch(const FusionGraph &graph, ReducedLines lines)
      : graph(graph), line(nameOf(lines).str()), lines(lines), roles(graph.computation()),
        isOfColumns(graph.computation().instructions().size(), false), stageOf(isOfColumns.size(), 0) {}

  std::optional<Rejection> match(StagedReductions &found) {
    llvm::SmallVector<const HloInstruction *> heroes, columns;
    for (const HloInstruction *instr : graph.instructions())
      if (instr->opcode() == Opcode::Reduce)
        (lines == ReducedLines::Rows && rowsOfColumnReduction(*instr) ? columns : heroes).push_back(instr);
    if (heroes.empty())
      return Rejection{columns.empty() ? "there is no reduction" : "there is no reduction of rows"};
    std::variant<ReducedShape, Rejection> shape = shapeOf(heroes, lines);
    if (auto *why = std::get_if<Rejection>(&shape))
      return *why;
    found.shape = std::get<ReducedShape>(shape);
    if (std::optional<Rejection> why = assignColumns(columns, found))
      return why;
    if (std::optional<Rejection> why = assignRoles(heroes, found.shape))
      return why;
    if (std::optional<Rejection> why = assignRoots(found))
      return why;
    if (std::optional<Rejection> why = assignStages(heroes, found))
      return why;
    for (const HloInstruction *parameter : graph.parameters())
      if (parameter->shape().isArray() && parameter->shape().numElements() == found.shape.elements())
        if (llvm::SmallVector<unsigned> readers = stagesThatRead(*parameter, found); readers.size() > 1)
          found.held.push_back({unsigned(parameter->parameterNumber()), readers.front()});
    if (lines == ReducedLines::Rows && !found.columns)
      findSameInRows(found);
    return std::nullopt;
  }

private:
  bool isColumn(const HloInstruction &instr) const { return isOfColumns[behindTuple(instr).id()]; }

  std::optional<Rejection> assignColumns(llvm::ArrayRef<const HloInstruction *> columns, StagedReductions &found) {
    if (columns.empty())
      return std::nullopt;
    std::variant<ReductionFrame, Rejection> frame = columnsOf(columns);
    if (auto *why = std::get_if<Rejection>(&frame))
      return *why;
    found.columns = std::move(std::get<ReductionFrame>(frame));
    if (ReducedShape{found.columns->numReduced(), found.columns->numResults()} != found.shape)
      return Rejection{"columns are not those of the rows"};
    for (const HloInstruction *column : columns)
      isOfColumns[column->id()] = true;
    return std::nullopt;
  }

  /// Of a reduction of columns: it begins with what no row comes to, and nothing but outputs reads it.
  std::optional<Rejection> rejectColumn(const HloInstruction &instr) const {
    if (&behindTuple(instr) != &instr || instr.opcode() == Opcode::Tuple)
      return std::nullopt;
    if (llvm::any_of(instr.operands(), [&](const HloInstruction *operand) { return isColumn(*operand); }))
      return Rejection{fmt::format("`{}` reads what columns come to", instr.name().str())};
    for (unsigned i = 0; isColumn(instr) && i < instr.numOperands(); ++i) {
      bool isInit = i >= instr.numOperands() / 2;
      if (const ReducedRole *role = roles.at(*instr.operand(i)); role && (isInit || *role == ReducedRole::Result))
        return Rejection{fmt::format("`{}` reads a reduction at other rows than its own", instr.name().str())};
    }
    return std::nullopt;
  }

  std::optional<Rejection> assignRoles(llvm::ArrayRef<const HloInstruction *> heroes, const ReducedShape &shape) {
    for (const HloInstruction *hero : heroes)
      roles.set(*hero, ReducedRole::Result);
    roles.follow(graph.instructions(),
                 [&](const HloInstruction &instr, unsigned operand, ReducedRole read) -> PlaceAnswer<ReducedRole> {
                   if (isColumn(instr))
                     return Independent();
                   return roleThrough(instr, operand, read, shape);
                 });
    for (const HloInstruction *instr : graph.instructions()) {
      if (std::optional<Rejection> why = rejectColumn(*instr))
        return why;
      if (instr == roles.firstElsewhere())
        return Rejection{fmt::format("`{}` reads a reduction at other {}s than its own", instr->name().str(), line)};
      if (isColumn(*instr))
        continue;
      for (const HloInstruction *operand : instr->operands())
        stageOf[instr->id()] = std::max(stageOf[instr->id()], stageOf[behindTuple(*operand).id()]);
      stageOf[instr->id()] += unsigned(instr->opcode() == Opcode::Reduce);
    }
    return std::nullopt;
  }

  std::optional<Rejection> assignRoots(StagedReductions &found) {
    for (auto [i, root] : llvm::enumerate(graph.roots())) {
      if (deviceBits(root.shape.elementType()) < 8)
        return Rejection{fmt::format("output {} shares bytes between elements", i)};
      if (isColumn(*root.instr))
        found.columns->roots.push_back({unsigned(i), orderOfColumns(*found.columns, *root.instr)});
      else if (root.shape.numElements() == found.shape.elements())
        found.roots.push_back(unsigned(i));
      else if (root.shape.numElements() == found.shape.count)
        found.resultRoots.push_back(unsigned(i));
      else
        return Rejection{fmt::format("output {} has neither an element a {} nor those of all {}s", i, line, line)};
    }
    return std::nullopt;
  }

  static const Shape &orderOfColumns(const ReductionFrame &columns, const HloInstruction &root) {
    return llvm::find_if(columns.heroes, [&](const ReductionHero &hero) { return hero.instr == &behindTuple(root); })
        ->kept;
  }

  std::optional<Rejection> assignStages(llvm::ArrayRef<const HloInstruction *> heroes, StagedReductions &found) const {
    std::vector<llvm::SmallVector<const HloInstruction *>> stages;
    for (const HloInstruction *hero : heroes) {
      unsigned stage = stageOf[hero->id()];
      stages.resize(std::max<size_t>(stages.size(), stage));
      stages[stage - 1].push_back(hero);
    }
    bool isRead = llvm::any_of(
        found.roots, [&](unsigned root) { return roles.isAt(*graph.roots()[root].instr, ReducedRole::Element); });
    if (stages.size() == 1 && !isRead && !found.columns)
      return Rejection{fmt::format("elements of {}s depend on no reduction", line)};
    for (llvm::ArrayRef<const HloInstruction *> stage : stages) {
      std::variant<ReductionFrame, Rejection> frame = frameOf(stage);
      if (auto *why = std::get_if<Rejection>(&frame))
        return *why;
      found.stages.push_back(std::move(std::get<ReductionFrame>(frame)));
    }
    return std::nullopt;
  }

  /// The stages that read a value as large as what is reduced, in order; none if one reads it elsewhere than in place.
  llvm::SmallVector<unsigned> stagesThatRead(const HloInstruction &value, const StagedReductions &found) const {
    Places<ReducedRole> readers(graph.computation());
    readers.set(value, ReducedRole::Element);
    readers.follow(graph.instructions(), [&](const HloInstruction &instr, unsigned operand, ReducedRole read) {
      PlaceAnswer<ReducedRole> role = roleThrough(instr, operand, read, found.shape);
      // What it comes to is no element of it.
      return role == PlaceAnswer<ReducedRole>(ReducedRole::Result) ? Independent() : role;
    });
    if (readers.firstElsewhere())
      return {};
    auto reads = [&](const HloInstruction &instr) { return readers.at(instr) != nullptr; };
    auto isReadBy = [&](const ReductionFrame &stage) {
      return llvm::any_of(stage.heroes, [&](const ReductionHero &hero) {
        return llvm::any_of(hero.instr->operands(), [&](const HloInstruction *operand) { return reads(*operand); });
      });
    };
    llvm::SmallVector<unsigned> stages;
    for (auto [i, stage] : llvm::enumerate(found.stages))
      if (isReadBy(stage))
        stages.push_back(unsigned(i));
    if (llvm::any_of(found.roots, [&](unsigned root) { return reads(*graph.roots()[root].instr); }))
      stages.push_back(unsigned(found.stages.size()));
    if (found.columns && isReadBy(*found.columns))
      stages.push_back(unsigned(found.stages.size()));
    return stages;
  }

  /// Is it `length` elements in the order of a row's, repeated for each row?
  static bool isSameInRows(const HloInstruction &instr, const ReducedShape &shape) {
    if (instr.opcode() != Opcode::Broadcast || instr.shape().numElements() != shape.elements() ||
        instr.operand(0)->shape().numElements() != shape.length || shape.length == 1 || shape.count == 1)
      return false;
    int64_t elements = 1;
    for (int64_t dim : instr.shape().minorToMajor()) {
      if (elements == shape.length)
        break;
      if (instr.shape().dim(dim) > 1 && !llvm::is_contained(instr.ints(AttributeKey::Dimensions), dim))
        return false;
      elements *= instr.shape().dim(dim);
    }
    return elements == shape.length;
  }

  void findSameInRows(StagedReductions &found) const {
    SameInRows &same = found.sameInRows;
    llvm::BitVector readsMemory(stageOf.size());
    for (const HloInstruction *instr : graph.instructions()) {
      readsMemory[instr->id()] = instr->opcode() == Opcode::Parameter ||
                                 llvm::any_of(instr->operands(), [&](auto *read) { return readsMemory[read->id()]; });
      if (!readsMemory[instr->id()] || !isSameInRows(*instr, found.shape) ||
          deviceBits(instr->shape().elementType()) < 8)
        continue;
      llvm::SmallVector<unsigned> readers = stagesThatRead(*instr, found);
      if (readers.empty())
        continue;
      same.firstStage = same.broadcasts.empty() ? readers.front() : std::min(same.firstStage, readers.front());
      same.broadcasts.push_back(instr);
    }
  }

  const FusionGraph &graph;
  const std::string line;
  const ReducedLines lines;
  Places<ReducedRole> roles;
  llvm::BitVector isOfColumns;   ///< reduces columns beside rows
  std::vector<unsigned> stageOf; ///< stages that are complete where the instruction can be computed
};

} // namespace

std::optional<ReducedShape> shapeOfReduction(const HloInstruction &reduce) {
  for (ReducedLines lines : {ReducedLines::Rows, ReducedLines::Columns})
    if (std::variant<ReducedShape, Rejection> shape = shapeOf({&reduce}, lines);
        std::holds_alternative<ReducedShape>(shape))
      return std::get<ReducedShape>(shape);
  return std::nullopt;
}

std::optional<ReducedShape> rowsOfColumnReduction(const HloInstruction &reduce) {
  std::variant<ReductionFrame, Rejection> match = columnsOf({&reduce});
  auto *frame = std::get_if<ReductionFrame>(&match);
  return frame ? std::optional(ReducedShape{frame->numReduced(), frame->numResults()}) : std::nullopt;
}

std::variant<StagedReductions, Rejection> matchStages(const FusionGraph &graph, ReducedLines lines) {
  StagedReductions found;
  if (std::optional<Rejection> why = StagesMatch(graph, lines).match(found))
    return std::move(*why);
  return found;
}

HeldStreams streamsOf(const FusionGraph &graph, const ReducedShape &shape, llvm::ArrayRef<unsigned> roots) {
  HeldStreams streams;
  for (const HloInstruction *instr : graph.instructions()) {
    if (!instr->shape().isArray() || instr->shape().numElements() != shape.elements())
      continue;
    if (instr->opcode() == Opcode::Parameter) {
      streams.widths.add(instr->shape());
      ++streams.inputs;
    }
    if (isFloat(instr->shape().elementType()) || instr->opcode() == Opcode::Parameter)
      streams.heldBits = std::max(streams.heldBits, deviceBits(instr->shape().elementType()));
  }
  for (unsigned root : roots)
    streams.widths.add(graph.roots()[root].shape);
  return streams;
}

ComputedSpaces spacesOfStages(llvm::ArrayRef<ReductionFrame> stages, llvm::ArrayRef<unsigned> roots,
                              llvm::ArrayRef<unsigned> resultRoots, bool inEachStage, const FusionGraph &graph,
                              mlir::MLIRContext *context) {
  ComputedSpaces result;
  const Shape &space = stages.front().operandShape();
  for (const ReductionFrame &stage : stages) {
    if (result.spaces.empty() || inEachStage)
      result.spaces.emplace_back();
    for (const ReductionHero &hero : stage.heroes) {
      result.kept.push_back(hero.instr);
      for (unsigned i = 0; i < hero.instr->numOperands() / 2; ++i)
        result.spaces.back().values.push_back(
            {hero.instr->operand(i), bitcastIndexing(space, hero.instr->operand(i)->shape(), context)});
    }
  }
  if (inEachStage)
    result.spaces.emplace_back();
  for (unsigned root : roots)
    result.spaces.back().values.push_back(
        {graph.roots()[root].instr, bitcastIndexing(space, graph.roots()[root].shape, context)});
  if (resultRoots.empty())
    return result;
  ComputedSpace &ofResults = result.spaces.emplace_back();
  for (unsigned root : resultRoots)
    ofResults.values.push_back({graph.roots()[root].instr, bitcastIndexing(stages.front().heroes.front().kept,
                                                                           graph.roots()[root].shape, context)});
  return result;
}

std::string textOfStages(llvm::ArrayRef<ReductionFrame> stages, llvm::ArrayRef<unsigned> roots,
                         llvm::ArrayRef<unsigned> resultRoots, llvm::StringRef lines) {
  std::string result;
  llvm::raw_string_ostream os(result);
  auto list = [&](llvm::StringRef name, llvm::ArrayRef<unsigned> numbers) {
    if (numbers.empty())
      return;
    os << name << " ";
    llvm::interleave(numbers, os, ",");
    os << ", ";
  };
  list("roots", roots);
  list(fmt::format("roots of {}", lines.str()), resultRoots);
  os << fmt::format("{} stage{}", stages.size(), stages.size() == 1 ? "" : "s");
  return result;
}

} // namespace hloc
