// Which contractions of a fusion one kernel makes, and which outputs of them.

#include "fusion/ContractionMatch.h"
#include "hloc/fusion/HloIndexing.h"
#include "hloc/fusion/OutputMaps.h"
#include "hloc/hlo/InstructionKey.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>

using namespace mlir;

namespace hloc {
namespace {

/// Of one kernel: more have hardly any registers left for their sums.
constexpr size_t mostProducts = 4;

/// The hero, and its twins behind it.
std::variant<llvm::SmallVector<const HloInstruction *>, Rejection> heroesOf(const FusionGraph &graph) {
  llvm::SmallVector<const HloInstruction *> heroes;
  llvm::copy_if(graph.instructions(), std::back_inserter(heroes),
                [](const HloInstruction *instr) { return isContraction(*instr); });
  if (heroes.empty())
    return Rejection{"there is no contraction"};
  if (heroes.size() > mostProducts)
    return Rejection{fmt::format("there are {} contractions", heroes.size())};
  const HloInstruction &hero = *heroes.front();
  const std::string name = hero.name().str();
  if (hero.opcode() == Opcode::ScaledDot || (hero.opcode() == Opcode::Convolution && hero.numOperands() != 2))
    return Rejection{fmt::format("`{}` has more than two factors", name)};
  ElementType type = hero.shape().elementType();
  if (isComplex(type) || isPred(type))
    return Rejection{fmt::format("the terms of `{}` are no numbers of one register", name)};
  return heroes;
}

/// Do they contract in the same way, if their operands have the same maps?
bool areOfOneKind(const HloInstruction &a, const HloInstruction &b) {
  if (a.opcode() != b.opcode() || a.numOperands() != b.numOperands() || a.shape() != b.shape() ||
      ContractionPlan::algorithmOf(a) != ContractionPlan::algorithmOf(b))
    return false;
  // (Which dimensions of a dot are what is in these maps.)
  const bool isSame = a.opcode() == Opcode::Dot || doSameWork(a, b, std::equal_to<>());
  return isSame && llvm::equal(a.operands().drop_front(2), b.operands().drop_front(2)) &&
         ContractionPlan::fragmentTypes(a) == ContractionPlan::fragmentTypes(b) &&
         ContractionPlan::piecesOf(a, ContractionPlan::algorithmOf(a)) ==
             ContractionPlan::piecesOf(b, ContractionPlan::algorithmOf(b));
}

/// Which operand of all products is one value. (That it is read in the same way the planner finds out.)
std::variant<unsigned, Rejection> findSharedOperand(llvm::ArrayRef<const HloInstruction *> heroes) {
  const HloInstruction &hero = *heroes.front();
  for (const HloInstruction *twin : heroes.drop_front())
    if (!areOfOneKind(hero, *twin))
      return Rejection{
          fmt::format("`{}` and `{}` are no contractions of one kind and size", hero.name().str(), twin->name().str())};
  for (unsigned operand : {0u, 1u})
    if (llvm::all_of(heroes,
                     [&](const HloInstruction *twin) { return twin->operand(operand) == hero.operand(operand); }))
      return operand;
  return Rejection{"there are several contractions, which share no operand"};
}

/// Outputs are made where a sum is complete.
std::optional<Rejection> assignRoots(const FusionGraph &graph, MLIRContext *context, ContractionPlan &plan) {
  const HloInstruction &hero = *plan.hero;
  if (rearrangements(graph, plan.heroes(), context).firstElsewhere())
    return Rejection{fmt::format("`{}` is read at several places, or not as a whole", hero.name().str())};
  for (auto [number, root] : llvm::enumerate(graph.roots())) {
    if (root.shape.numElements() != hero.shape().numElements())
      return Rejection{fmt::format("output {} has not the size of `{}`", number, hero.name().str())};
    if (deviceBits(root.shape.elementType()) < 8)
      return Rejection{fmt::format("output {} shares bytes between elements", number)};
    plan.roots.push_back(unsigned(number));
  }
  return std::nullopt;
}

/// Groups of a ragged-dot.
std::optional<Rejection> beginGroups(ContractionPlan &plan) {
  const HloInstruction &hero = *plan.hero;
  const Shape &sizes = hero.operand(2)->shape();
  const RaggedDims dims = raggedDims(hero);
  if (sizes.rank() != 1 || dims.kind == RaggedDims::Kind::Batch)
    return Rejection{fmt::format("the groups of `{}` are of a batch, or others in each", hero.name().str())};
  llvm::ArrayRef<int64_t> groupDims = hero.ints(AttributeKey::RhsGroupDims);
  if (dims.kind == RaggedDims::Kind::Free &&
      (groupDims.size() != 1 || hero.operand(1)->shape().dim(unsigned(groupDims.front())) != sizes.dim(0)))
    return Rejection{fmt::format("the groups of `{}` have not one right side each", hero.name().str())};
  const int64_t ragged = hero.ints(AttributeKey::LhsRaggedDims).front();
  plan.ragged = RaggedGroups{dims, sizes.dim(0), hero.operand(0)->shape().dim(unsigned(ragged))};
  return std::nullopt;
}

} // namespace

std::variant<ContractionPlan, Rejection> beginContraction(const FusionGraph &graph, MLIRContext *context) {
  auto found = heroesOf(graph);
  if (auto *why = std::get_if<Rejection>(&found))
    return std::move(*why);
  const auto &heroes = std::get<llvm::SmallVector<const HloInstruction *>>(found);
  const std::variant<unsigned, Rejection> shared = findSharedOperand(heroes);
  if (const auto *why = std::get_if<Rejection>(&shared))
    return *why;
  ContractionPlan plan;
  plan.hero = heroes.front();
  for (const HloInstruction *hero : llvm::drop_begin(heroes)) {
    ContractionTwin &twin = plan.twins.emplace_back();
    twin.hero = hero;
    twin.side.operand = 1 - std::get<unsigned>(shared);
  }
  plan.bits = std::max(32u, deviceBits(plan.hero->shape().elementType()));
  if (plan.hero->opcode() == Opcode::RaggedDot)
    if (std::optional<Rejection> why = beginGroups(plan))
      return std::move(*why);
  if (std::optional<Rejection> why = assignRoots(graph, context, plan))
    return std::move(*why);
  return plan;
}

std::optional<Rejection> checkOutputs(const ContractionPlan &plan, const FusionGraph &graph, MLIRContext *context) {
  const std::optional<unsigned> part = plan.minorOfStored();
  if (!part)
    return std::nullopt;
  const unsigned minor = plan.space.resultDim(*part);
  const int64_t least = std::min<int64_t>(plan.space.dim(*part), 2);
  const std::vector<IndexingMap> places = outputMaps(graph, plan.heroes(), plan.roots, context);
  for (auto [number, place] : llvm::zip_equal(plan.roots, places))
    if (neighboursKept(place, graph.roots()[number].shape, minor, least) < least)
      return Rejection{fmt::format("output {} has other neighbours than `{}`", number, plan.hero->name().str())};
  return std::nullopt;
}

bool dependsOnDim(const IndexingMap &map, unsigned dim) {
  auto reads = [&](AffineExpr expression) { return expression.isFunctionOfDim(dim); };
  return llvm::any_of(map.affine().getResults(), reads) ||
         llvm::any_of(map.constraints(), [&](const auto &constraint) { return reads(constraint.first); });
}

/// One test of indices for an element is done under predicates; those behind others, and in loops, are branches.
/// (GroupChain counts the branches of loops, where one concatenate or pad is enough.)
unsigned testsBefore(const HloInstruction &operand) {
  llvm::SmallPtrSet<const HloInstruction *, 16> seen;
  llvm::SmallVector<const HloInstruction *> open = {&operand};
  unsigned tests = 0;
  bool hasLoop = false;
  while (!open.empty()) {
    const HloInstruction *instr = open.pop_back_val();
    if (!seen.insert(instr).second)
      continue;
    tests += llvm::is_contained({Opcode::Concatenate, Opcode::Pad, Opcode::DynamicUpdateSlice}, instr->opcode());
    hasLoop |= hasTrait(instr->opcode(), OpcodeTrait::Contracts);
    llvm::append_range(open, instr->operands());
  }
  return hasLoop ? 2 * tests : tests;
}

/// Words of fragments fill sectors as they are, and are stored so if nothing else is made of them.
unsigned chooseOutputVector(const ContractionPlan &plan, const FusionGraph &graph, MLIRContext *context) {
  const llvm::SmallVector<const HloInstruction *, 3> heroes = plan.heroes();
  unsigned bits = deviceBits(plan.hero->shape().elementType());
  for (const FusionRoot &root : graph.roots())
    bits = std::min(bits, deviceBits(root.shape.elementType()));
  if (bits >= 32 && plan.storesColumns == plan.areColumnsOfOutputs() &&
      llvm::all_of(graph.roots(), [&](const FusionRoot &root) { return llvm::is_contained(heroes, root.instr); }))
    return 0;
  const std::optional<unsigned> part = plan.minorOfStored();
  if (!part)
    return 1;
  const unsigned minor = plan.space.resultDim(*part);
  const int64_t size = plan.space.dim(*part);
  int64_t neighbours = std::min<int64_t>(size & -size, ContractionPlan::sharedVectorBits / std::max(bits, 16u));
  if (plan.storesColumns)
    neighbours = std::min(neighbours, ContractionTile::fragmentRows / 2);
  const std::vector<IndexingMap> places = outputMaps(graph, heroes, plan.roots, context);
  for (auto [number, place] : llvm::zip_equal(plan.roots, places))
    neighbours = std::min(
        neighbours,
        int64_t(llvm::bit_floor(uint64_t(neighboursKept(place, graph.roots()[number].shape, minor, neighbours)))));
  return unsigned(neighbours);
}

} // namespace hloc
