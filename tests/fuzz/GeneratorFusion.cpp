// Generator: fusions whose outputs may lie where their operands do, and results that lie in parameters.
#include "fuzz/GeneratorState.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

using Key = AttributeKey;

/// An array of the shape of `x`, some of which can be computed in the place of an operand and some cannot, as they read
/// elements that are written by other threads.
HloInstruction *outputOf(GeneratorState &g, HloBuilder &builder, Operands x, unsigned number) {
  const Shape &shape = x[0]->shape();
  llvm::SmallVector<int64_t, 6> all;
  for (int64_t i = 0; i < shape.rank(); ++i)
    all.push_back(i);
  HloInstruction *first = x[g.below(x.size())], *second = x[g.below(x.size())];
  if (g.oneIn(3))
    second = builder.add(Opcode::Reverse, shape, {second}, {builder.ints(Key::Dimensions, all)},
                         "back" + std::to_string(number));
  if (g.oneIn(4))
    return second;
  return builder.add(Opcode::Add, shape, {first, second}, {}, "y" + std::to_string(number));
}

/// Some outputs with an operand each; all of one shape.
Attribute outputAliases(GeneratorState &g, unsigned outputs, unsigned operands) {
  auto order = g.permutation(operands);
  llvm::SmallVector<OutputAlias> aliases;
  for (unsigned i = 0; i < outputs && i < operands; ++i) {
    if (g.oneIn(4))
      continue;
    int64_t index[] = {i};
    llvm::ArrayRef<int64_t> path(index, outputs > 1 ? 1 : 0);
    aliases.push_back({g.module.arena().saveList(path), order[i], {}});
  }
  return {Key::OutputToOperandAliasing, g.module.arena().saveList(llvm::ArrayRef<OutputAlias>(aliases))};
}

void printIndex(llvm::raw_ostream &os, llvm::ArrayRef<int64_t> index) {
  os << "{";
  llvm::interleave(index, os, ",");
  os << "}";
}

} // namespace

HloInstruction *generateFusion(GeneratorState &g) {
  llvm::SmallVector<HloInstruction *, 3> operands{g.anyArrayInstruction()};
  const Shape shape = operands[0]->shape();
  for (int64_t more = g.below(3); more > 0; --more) {
    HloInstruction *another = g.withShape(shape);
    if (another->shape() == shape)
      operands.push_back(another);
  }
  unsigned outputs = g.between(1, 2);
  llvm::SmallVector<Shape, 3> shapes(operands.size(), shape);
  HloComputation *body = g.function(shapes, [&](HloComputation &computation, Operands x) {
    HloBuilder builder(computation);
    llvm::SmallVector<HloInstruction *, 2> made;
    for (unsigned i = 0; i < outputs; ++i)
      made.push_back(outputOf(g, builder, x, i));
    return outputs == 1 ? made.front() : builder.tuple(made);
  });
  llvm::SmallVector<Attribute, 3> attributes{g.integer(Key::Kind, g.below(3)), g.callee(Key::Calls, body)};
  if (Attribute aliases = outputAliases(g, outputs, operands.size());
      !std::get<llvm::ArrayRef<OutputAlias>>(aliases.value).empty())
    attributes.push_back(aliases);
  return g.add(Opcode::Fusion, body->root()->shape(), operands, attributes);
}

void generateDonations(GeneratorState &g) {
  const HloInstruction &root = *g.entry->root();
  if (g.oneIn(2) || !(root.shape().isArray() || root.shape().isTuple()))
    return;
  llvm::SmallVector<HloInstruction *> parameters(g.entry->parameters());
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator;
  for (const Shape::Leaf &leaf : root.shape().leaves()) {
    auto same = [&](HloInstruction *parameter) { return parameter && parameter->shape() == leaf.shape; };
    auto found = llvm::find_if(parameters, same);
    if (found == parameters.end() || g.oneIn(4))
      continue;
    os << separator;
    printIndex(os, llvm::SmallVector<int64_t>(leaf.index.begin(), leaf.index.end()));
    os << ": (" << (*found)->parameterNumber() << ", {}, " << (g.oneIn(2) ? "may" : "must") << "-alias)";
    *found = nullptr; // a parameter is given once
  }
  if (!text.empty())
    g.module.setAttributes({g.string(Key::InputOutputAlias, "{ " + text + " }")});
}

} // namespace hloc
