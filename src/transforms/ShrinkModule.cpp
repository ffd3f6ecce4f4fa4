#include "hloc/transforms/ShrinkModule.h"

#include "ShrinkSizes.h"

#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/Verifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

namespace hloc {

namespace {

using Sizes = SizeRelations::Sizes;

/// Do the labels name dimensions of the shapes? Nobody has checked those of calls.
bool fit(const ConvolutionLabels &labels, const ConvolutionShapes &shapes) {
  auto inside = [](const Shape &shape, int64_t first, int64_t second, llvm::ArrayRef<int64_t> spatial) {
    auto isDim = [&](int64_t dim) { return dim >= 0 && dim < int64_t(shape.rank()); };
    return shape.isArray() && isDim(first) && isDim(second) && llvm::all_of(spatial, isDim);
  };
  return labels.lhsSpatial.size() == labels.outSpatial.size() &&
         inside(shapes.x, labels.lhsBatch, labels.lhsFeature, labels.lhsSpatial) &&
         inside(shapes.kernel, labels.rhsInput, labels.rhsOutput, labels.rhsSpatial) &&
         inside(shapes.y, labels.outBatch, labels.outFeature, labels.outSpatial);
}

/// Of a convolution, or a call of a library that is one or its gradient; a target that is not known is a forward one.
std::optional<ConvolutionShapes> convolutionShapes(const HloInstruction &instr) {
  if (!instr.has(AttributeKey::DimLabels) || instr.numOperands() < 2 || instr.numResults() == 0)
    return std::nullopt;
  const auto kind = convolutionCallKind(instr.string(AttributeKey::CustomCallTarget));
  ConvolutionShapes shapes = convolutionShapes(kind.value_or(ConvolutionCallKind::Forward), instr.operand(0)->shape(),
                                               instr.operand(1)->shape(), instr.resultShape());
  if (!fit(*instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels), shapes))
    return std::nullopt;
  return shapes;
}

/// Each spatial dimension of an instruction with a window: what the window moves over, and how often it fits.
struct WindowSizes {
  int64_t base, result;
};

llvm::SmallVector<WindowSizes> windowSizes(const HloInstruction &instr) {
  llvm::SmallVector<WindowSizes> sizes;
  if (std::optional<ConvolutionShapes> shapes = convolutionShapes(instr)) {
    const auto &labels = *instr.get<const ConvolutionLabels *>(AttributeKey::DimLabels);
    for (auto [in, out] : llvm::zip_equal(labels.lhsSpatial, labels.outSpatial))
      sizes.push_back({shapes->x.dim(unsigned(in)), shapes->y.dim(unsigned(out))});
    return sizes;
  }
  const Shape &base = instr.operand(0)->shape();
  const Shape &result = instr.opcode() == Opcode::SelectAndScatter ? instr.operand(1)->shape() : instr.resultShape();
  for (unsigned i = 0; i < base.rank(); ++i)
    sizes.push_back({base.dim(i), result.dim(i)});
  return sizes;
}

/// Finds what sizes there are, and what has to hold between them.
class Relations {
public:
  SizeRelations collect(const HloModule &module) {
    for (const HloComputation *computation : reachableComputations(module))
      for (const HloInstruction *instr : computation->instructions()) {
        for (const Shape::Leaf &leaf : instr->shape().leaves())
          if (leaf.shape.isArray())
            found.sizes.insert(leaf.shape.dims().begin(), leaf.shape.dims().end());
        relate(*instr);
      }
    return std::move(found);
  }

private:
  void relate(const HloInstruction &instr) {
    switch (instr.opcode()) {
    case Opcode::Reshape:
    case Opcode::Bitcast:
      addProduct(instr.operand(0)->shape().dims(), instr.shape().dims());
      break;
    case Opcode::BitcastConvert:
      fixDifferent(instr.operand(0)->shape(), instr.shape());
      break;
    case Opcode::Concatenate:
      addSum(instr);
      break;
    case Opcode::Slice:
      for (auto [i, range] : llvm::enumerate(instr.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice)))
        addFit(instr.shape().dim(i), instr.operand(0)->shape().dim(i), range.stride);
      break;
    case Opcode::DynamicSlice:
      addFits(instr.shape().dims(), instr.operand(0)->shape().dims());
      break;
    case Opcode::DynamicUpdateSlice:
      addFits(instr.operand(1)->shape().dims(), instr.shape().dims());
      break;
    case Opcode::Gather:
      addFits(instr.ints(AttributeKey::SliceSizes), instr.operand(0)->shape().dims());
      break;
    case Opcode::Scatter:
      relateScatter(instr);
      break;
    case Opcode::Convolution:
    case Opcode::CustomCall:
      if (std::optional<ConvolutionShapes> shapes = convolutionShapes(instr))
        relateConvolution(instr, *shapes);
      break;
    case Opcode::TopK:
      addFit(instr.intOr(AttributeKey::K, 1), instr.operand(0)->shape().dims().back(), 1);
      break;
    case Opcode::Fft:
    case Opcode::Cholesky:
    case Opcode::TriangularSolve:
      for (int64_t length : instr.ints(AttributeKey::FftLength))
        found.fixed.insert({length, length / 2 + 1});
      break;
    default:
      // What exchanges parts between devices has shapes that follow from how many there are.
      if (instr.numOperands() && family(instr.opcode()) == OpcodeFamily::Collective && instr.shape().isArray() &&
          instr.operand(0)->shape().isArray())
        fixDifferent(instr.operand(0)->shape(), instr.shape());
      break;
    }
  }

