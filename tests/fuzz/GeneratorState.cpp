#include "fuzz/GeneratorState.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace hloc {

/// A constant is text: more would only be slow to read.
constexpr int64_t maxConstantElements = 1000;

GeneratorState::GeneratorState(HloModule &module, uint64_t seed, const GeneratorOptions &options, llvm::StringRef name)
    : module(module), options(options), random(seed) {
  entry = module.addComputation(name);
  module.setEntry(entry);
}

ElementType GeneratorState::anyType() {
  static const ElementType types[] = {
#define HLOC_ELEMENT_TYPE(name, text, bits, category) ElementType::name,
#include "hloc/hlo/ElementTypes.def"
  };
  // The types of real programs should meet each other often enough to combine.
  static const ElementType common[] = {ElementType::F32, ElementType::BF16, ElementType::S32, ElementType::Pred};
  if (oneIn(2))
    return common[below(std::size(common))];
  ElementType type = types[below(std::size(types))];
  const bool isMissing = options.forKernels && (type == ElementType::S1 || type == ElementType::U1);
  return isArrayType(type) && !isMissing ? type : ElementType::F32;
}

llvm::SmallVector<int64_t, 6> GeneratorState::permutation(unsigned n) {
  llvm::SmallVector<int64_t, 6> order(n);
  for (unsigned i = 0; i < n; ++i)
    order[i] = i;
  for (unsigned i = n; i > 1; --i)
    std::swap(order[i - 1], order[below(i)]);
  return order;
}

llvm::SmallVector<int64_t, 6> GeneratorState::someOf(unsigned n) {
  llvm::SmallVector<int64_t, 6> chosen;
  for (unsigned i = 0; i < n; ++i)
    if (oneIn(2))
      chosen.push_back(i);
  return chosen;
}

llvm::SmallVector<int64_t, 6> GeneratorState::smallDims(unsigned rank) {
  llvm::SmallVector<int64_t, 6> dims;
  int64_t left = options.maxElements;
  for (unsigned i = 0; i < rank; ++i) {
    int64_t size = oneIn(24) ? 0 : between(1, std::max<int64_t>(1, std::min<int64_t>(left, 8)));
    dims.push_back(size);
    left /= std::max<int64_t>(size, 1);
  }
  return dims;
}

Shape GeneratorState::anyArray() {
  if (options.edgeSizes)
    return laidOut(Shape::array(anyType(), edgeDims()));
  return laidOut(Shape::array(anyType(), smallDims(below(4))));
}

Shape GeneratorState::laidOut(const Shape &shape) {
  if (!options.randomLayouts || !shape.isArray() || shape.rank() < 2 || oneIn(2))
    return shape;
  return shape.withLayout(permutation(shape.rank()));
}

/// Only its done op may read what a start op makes.
static bool isReadable(const HloInstruction *instr) {
  switch (instr->opcode()) {
  case Opcode::AsyncStart:
  case Opcode::CopyStart:
  case Opcode::AllReduceStart:
  case Opcode::AllGatherStart:
  case Opcode::CollectivePermuteStart:
    return false;
  default:
    return true;
  }
}

HloInstruction *GeneratorState::anyInstruction() {
  if (entry->instructions().empty())
    return anyArrayInstruction();
  HloInstruction *instr = entry->instructions()[below(entry->instructions().size())];
  return isReadable(instr) ? instr : anyArrayInstruction();
}

HloInstruction *GeneratorState::anyArrayInstruction() {
  return arrayWhere([](const Shape &) { return true; }, anyArray());
}

HloInstruction *GeneratorState::arrayWhere(llvm::function_ref<bool(const Shape &)> suits, const Shape &otherwise) {
  llvm::SmallVector<HloInstruction *> found;
  for (HloInstruction *instr : entry->instructions())
    if (isReadable(instr) && instr->shape().isArray() && instr->shape().numElements() <= 4 * options.maxElements &&
        suits(instr->shape()))
      found.push_back(instr);
  return found.empty() || oneIn(6) ? withShape(otherwise) : found[below(found.size())];
}

HloInstruction *GeneratorState::withShape(const Shape &shape) {
  llvm::SmallVector<HloInstruction *> found;
  for (HloInstruction *instr : entry->instructions())
    if (isReadable(instr) && instr->shape().compatible(shape))
      found.push_back(instr);
  if (!found.empty() && !oneIn(4))
    return found[below(found.size())];
  bool literal = shape.isArray() && shape.numElements() <= maxConstantElements && oneIn(3);
  return literal ? constant(laidOut(shape)) : parameter(laidOut(shape));
}

HloInstruction *GeneratorState::parameter(const Shape &shape) {
  return HloBuilder(*entry).parameter(entry->numParameters(), shape, "p" + std::to_string(entry->numParameters()));
}

