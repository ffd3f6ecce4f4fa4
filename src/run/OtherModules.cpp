#include "OtherModules.h"

#include "hloc/hlo/HloEditor.h"
#include "hloc/hlo/Verifier.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/transforms/ShrinkModule.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <set>

namespace hloc {

namespace {

using Order = llvm::SmallVector<int64_t>; ///< minor to major

bool isSound(const HloModule &module) {
  DiagnosticEngine unheard;
  return verify(module, unheard);
}

std::string listOf(const Order &order) { return fmt::format("{{{}}}", fmt::join(order, ",")); }

/// The layout in which `value` has the elements in the order in which `reader` leaves them, a transpose or copy of it.
Order orderFor(const HloInstruction &reader) {
  const llvm::ArrayRef<int64_t> own = reader.shape().minorToMajor();
  if (reader.opcode() == Opcode::Copy)
    return {own.begin(), own.end()};
  const llvm::ArrayRef<int64_t> from = reader.ints(AttributeKey::Dimensions);
  Order order;
  for (int64_t dim : own)
    order.push_back(from[size_t(dim)]);
  return order;
}

/// The layout in which `reader` has the elements in the order in which its operand has them.
Order orderAfter(const HloInstruction &reader) {
  const llvm::ArrayRef<int64_t> operand = reader.operand(0)->shape().minorToMajor();
  if (reader.opcode() == Opcode::Copy)
    return {operand.begin(), operand.end()};
  const llvm::ArrayRef<int64_t> from = reader.ints(AttributeKey::Dimensions);
  Order order;
  for (int64_t dim : operand)
    order.push_back(int64_t(llvm::find(from, dim) - from.begin()));
  return order;
}

/// The module with some values of the entry in another layout, and its signature as they are.
class Relaid {
public:
  explicit Relaid(const HloModule &module) : made(cloneModule(module)) {}

  void set(llvm::StringRef name, const Order &order) {
    for (HloInstruction *instr : made->entry()->instructions())
      if (instr->name() == name) {
        HloEditor editor(*made->entry());
        editor.setShape(instr, instr->shape().withLayout(order));
      }
  }

  /// Null if it means nothing.
  std::unique_ptr<HloModule> finish() {
    HloComputation &entry = *made->entry();
    if (HloInstruction *root = entry.root(); root->opcode() == Opcode::Tuple) {
      std::vector<Shape> shapes;
      for (const HloInstruction *operand : root->operands())
        shapes.push_back(operand->shape());
      HloEditor(entry).setShape(root, Shape::tuple(shapes));
    }
    if (made->find(AttributeKey::EntryComputationLayout)) {
      std::vector<Shape> shapes(entry.numParameters(), Shape());
      for (const HloInstruction *parameter : entry.parameters())
        shapes[size_t(parameter->parameterNumber())] = parameter->shape();
      shapes.push_back(entry.root()->shape());
      std::vector<Attribute> attributes(made->attributes());
      for (Attribute &attribute : attributes)
        if (attribute.key == AttributeKey::EntryComputationLayout)
          attribute.value = llvm::ArrayRef<Shape>(made->arena().saveList(llvm::ArrayRef<Shape>(shapes)));
      made->setAttributes(attributes);
    }
    return isSound(*made) ? std::move(made) : nullptr;
  }

private:
  std::unique_ptr<HloModule> made;
};

/// What is elementwise between a reduction and what it is of, the latter last; itself at least.
llvm::SmallVector<const HloInstruction *> chainOf(const HloInstruction &reduced) {
  constexpr size_t most = 16;
  llvm::SmallVector<const HloInstruction *> chain = {&reduced};
  while (isElementwise(chain.back()->opcode()) && chain.size() < most) {
    const HloInstruction *next = nullptr;
    for (const HloInstruction *operand : chain.back()->operands())
      if (!next && operand->opcode() != Opcode::Broadcast && operand->opcode() != Opcode::Constant &&
          operand->shape().isArray() && operand->shape().sameDims(reduced.shape()))
        next = operand;
    if (!next)
      break;
    chain.push_back(next);
  }
  return chain;
}

class LayoutSearch {
public:
  explicit LayoutSearch(const HloModule &module) : module(module), entry(*module.entry()) {}

  std::vector<OtherModule> run() {
    for (const HloInstruction *instr : entry.instructions()) {
      if (instr->opcode() == Opcode::Transpose || (instr->opcode() == Opcode::Copy && instr->shape().isArray()))
        ofTransposition(*instr);
      if (instr->opcode() == Opcode::Reduce && instr->shape().isArray())
        ofReduction(*instr);
    }
    return std::move(found);
  }

private:
  bool isResult(const HloInstruction &instr) const {
    const HloInstruction *root = entry.root();
    return &instr == root || (root->opcode() == Opcode::Tuple && llvm::is_contained(root->operands(), &instr));
  }