  void addProduct(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
    SizeRelations::Product product;
    Sizes right(to.begin(), to.end());
    for (int64_t size : from)
      if (auto same = llvm::find(right, size); same != right.end())
        right.erase(same);
      else if (size != 1)
        product.left.push_back(size);
    llvm::copy_if(right, std::back_inserter(product.right), [](int64_t size) { return size != 1; });
    llvm::sort(product.left);
    llvm::sort(product.right);
    if (!product.left.empty() || !product.right.empty())
      found.products.insert(std::move(product));
  }

  void addSum(const HloInstruction &concatenate) {
    const int64_t dim = concatenate.ints(AttributeKey::Dimensions).front();
    SizeRelations::Sum sum{{}, concatenate.shape().dim(dim)};
    for (const HloInstruction *operand : concatenate.operands())
      sum.parts.push_back(operand->shape().dim(dim));
    llvm::sort(sum.parts);
    if (sum.parts.size() > 1)
      found.sums.insert(std::move(sum));
  }

  void addFit(int64_t inner, int64_t outer, int64_t stride) {
    found.sizes.insert(inner);
    if (inner != outer || stride != 1)
      found.fits.insert({inner, outer, stride});
  }

  void addFits(llvm::ArrayRef<int64_t> inner, llvm::ArrayRef<int64_t> outer) {
    for (auto [one, other] : llvm::zip_equal(inner, outer))
      addFit(one, other, 1);
  }

  /// Window dimensions of the updates lie in the operand's dimensions, in order, but for those that are inserted.
  void relateScatter(const HloInstruction &scatter) {
    const Shape &operand = scatter.operand(0)->shape(), &updates = scatter.operands().back()->shape();
    llvm::ArrayRef<int64_t> window = scatter.ints(AttributeKey::UpdateWindowDims);
    size_t next = 0;
    for (unsigned i = 0; i < operand.rank() && next < window.size(); ++i)
      if (!llvm::is_contained(scatter.ints(AttributeKey::InsertedWindowDims), i) &&
          !llvm::is_contained(scatter.ints(AttributeKey::InputBatchingDims), i))
        addFit(updates.dim(window[next++]), operand.dim(i), 1);
  }