HloInstruction *GeneratorState::constant(const Shape &shape) {
  Literal literal(shape);
  for (int64_t i = 0; i < literal.numElements(); ++i) {
    ElementType type = shape.elementType();
    if (isComplex(type))
      literal.setComplex(i, {double(between(-9, 9)) / 4, double(between(-9, 9)) / 4});
    else if (isFloat(type) && !oneIn(4))
      literal.setDouble(i, double(between(-64, 64)) / 8);
    else if (isPred(type))
      literal.setInt(i, below(2));
    else if (isInteger(type))
      literal.setInt(i, static_cast<int64_t>(random()));
    else
      literal.setBits(i, random() & (bitWidth(type) == 64 ? ~0ull : (1ull << bitWidth(type)) - 1));
  }
  return HloBuilder(*entry).constant(std::move(literal), "k" + std::to_string(entry->instructions().size()));
}

/// Printers leave out an attribute that has its default value; a module that should round-trip does not have it.
static bool isDefault(const Attribute &attribute) {
  const bool *flag = std::get_if<bool>(&attribute.value);
  return flag && *flag == (attribute.key == AttributeKey::Largest);
}

HloInstruction *GeneratorState::add(Opcode opcode, const Shape &declared, Operands operands, Attributes given) {
  llvm::SmallVector<Attribute, 8> attributes(given);
  llvm::erase_if(attributes, isDefault);
  InstructionSpec spec;
  spec.opcode = opcode;
  spec.shape = declared;
  spec.operands = operands;
  spec.attributes = attributes;
  std::string error, name = (text(opcode) + "." + llvm::Twine(entry->instructions().size())).str();
  spec.name = name;
  std::optional<Shape> shape = inferShape(spec, error);
  if (!shape || (options.edgeSizes && shape->isArray() && shape->numElements() > 2 * options.maxElements))
    return nullptr;
  spec.shape = declared.isArray() || !shape->isArray() ? *shape : laidOut(*shape);
  return entry->add(spec);
}

Attribute GeneratorState::ints(AttributeKey key, llvm::ArrayRef<int64_t> values) {
  return HloBuilder(*entry).ints(key, values);
}

Attribute GeneratorState::string(AttributeKey key, llvm::StringRef text) { return {key, module.arena().save(text)}; }

Attribute GeneratorState::window(llvm::ArrayRef<WindowDim> dims) {
  Window made;
  made.dims.assign(dims.begin(), dims.end());
  return {AttributeKey::Window, module.arena().saveObject(made)};
}

HloComputation *GeneratorState::function(llvm::ArrayRef<Shape> parameters,
                                         llvm::function_ref<HloInstruction *(HloComputation &, Operands)> build) {
  std::string name;
  do
    name = "f" + std::to_string(nextComputation++);
  while (module.findComputation(name));
  HloComputation *made = module.addComputation(name);
  HloBuilder builder(*made);
  llvm::SmallVector<HloInstruction *, 4> values;
  for (const Shape &shape : parameters)
    values.push_back(builder.parameter(values.size(), shape, "x" + std::to_string(values.size())));
  made->setRoot(build(*made, values));
  return made;
}

HloComputation *GeneratorState::reducer(llvm::ArrayRef<ElementType> types) {
  llvm::SmallVector<Shape, 4> shapes;
  for (int copy = 0; copy < 2; ++copy)
    for (ElementType type : types)
      shapes.push_back(Shape::scalar(type));
  return function(shapes, [&](HloComputation &computation, Operands x) {
    HloBuilder builder(computation);
    static const Opcode combiners[] = {Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum};
    llvm::SmallVector<HloInstruction *, 2> combined;
    for (unsigned i = 0; i < types.size(); ++i)
      combined.push_back(builder.add(isComplex(types[i]) ? combiners[below(2)] : combiners[below(4)], shapes[i],
                                     {x[i], x[i + types.size()]}, {}, "r" + std::to_string(i)));
    return combined.size() == 1 ? combined.front() : builder.tuple(combined);
  });
}

HloComputation *GeneratorState::comparator(llvm::ArrayRef<ElementType> types) {
  llvm::SmallVector<Shape, 4> shapes;
  for (ElementType type : types)
    shapes.append(2, Shape::scalar(type));
  auto direction = static_cast<int64_t>(isComplex(types[0]) ? ComparisonDirection::Eq
                                        : oneIn(2)          ? ComparisonDirection::Lt
                                                            : ComparisonDirection::Gt);
  return function(shapes, [&](HloComputation &computation, Operands x) {
    llvm::SmallVector<Attribute, 2> attributes{{AttributeKey::Direction, direction}};
    if (options.forKernels && isFloat(types[0]))
      attributes.push_back({AttributeKey::Type, static_cast<int64_t>(ComparisonType::TotalOrder)});
    return HloBuilder(computation)
        .add(Opcode::Compare, Shape::scalar(ElementType::Pred), {x[0], x[1]}, attributes, "c");
  });
}

} // namespace hloc