  void ofTransposition(const HloInstruction &reader) {
    const HloInstruction &value = *reader.operand(0);
    const Order before = orderFor(reader), after = orderAfter(reader);
    if (!value.shape().isArray() || llvm::equal(before, value.shape().minorToMajor()))
      return;
    add({&value}, before,
        fmt::format("`{}` reads `{}` in another order than it has: in layout {}", reader.name().str(),
                    value.name().str(), listOf(before)),
        reader);
    if (isResult(reader))
      add({&reader}, after,
          fmt::format("result `{}` has another order than `{}`: in layout {}", reader.name().str(), value.name().str(),
                      listOf(after)),
          reader);
  }

  /// Rows instead of columns.
  void ofReduction(const HloInstruction &reduce) {
    const Shape &shape = reduce.operand(0)->shape();
    if (!shape.isArray() || shape.rank() < 2)
      return;
    const llvm::ArrayRef<int64_t> dims = reduce.ints(AttributeKey::Dimensions), order = shape.minorToMajor();
    if (llvm::is_contained(dims, order.front()))
      return;
    Order wanted;
    llvm::copy_if(order, std::back_inserter(wanted), [&](int64_t dim) { return llvm::is_contained(dims, dim); });
    llvm::copy_if(order, std::back_inserter(wanted), [&](int64_t dim) { return !llvm::is_contained(dims, dim); });
    const llvm::SmallVector<const HloInstruction *> chain = chainOf(*reduce.operand(0));
    add(chain, wanted,
        fmt::format("`{}` reduces `{}` across memory: in layout {}", reduce.name().str(), chain.back()->name().str(),
                    listOf(wanted)),
        reduce);
  }

  void add(llvm::ArrayRef<const HloInstruction *> values, const Order &order, std::string what,
           const HloInstruction &reader) {
    if (!known.insert({values.back(), std::vector<int64_t>(order.begin(), order.end())}).second)
      return;
    Relaid relaid(module);
    for (const HloInstruction *value : values)
      relaid.set(value->name(), order);
    if (std::unique_ptr<HloModule> made = relaid.finish())
      found.push_back({std::move(made),
                       values.back()->range(),
                       {values.back()->name().str(), reader.name().str()},
                       std::move(what)});
  }

  const HloModule &module;
  const HloComputation &entry;
  std::set<std::pair<const HloInstruction *, std::vector<int64_t>>> known;
  std::vector<OtherModule> found;
};

/// Have such instructions the same sizes as what they read, but for those that they sum over?
bool keepsSizes(const HloInstruction &instr) {
  constexpr Opcode others[] = {Opcode::Parameter, Opcode::Broadcast, Opcode::Transpose, Opcode::Copy,
                               Opcode::Dot,       Opcode::Reduce,    Opcode::Tuple,     Opcode::GetTupleElement};
  return isElementwise(instr.opcode()) || llvm::is_contained(others, instr.opcode()) ||
         (instr.opcode() == Opcode::Constant && instr.shape().isScalar());
}

} // namespace

std::vector<OtherModule> withOtherLayouts(const HloModule &module) { return LayoutSearch(module).run(); }

std::vector<OtherModule> withFilledDims(const HloModule &module) {
  constexpr int64_t leastSize = 32, ofVector = 16; // elements: a tile's, and four vectors of f32
  std::vector<OtherModule> found;
  for (const HloComputation *computation : reachableComputations(module))
    if (!llvm::all_of(computation->instructions(), [](const HloInstruction *instr) { return keepsSizes(*instr); }))
      return found;
  std::set<int64_t> known;
  for (const HloInstruction *parameter : module.entry()->parameters()) {
    if (!parameter->shape().isArray())
      continue;
    for (int64_t size : parameter->shape().dims()) {
      if (size < leastSize || size % ofVector == 0 || !known.insert(size).second)
        continue;
      const int64_t filled = (size + ofVector - 1) / ofVector * ofVector;
      std::unique_ptr<HloModule> made = renameModule(module, {{{size, filled}}, {}});
      if (isSound(*made))
        found.push_back({std::move(made),
                         parameter->range(),
                         {parameter->name().str()},
                         fmt::format("`{}` has {} elements in a dimension, no multiple of {}: filled up to {}",
                                     parameter->name().str(), size, ofVector, filled)});
    }
  }
  return found;
}

} // namespace hloc
