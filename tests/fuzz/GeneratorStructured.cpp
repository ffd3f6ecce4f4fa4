// Generator: dynamic slices, gather, scatter, sorts, reductions, windows, scans.
#include "fuzz/GeneratorState.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Key = AttributeKey;
using Dims = llvm::SmallVector<int64_t, 6>;

ElementType indexType(GeneratorState &g) {
  static const ElementType types[] = {ElementType::S32, ElementType::S64, ElementType::U32, ElementType::U8};
  return types[g.below(std::size(types))];
}

Dims sizesWithin(GeneratorState &g, const Shape &shape) {
  Dims sizes;
  for (int64_t size : shape.dims())
    sizes.push_back(g.between(size ? 1 : 0, size));
  return sizes;
}

HloInstruction *generateDynamicSlice(GeneratorState &g, Opcode opcode, HloInstruction *x) {
  Dims sizes = sizesWithin(g, x->shape());
  Shape part = g.laidOut(x->shape().withDims(sizes));
  llvm::SmallVector<HloInstruction *, 6> operands{x};
  if (opcode == Opcode::DynamicUpdateSlice)
    operands.push_back(g.withShape(part));
  ElementType type = indexType(g);
  for (unsigned i = 0; i < x->shape().rank(); ++i)
    operands.push_back(g.withShape(Shape::scalar(type)));
  if (opcode == Opcode::DynamicUpdateSlice)
    return g.add(opcode, {}, operands, {});
  return g.add(opcode, part, operands, {g.ints(Key::DynamicSliceSizes, sizes)});
}

/// Dimension numbers of a gather or scatter on `operand`, and the shapes that follow from them.
struct Indexing {
  Dims map, collapsed, windowPlaces, sliceSizes, gathered;
  Shape indices = Shape::scalar(ElementType::S32);
  int64_t vectorDim = 0;
};

Indexing chooseIndexing(GeneratorState &g, const Shape &operand) {
  Indexing made;
  made.map = g.permutation(operand.rank());
  made.map.resize(g.below(operand.rank() + 1));
  made.sliceSizes = sizesWithin(g, operand);
  for (int64_t i = 0; i < operand.rank(); ++i)
    if (made.sliceSizes[i] <= 1 && g.oneIn(2))
      made.collapsed.push_back(i);
  Dims outer = g.smallDims(g.below(3));
  Dims indexDims = outer;
  made.vectorDim = g.between(0, outer.size());
  indexDims.insert(indexDims.begin() + made.vectorDim, made.map.size());
  if (made.map.size() == 1 && made.vectorDim == static_cast<int64_t>(outer.size()) && g.oneIn(2))
    indexDims.pop_back(); // the index vector is implied
  made.indices = Shape::array(indexType(g), indexDims);
  unsigned window = operand.rank() - made.collapsed.size(), rank = outer.size() + window;
  Dims places = g.permutation(rank);
  places.resize(window);
  llvm::sort(places);
  made.windowPlaces = places;
  unsigned nextOuter = 0, nextWindow = 0;
  Dims kept;
  for (int64_t i = 0; i < operand.rank(); ++i)
    if (!llvm::is_contained(made.collapsed, i))
      kept.push_back(made.sliceSizes[i]);
  for (int64_t i = 0; i < rank; ++i)
    made.gathered.push_back(llvm::is_contained(places, i) ? kept[nextWindow++] : outer[nextOuter++]);
  return made;
}

HloInstruction *generateGather(GeneratorState &g, HloInstruction *x) {
  Indexing how = chooseIndexing(g, x->shape());
  return g.add(Opcode::Gather, {}, {x, g.withShape(how.indices)},
               {g.ints(Key::OffsetDims, how.windowPlaces), g.ints(Key::CollapsedSliceDims, how.collapsed),
                g.ints(Key::StartIndexMap, how.map), g.integer(Key::IndexVectorDim, how.vectorDim),
                g.ints(Key::SliceSizes, how.sliceSizes)});
}

HloInstruction *generateScatter(GeneratorState &g, HloInstruction *x) {
  Indexing how = chooseIndexing(g, x->shape());
  return g.add(Opcode::Scatter, {}, {x, g.withShape(how.indices), g.withShape(x->shape().withDims(how.gathered))},
               {g.ints(Key::UpdateWindowDims, how.windowPlaces), g.ints(Key::InsertedWindowDims, how.collapsed),
                g.ints(Key::ScatterDimsToOperandDims, how.map), g.integer(Key::IndexVectorDim, how.vectorDim),
                g.callee(Key::ToApply, g.reducer({x->shape().elementType()}))});
}

/// x and up to one more operand of the same dimensions.
llvm::SmallVector<HloInstruction *, 2> alike(GeneratorState &g, HloInstruction *x) {
  llvm::SmallVector<HloInstruction *, 2> operands{x};
  if (g.oneIn(3))
    operands.push_back(g.withShape(Shape::array(g.anyType(), x->shape().dims())));
  return operands;
}

llvm::SmallVector<ElementType, 2> typesOf(Operands operands) {
  llvm::SmallVector<ElementType, 2> types;
  for (HloInstruction *operand : operands)
    types.push_back(operand->shape().elementType());
  return types;
}