  void relateConvolution(const HloInstruction &convolution, const ConvolutionShapes &shapes) {
    const auto &labels = *convolution.get<const ConvolutionLabels *>(AttributeKey::DimLabels);
    const Shape &lhs = shapes.x;
    const int64_t filters = shapes.kernel.dim(labels.rhsOutput);
    if (const int64_t groups = convolution.intOr(AttributeKey::FeatureGroupCount, 1); groups > 1) {
      addGroups(lhs.dim(labels.lhsFeature), groups);
      addGroups(filters, groups);
    }
    if (const int64_t groups = convolution.intOr(AttributeKey::BatchGroupCount, 1); groups > 1) {
      addGroups(lhs.dim(labels.lhsBatch), groups);
      addGroups(filters, groups);
    }
  }

  void addGroups(int64_t size, int64_t groups) {
    found.sizes.insert({groups, size / groups});
    addProduct({size}, {groups, size / groups});
  }

  void fixDifferent(const Shape &one, const Shape &other) {
    for (unsigned i = 0; i < std::max(one.rank(), other.rank()); ++i)
      if (i >= one.rank() || i >= other.rank() || one.dim(i) != other.dim(i))
        for (const Shape *shape : {&one, &other})
          if (i < shape->rank())
            found.fixed.insert(shape->dim(i));
  }

  SizeRelations found;
};

/// The module again, with other sizes and types.
class Renaming {
public:
  Renaming(const HloModule &module, const ModuleRenames &renames)
      : module(module), arena(module.arena()), sizes(renames.sizes), types(renames.types),
        made(std::make_unique<HloModule>(module.name(), module.arenaPointer())) {}

  std::unique_ptr<HloModule> run() {
    std::vector<Attribute> header(module.attributes());
    for (Attribute &attribute : header)
      attribute = renamed(attribute);
    made->setAttributes(header);
    made->setStackFrames(module.stackFrames());
    made->setHeaderless(module.headerless());
    for (HloComputation *computation : reachableComputations(module))
      add(*computation);
    made->setEntry(copies.lookup(module.entry()));
    return std::move(made);
  }

private:
  void add(const HloComputation &from) {
    HloComputation *copy = copies[&from] = made->addComputation(from.name());
    copy->setRange(from.range());
    copy->setExecutionThread(from.executionThread());
    std::vector<HloInstruction *> mapped; // by id
    for (const HloInstruction *instr : from.instructions()) {
      InstructionSpec spec;
      spec.opcode = instr->opcode();
      spec.name = instr->name();
      spec.shape = renamed(instr->shape());
      llvm::SmallVector<HloInstruction *> operands;
      for (const HloInstruction *operand : instr->operands())
        operands.push_back(mapped[operand->id()]);
      spec.operands = operands;
      llvm::SmallVector<Attribute> attributes;
      for (const Attribute &attribute : instr->attributes())
        if (attribute.key != AttributeKey::ControlPredecessors) // the order of the instructions is theirs
          attributes.push_back(renamed(attribute, instr));
      spec.attributes = attributes;
      spec.range = instr->range();
      if (instr->opcode() == Opcode::Parameter)
        spec.parameterNumber = instr->parameterNumber();
      if (instr->hasLiteral())
        spec.literal = arena.saveObject(renamed(instr->literal()));
      mapped.push_back(copy->add(spec));
    }
    copy->setRoot(mapped[from.root()->id()]);
  }

  int64_t of(int64_t size) const {
    auto found = sizes.find(size);
    return found == sizes.end() ? size : found->second;
  }

  Shape renamed(const Shape &shape) const {
    if (shape.isTuple())
      return Shape::tuple(llvm::map_to_vector(shape.elements(), [&](const Shape &one) { return renamed(one); }));
    if (!shape.isArray())
      return shape;
    llvm::SmallVector<int64_t> dims = llvm::map_to_vector(shape.dims(), [&](int64_t size) { return of(size); });
    llvm::SmallVector<bool> dynamic;
    for (unsigned i = 0; i < shape.rank() && shape.hasDynamicDims(); ++i)
      dynamic.push_back(shape.isDynamic(i));
    return Shape::array(of(shape.elementType()), dims, shape.layout(), dynamic, shape.layoutGiven());
  }