HloInstruction *generateReduction(GeneratorState &g, Opcode opcode, HloInstruction *x, Attribute where) {
  llvm::SmallVector<HloInstruction *, 4> operands(alike(g, x));
  llvm::SmallVector<ElementType, 2> types = typesOf(operands);
  for (ElementType type : types)
    operands.push_back(g.withShape(Shape::scalar(type)));
  return g.add(opcode, {}, operands, {where, g.callee(Key::ToApply, g.reducer(types))});
}

llvm::SmallVector<WindowDim, 4> smallWindow(GeneratorState &g, unsigned rank, bool plain) {
  llvm::SmallVector<WindowDim, 4> dims(rank);
  for (WindowDim &dim : dims) {
    dim.size = g.between(1, 3);
    dim.stride = g.between(1, 2);
    if (plain)
      continue;
    dim.padLow = g.below(2);
    dim.padHigh = g.below(2);
    dim.baseDilation = g.oneIn(4) ? 2 : 1;
    dim.windowDilation = g.oneIn(4) ? 2 : 1;
  }
  return dims;
}

HloInstruction *generateSelectAndScatter(GeneratorState &g, HloInstruction *x) {
  const Shape &shape = x->shape();
  ElementType type = shape.elementType();
  llvm::SmallVector<WindowDim, 4> window = smallWindow(g, shape.rank(), /*plain=*/true);
  Dims sizes;
  for (unsigned i = 0; i < shape.rank(); ++i)
    sizes.push_back(shape.dim(i) < window[i].size ? 0 : (shape.dim(i) - window[i].size) / window[i].stride + 1);
  return g.add(
      Opcode::SelectAndScatter, {}, {x, g.withShape(shape.withDims(sizes)), g.withShape(Shape::scalar(type))},
      {g.window(window), g.callee(Key::Select, g.comparator({type})), g.callee(Key::Scatter, g.reducer({type}))});
}

HloInstruction *generateScan(GeneratorState &g, HloInstruction *x) {
  if (x->shape().rank() == 0)
    return nullptr;
  int64_t dim = g.below(x->shape().rank());
  Dims dims(x->shape().dims());
  dims.erase(dims.begin() + dim);
  Shape slice = x->shape().withDims(dims);
  HloComputation *step = g.function({slice, slice}, [&](HloComputation &computation, Operands values) {
    HloBuilder builder(computation);
    HloInstruction *sum = builder.add(Opcode::Add, slice, {values[0], values[1]}, {}, "sum");
    return builder.tuple({sum, sum});
  });
  return g.add(Opcode::Scan, {}, {x, g.withShape(slice)},
               {g.ints(Key::Dimensions, {dim}), g.integer(Key::NumCarries, 1), g.flag(Key::IsReverse, g.oneIn(2)),
                g.callee(Key::ToApply, step)});
}

HloInstruction *generateMap(GeneratorState &g, HloInstruction *x) {
  Dims all;
  for (int64_t i = 0; i < x->shape().rank(); ++i)
    all.push_back(i);
  return g.add(Opcode::Map, {}, {x, g.withShape(x->shape())},
               {g.ints(Key::Dimensions, all), g.callee(Key::ToApply, g.reducer({x->shape().elementType()}))});
}

HloInstruction *generateSort(GeneratorState &g, HloInstruction *x) {
  llvm::SmallVector<HloInstruction *, 2> operands = alike(g, x);
  return g.add(Opcode::Sort, {}, operands,
               {g.ints(Key::Dimensions, {g.below(x->shape().rank())}), g.flag(Key::IsStable, g.oneIn(2)),
                g.callee(Key::ToApply, g.comparator(typesOf(operands)))});
}

} // namespace

HloInstruction *generateIndexed(GeneratorState &g, Opcode opcode) {
  HloInstruction *x = g.anyArrayInstruction();
  switch (opcode) {
  case Opcode::DynamicSlice:
  case Opcode::DynamicUpdateSlice:
    return generateDynamicSlice(g, opcode, x);
  case Opcode::Gather:
    return generateGather(g, x);
  default:
    return nullptr;
  }
}

HloInstruction *generateStructured(GeneratorState &g, Opcode opcode) {
  HloInstruction *x = g.anyArrayInstruction();
  unsigned rank = x->shape().rank();
  switch (opcode) {
  case Opcode::Scatter:
    return generateScatter(g, x);
  case Opcode::Sort:
    return generateSort(g, x);
  case Opcode::TopK:
    if (isComplex(x->shape().elementType()))
      return nullptr; // no order
    return g.add(
        opcode, {}, {x},
        {g.integer(Key::K, rank ? g.between(0, x->shape().dims().back()) : 0), g.flag(Key::Largest, g.oneIn(2))});
  case Opcode::Reduce:
    return generateReduction(g, opcode, x, g.ints(Key::Dimensions, g.someOf(rank)));
  case Opcode::ReduceWindow:
    return generateReduction(g, opcode, x, g.window(smallWindow(g, rank, false)));
  case Opcode::SelectAndScatter:
    return generateSelectAndScatter(g, x);
  case Opcode::Map:
    return generateMap(g, x);
  case Opcode::Scan:
    return generateScan(g, x);
  default:
    return generateContraction(g, opcode);
  }
}

} // namespace hloc