  ElementType of(ElementType type) const {
    auto found = types.find(type);
    return found == types.end() ? type : found->second;
  }

  Literal renamed(const Literal &literal) const {
    return literal.isTuple() ? literal : converted(resized(literal), renamed(literal.shape()));
  }

  static Literal converted(Literal literal, const Shape &shape) {
    const ElementType from = literal.shape().elementType(), to = shape.elementType();
    if (from == to)
      return literal;
    if (literal.isElided())
      return Literal::elided(shape);
    Literal value(shape);
    for (int64_t i = 0; i < value.numElements(); ++i)
      if (isComplex(to))
        value.setComplex(i, isComplex(from) ? literal.getComplex(i) : literal.getDouble(i));
      else if (isFloat(to))
        value.setDouble(i, isComplex(from) ? literal.getComplex(i).real() : literal.getDouble(i));
      else
        value.setInt(i, isComplex(from) || isFloat(from) ? int64_t(0) : literal.getInt(i));
    return value;
  }

  /// The first elements of each dimension.
  Literal resized(const Literal &literal) const {
    const Shape shape = renamed(literal.shape()).withElementType(literal.shape().elementType());
    if (shape.compatible(literal.shape()) || literal.isTuple())
      return literal;
    if (literal.isElided())
      return Literal::elided(shape);
    Literal value(shape);
    const size_t width = value.numElements() ? value.bytes().size() / size_t(value.numElements()) : 0;
    llvm::SmallVector<int64_t> index(shape.rank(), 0);
    for (int64_t to = 0; to < value.numElements(); ++to) {
      int64_t from = 0;
      for (auto [position, size] : llvm::zip_equal(index, literal.shape().dims()))
        from = from * size + position;
      llvm::copy(literal.bytes().slice(size_t(from) * width, width), value.mutableBytes().begin() + to * width);
      for (size_t i = index.size(); i-- > 0;) {
        if (++index[i] < shape.dim(i))
          break;
        index[i] = 0;
      }
    }
    return value;
  }

  /// `instr`: whose attribute it is; null for the module's.
  Attribute renamed(const Attribute &attribute, const HloInstruction *instr = nullptr) {
    Attribute result = attribute;
    switch (attribute.key) {
    case AttributeKey::Slice:
      result.value = slices(*instr);
      break;
    case AttributeKey::Padding:
      if (const auto *padding = std::get_if<llvm::ArrayRef<PaddingDim>>(&attribute.value))
        result.value = paddings(*padding, *instr);
      break;
    case AttributeKey::Window:
      if (instr->opcode() != Opcode::CustomCall || convolutionShapes(*instr))
        result.value = window(*instr);
      break;
    case AttributeKey::DynamicSliceSizes:
    case AttributeKey::SliceSizes:
      if (const auto *list = std::get_if<llvm::ArrayRef<int64_t>>(&attribute.value))
        result.value = llvm::ArrayRef<int64_t>(
            arena.saveList<int64_t>(llvm::map_to_vector(*list, [&](int64_t size) { return of(size); })));
      break;
    case AttributeKey::K:
    case AttributeKey::FeatureGroupCount:
    case AttributeKey::BatchGroupCount:
      result.value = of(std::get<int64_t>(attribute.value));
      break;
    default:
      renameValue(result.value);
      break;
    }
    return result;
  }

  /// Shapes and computations, wherever they are.
  void renameValue(AttributeValue &value) {
    if (const auto *shape = std::get_if<const Shape *>(&value))
      value = arena.saveObject(renamed(**shape));
    else if (const auto *shapes = std::get_if<llvm::ArrayRef<Shape>>(&value))
      value = llvm::ArrayRef<Shape>(
          arena.saveList<Shape>(llvm::map_to_vector(*shapes, [&](const Shape &one) { return renamed(one); })));
    else if (auto *callee = std::get_if<HloComputation *>(&value))
      value = copies.lookup(*callee);
    else if (const auto *callees = std::get_if<llvm::ArrayRef<HloComputation *>>(&value))
      value = llvm::ArrayRef<HloComputation *>(arena.saveList<HloComputation *>(
          llvm::map_to_vector(*callees, [&](HloComputation *one) { return copies.lookup(one); })));
  }

  llvm::ArrayRef<SliceDim> slices(const HloInstruction &slice) const {
    llvm::SmallVector<SliceDim> ranges(slice.get<llvm::ArrayRef<SliceDim>>(AttributeKey::Slice));
    for (auto [i, range] : llvm::enumerate(ranges)) {
      const int64_t from = slice.operand(0)->shape().dim(i), all = of(from), length = of(slice.shape().dim(i));
      const int64_t span = length ? (length - 1) * range.stride + 1 : 0;
      if (all == from && length == slice.shape().dim(i))
        continue;
      const bool reachesEnd = range.limit > from - range.stride;
      range.start = range.start == 0 ? 0 : reachesEnd ? all - span : std::min(range.start * all / from, all - span);
      range.limit = range.start + span;
    }
    return arena.saveList<SliceDim>(ranges);
  }

  llvm::ArrayRef<PaddingDim> paddings(llvm::ArrayRef<PaddingDim> given, const HloInstruction &pad) const {
    llvm::SmallVector<PaddingDim> dims(given);
    for (auto [i, dim] : llvm::enumerate(dims)) {
      const int64_t inner = of(pad.operand(0)->shape().dim(i));
      const int64_t added = of(pad.shape().dim(i)) - inner - std::max<int64_t>(inner - 1, 0) * dim.interior;
      const int64_t before = dim.low + dim.high;
      if (added != before)
        dim.low = dim.high == 0 ? added : before == 0 ? dim.low : added * dim.low / before;
      dim.high = added - dim.low;
    }
    return arena.saveList<PaddingDim>(dims);
  }

  const Window *window(const HloInstruction &instr) const {
    Window result = *instr.get<const Window *>(AttributeKey::Window);
    for (auto [dim, size] : llvm::zip(result.dims, windowSizes(instr))) {
      const int64_t base = of(size.base), number = of(size.result), before = dim.size;
      dim.size = of(dim.size);
      if (base == size.base && number == size.result && dim.size == before)
        continue;
      if (dim.padLow == (before - 1) * dim.windowDilation) // all that lies before, as in a cumulative sum
        dim.padLow = (dim.size - 1) * dim.windowDilation;
      const int64_t dilated = base ? (base - 1) * dim.baseDilation + 1 : 0;
      dim.padHigh = (number - 1) * dim.stride + (dim.size - 1) * dim.windowDilation + 1 - dilated - dim.padLow;
    }
    return arena.saveObject(std::move(result));
  }

  const HloModule &module;
  HloArena &arena;
  const std::map<int64_t, int64_t> &sizes;
  const std::map<ElementType, ElementType> &types;
  std::unique_ptr<HloModule> made;
  llvm::DenseMap<const HloComputation *, HloComputation *> copies;
};

} // namespace

std::unique_ptr<HloModule> renameModule(const HloModule &module, const ModuleRenames &renames) {
  return Renaming(module, renames).run();
}

ShrunkModule shrinkModule(const HloModule &module, int64_t target, DiagnosticEngine &diagnostics) {
  ShrunkModule shrunk;
  shrunk.sizes = shrinkSizes(Relations().collect(module), target);
  shrunk.module = renameModule(module, {shrunk.sizes, {}});
  std::erase_if(shrunk.sizes, [](const auto &pair) { return pair.first == pair.second; });
  DiagnosticEngine verdict;
  verdict.setFile(diagnostics.file());
  if (!verify(*shrunk.module, verdict)) {
    shrunk.module.reset();
    for (const Diagnostic &one : verdict.diagnostics())
      diagnostics.report(DiagnosticKind::UnsupportedFeature, one.range,
                         "the module cannot be made smaller: with other sizes " + one.message);
  }
  return shrunk;
}

} // namespace hloc
