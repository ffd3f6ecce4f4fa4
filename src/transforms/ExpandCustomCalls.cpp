// Custom calls whose meaning is public -> ops (FoldCollectives.cpp has those that are notes). TopK is topk; cuDNN's
// convolutions, forward with and without an epilogue and both gradients, are convolutions; cuBLAS's products and CUB's
// sorts are in LibraryCalls.cpp, cuSOLVER's potrf in ExpandLinearAlgebra.cpp. Scratch memory, which calls return beside
// their results, is zero.

#include "Expansion.h"
#include "LibraryCalls.h"
#include "hloc/fusion/LibraryForm.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/LibraryMark.h"
#include "hloc/hlo/SortCall.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Value = Expansion::Value;

/// (values, positions[, scratch])
HloInstruction *expandTopK(HloInstruction &instr, HloRewriter &rewriter) {
  const Shape &shape = instr.shape();
  bool fits = instr.numOperands() == 1 && shape.isTuple() && shape.elements().size() >= 2 &&
              llvm::all_of(shape.elements(), [](const Shape &element) { return element.isArray(); }) &&
              instr.operand(0)->shape().isArray() && shape.element(0).rank() > 0 &&
              shape.element(0).rank() == instr.operand(0)->shape().rank() &&
              shape.element(0).elementType() == instr.operand(0)->shape().elementType() &&
              shape.element(1).elementType() == ElementType::S32 && shape.element(1).sameDims(shape.element(0)) &&
              shape.element(0).dims().drop_back() == instr.operand(0)->shape().dims().drop_back() &&
              shape.element(0).dims().back() <= instr.operand(0)->shape().dims().back() &&
              !isComplex(shape.element(0).elementType());
  if (!fits)
    return nullptr;
  Expansion x(rewriter.builder(), instr);
  HloBuilder &b = x.builder();
  HloInstruction *top = b.add(Opcode::TopK, Shape::tuple(shape.elements().take_front(2)), {instr.operand(0)},
                              {{AttributeKey::K, shape.element(0).dims().back()}, {AttributeKey::Largest, true}});
  if (shape.elements().size() == 2)
    return top;
  llvm::SmallVector<HloInstruction *> results = {b.tupleElement(top, 0), b.tupleElement(top, 1)};
  for (const Shape &scratch : shape.elements().drop_front(2))
    results.push_back(x.zeros(scratch));
  return b.tuple(results);
}

// --- convolutions

std::string spelling(const ConvolutionLabels &labels, size_t rank) {
  auto side = [&](int64_t first, char firstName, int64_t second, char secondName, llvm::ArrayRef<int64_t> spatial) {
    std::string text(rank, '?');
    text[size_t(first)] = firstName;
    text[size_t(second)] = secondName;
    for (auto [i, dim] : llvm::enumerate(spatial))
      text[size_t(dim)] = char('0' + i);
    return text;
  };
  return side(labels.lhsBatch, 'b', labels.lhsFeature, 'f', labels.lhsSpatial) + "_" +
         side(labels.rhsInput, 'i', labels.rhsOutput, 'o', labels.rhsSpatial) + "->" +
         side(labels.outBatch, 'b', labels.outFeature, 'f', labels.outSpatial);
}

Value convolution(HloBuilder &b, HloModule &module, Value lhs, Value rhs, const Shape &shape, Window window,
                  ConvolutionLabels labels, AttributeKey groupKey, const ConvolutionCall &f) {
  labels.spelling = spelling(labels, shape.rank());
  HloArena &arena = module.arena();
  llvm::SmallVector<Attribute> attributes = {
      {AttributeKey::Window, static_cast<const Window *>(arena.saveObject(std::move(window)))},
      {AttributeKey::DimLabels, static_cast<const ConvolutionLabels *>(arena.saveObject(std::move(labels)))},
      {groupKey, f.groups}};
  if (f.allowsTf32)
    attributes.push_back({AttributeKey::Algorithm, int64_t(DotAlgorithm::TF32TF32F32)});
  if (!f.precision.empty())
    attributes.push_back(b.ints(AttributeKey::OperandPrecision, f.precision));
  return b.add(Opcode::Convolution, shape, {lhs, rhs}, attributes);
}

/// Every place of dy spreads the kernel, which is why it is turned round and dy has the strides as holes.
Value inputGradient(Expansion &x, HloModule &module, const ConvolutionCall &f, Value dy, Value kernel,
                    const Shape &shape) {
  HloBuilder &b = x.builder();
  size_t spatial = f.window.dims.size();
  // [spatial..., in, groups, out] -> [spatial..., out, groups * in]
  llvm::SmallVector<int64_t> order(llvm::ArrayRef(f.labels.rhsSpatial));
  order.append({f.labels.rhsInput, f.labels.rhsOutput});
  Value turned = b.transpose(x.plain(kernel), order);
  llvm::SmallVector<int64_t> dims(turned->shape().dims());
  int64_t inFeatures = dims[spatial], outFeatures = dims[spatial + 1] / f.groups;
  dims[spatial + 1] = f.groups;
  dims.push_back(outFeatures);
  turned = x.reshape(turned, dims);
  order.clear();
  for (size_t i = 0; i < spatial; ++i)
    order.push_back(int64_t(i));
  order.append({int64_t(spatial) + 2, int64_t(spatial) + 1, int64_t(spatial)});
  turned = b.transpose(turned, order);
  dims.resize(spatial);
  dims.append({outFeatures, f.groups * inFeatures});
  turned = x.reshape(x.plain(turned), dims);
  ConvolutionLabels labels;
  labels.lhsBatch = f.labels.outBatch;
  labels.lhsFeature = f.labels.outFeature;
  labels.lhsSpatial = f.labels.outSpatial;
  labels.rhsInput = int64_t(spatial);
  labels.rhsOutput = int64_t(spatial) + 1;
  labels.outBatch = f.labels.lhsBatch;
  labels.outFeature = f.labels.lhsFeature;
  labels.outSpatial = f.labels.lhsSpatial;
  Window window;
  for (auto [i, dim] : llvm::enumerate(f.window.dims)) {
    labels.rhsSpatial.push_back(int64_t(i));
    int64_t reach = (dim.size - 1) * dim.windowDilation, low = reach - dim.padLow;
    int64_t dilated = (f.ySize(i) - 1) * dim.stride + 1;
    window.dims.push_back(
        {dim.size, 1, low, f.xSize(i) - low - dilated + reach, dim.stride, dim.windowDilation, !dim.reversed});
  }
  return convolution(b, module, dy, turned, shape, window, labels, AttributeKey::FeatureGroupCount, f);
}

/// Features of x stand for batches and batches for features; strides and dilations change places.
Value kernelGradient(Expansion &x, HloModule &module, const ConvolutionCall &f, Value input, Value dy,
                     const Shape &shape) {
  ConvolutionLabels labels;
  labels.lhsBatch = f.labels.lhsFeature;
  labels.lhsFeature = f.labels.lhsBatch;
  labels.lhsSpatial = f.labels.lhsSpatial;
  labels.rhsInput = f.labels.outBatch;
  labels.rhsOutput = f.labels.outFeature;
  labels.rhsSpatial = f.labels.outSpatial;
  labels.outBatch = f.labels.rhsInput;
  labels.outFeature = f.labels.rhsOutput;
  labels.outSpatial = f.labels.rhsSpatial;
  Window window;
  llvm::SmallVector<int64_t> reversed;
  for (auto [i, dim] : llvm::enumerate(f.window.dims)) {
    int64_t high = (dim.size - 1) * dim.windowDilation + (f.ySize(i) - 1) * dim.stride + 1 - f.xSize(i) - dim.padLow;
    window.dims.push_back({f.ySize(i), dim.windowDilation, dim.padLow, high, 1, dim.stride, false});
    if (dim.reversed)
      reversed.push_back(f.labels.rhsSpatial[i]);
  }
  HloBuilder &b = x.builder();
  Value made = convolution(b, module, input, dy, shape, window, labels, AttributeKey::BatchGroupCount, f);
  return reversed.empty() ? made : b.add(Opcode::Reverse, shape, {made}, {b.ints(AttributeKey::Dimensions, reversed)});
}

Value activated(Expansion &x, const ConvolutionEpilogue &epilogue, Value value) {
  using Activation = ConvolutionEpilogue::Activation;
  HloBuilder &b = x.builder();
  Shape shape = value->shape();
  auto filled = [&](double number) { return b.broadcast(b.scalar(shape.elementType(), number), shape, {}); };
  auto isBelow = [&](Value array, double number) {
    return b.add(Opcode::Compare, shape.withElementType(ElementType::Pred), {array, filled(number)},
                 {{AttributeKey::Direction, int64_t(ComparisonDirection::Lt)}});
  };
  auto choose = [&](Value negative) { return b.add(Opcode::Select, shape, {isBelow(value, 0), negative, value}); };
  switch (epilogue.activation) { // the comparisons let NaN through
  case Activation::None:
  case Activation::Unknown:
    return value;
  case Activation::Relu:
    return choose(filled(0));
  case Activation::Relu6: {
    Value isAbove = b.add(Opcode::Compare, shape.withElementType(ElementType::Pred), {value, filled(6)},
                          {{AttributeKey::Direction, int64_t(ComparisonDirection::Gt)}});
    value = b.add(Opcode::Select, shape, {isAbove, filled(6), value});
    return choose(filled(0));
  }
  case Activation::LeakyRelu:
    return choose(b.add(Opcode::Multiply, shape, {value, filled(epilogue.leak)}));
  case Activation::Elu:
    return choose(b.add(Opcode::ExponentialMinusOne, shape, {value}));
  }
  return value;
}

Value applyEpilogue(Expansion &x, const ConvolutionEpilogue &epilogue, const HloInstruction &instr, int64_t feature,
                    Value sums) {
  HloBuilder &b = x.builder();
  Shape shape = sums->shape();
  ElementType type = shape.elementType();
  auto scaled = [&](Value value, double factor) {
    return factor == 1 ? value
                       : b.add(Opcode::Multiply, shape, {value, b.broadcast(b.scalar(type, factor), shape, {})});
  };
  Value bias = b.broadcast(b.convert(instr.operand(2), type), shape, {feature});
  Value value = b.add(Opcode::Add, shape, {scaled(sums, epilogue.scale), bias});
  if (instr.numOperands() == 4) {
    Value side = b.convert(instr.operand(3), type);
    if (!(side->shape() == shape))
      side = b.add(Opcode::Copy, shape, {side});
    value = b.add(Opcode::Add, shape, {value, scaled(side, epilogue.sideScale)});
  }
  return activated(x, epilogue, value);
}

bool isWide(const Shape &shape) { return shape.elementType() == ElementType::F64; }

/// Are all arrays of floats that the sum's type holds, or factors bytes, and none of the convolution's empty?
bool canConvolve(const ConvolutionCall &call, const HloInstruction &instr) {
  const Shape &result = instr.resultShape();
  const auto &[x, kernel, y] = call.shapes;
  return isFloat(result.elementType()) && x.numElements() != 0 && kernel.numElements() != 0 && y.numElements() != 0 &&
         llvm::all_of(instr.operands().drop_front(call.multipliesBytes() ? 2 : 0), [&](const HloInstruction *operand) {
           return isFloat(operand->shape().elementType()) && (!isWide(operand->shape()) || isWide(result));
         });
}

HloInstruction *expandConvolution(HloInstruction &instr, HloRewriter &rewriter) {
  std::optional<ConvolutionCall> call = ConvolutionCall::of(instr);
  if (!call || !canConvolve(*call, instr))
    return nullptr;
  Expansion x(rewriter.builder(), instr);
  HloBuilder &b = x.builder();
  HloModule &module = instr.parent()->module();
  // Rounded once: sums in the result's type if all have that, else in f32, or f64.
  const Shape result = instr.resultShape();
  ElementType type = result.elementType();
  bool hasEpilogue = call->kind == ConvolutionCallKind::BiasActivation;
  if (hasEpilogue || instr.operand(0)->shape().elementType() != type || instr.operand(1)->shape().elementType() != type)
    type = isWide(result) ? ElementType::F64 : ElementType::F32;
  const bool ofBytes = call->multipliesBytes();
  Value lhs = instr.operand(0), rhs = instr.operand(1), made = nullptr;
  if (!ofBytes) {
    lhs = b.convert(lhs, type);
    rhs = b.convert(rhs, type);
  }
  Shape sums = result.withElementType(ofBytes ? ElementType::S32 : type);
  switch (call->kind) {
  case ConvolutionCallKind::Forward:
  case ConvolutionCallKind::BiasActivation:
    made = convolution(b, module, lhs, rhs, sums, call->window, call->labels, AttributeKey::FeatureGroupCount, *call);
    break;
  case ConvolutionCallKind::InputGradient:
    made = inputGradient(x, module, *call, lhs, rhs, sums);
    break;
  case ConvolutionCallKind::KernelGradient:
    made = kernelGradient(x, module, *call, lhs, rhs, sums);
    break;
  }
  if (ofBytes)
    made = b.convert(made, type);
  if (hasEpilogue)
    made = applyEpilogue(x, call->epilogue, instr, call->labels.outFeature, made);
  if (type != result.elementType())
    made = b.add(Opcode::Convert, result, {made});
  return b.tuple({made, x.zeros(instr.shape().element(1))});
}

HloInstruction *expandCall(HloInstruction &instr, HloRewriter &rewriter) {
  if (instr.hasSideEffect() || hasLibraryMark(instr))
    return nullptr;
  llvm::StringRef target = instr.string(AttributeKey::CustomCallTarget);
  if (isGemmTarget(target))
    return expandGemmCall(instr, rewriter);
  if (isSortTarget(target))
    return expandSortCall(instr, rewriter);
  if (convolutionCallKind(target))
    return expandConvolution(instr, rewriter);
  return target == "TopK" || target == "__gpu$TopK" ? expandTopK(instr, rewriter) : nullptr;
}

constexpr RewriteRule rules[] = {{"expand-custom-calls", Opcode::CustomCall, expandCall}};

// --- calls that stay

/// Is it left to the pass that chooses for dots of f32 what they are multiplied as?
bool isOpenF32(const HloInstruction &call, const HloPassContext &context) {
  return context.options.f32Dots == F32Dots::Tf32 && call.resultShape().elementType() == ElementType::F32;
}

bool staysCall(const HloInstruction &instr, const HloPassContext &context) {
  const llvm::StringRef target = instr.string(AttributeKey::CustomCallTarget);
  const bool isWanted = (isGemmTarget(target) && context.options.dots != Multiplier::Own) ||
                        (convolutionCallKind(target) && context.options.convolutions != Multiplier::Own);
  if (instr.opcode() != Opcode::CustomCall || hasLibraryMark(instr) || !isWanted || isOpenF32(instr, context))
    return false;
  std::string why;
  const bool stays = libraryFormOf(instr, context.target, why).has_value();
  if (!stays && context.remark)
    context.remark(DiagnosticKind::LibraryCall, instr,
                   "`" + instr.name().str() + "` does not stay a call of a library: " + why);
  return stays;
}

/// Workspace is no result: the step has one of its own, and what reads it reads zeros, as after expansion. A
/// convolution's is empty then.
void keepCall(HloEditor &editor, HloInstruction *instr) {
  HloBuilder b(editor, instr);
  Expansion x(b, *instr);
  llvm::SmallVector<Attribute> attributes;
  for (const Attribute &attribute : instr->attributes())
    if (!llvm::is_contained({AttributeKey::FrontendAttributes, AttributeKey::ControlPredecessors}, attribute.key))
      attributes.push_back(attribute);
  attributes.push_back(libraryMarkAttribute());
  const Shape &shape = instr->shape();
  const bool isProduct = isGemmTarget(instr->string(AttributeKey::CustomCallTarget));
  const Shape kept =
      isProduct ? instr->resultShape() : Shape::tuple({instr->resultShape(), Shape::array(ElementType::U8, {0})});
  HloInstruction *call = b.add(Opcode::CustomCall, kept, instr->operands(), attributes, instr->name()),
                 *result = isProduct ? call : b.tupleElement(call, 0);
  if (shape.isTuple()) {
    llvm::SmallVector<HloInstruction *> results = {result};
    for (const Shape &scratch : shape.elements().drop_front())
      results.push_back(x.zeros(scratch));
    result = b.tuple(results);
  }
  editor.replaceAllUses(instr, result);
  editor.eraseIfDead(instr);
}

bool keepCalls(HloModule &module, HloPassContext &context) {
  bool changed = false;
  for (HloComputation *computation : controlComputations(module)) {
    llvm::SmallVector<HloInstruction *> kept;
    llvm::copy_if(computation->instructions(), std::back_inserter(kept),
                  [&](HloInstruction *instr) { return staysCall(*instr, context); });
    if (kept.empty())
      continue;
    changed = true;
    HloEditor editor(*computation);
    for (HloInstruction *instr : kept)
      keepCall(editor, instr);
  }
  return changed;
}

HloInstruction *expandMarked(HloInstruction &instr, HloRewriter &rewriter) {
  const llvm::StringRef target = instr.string(AttributeKey::CustomCallTarget);
  if (!hasLibraryMark(instr))
    return nullptr;
  return isGemmTarget(target)          ? expandGemmCall(instr, rewriter)
         : convolutionCallKind(target) ? expandConvolution(instr, rewriter)
                                       : nullptr;
}

constexpr RewriteRule markedRules[] = {{"expand-library-calls", Opcode::CustomCall, expandMarked}};

} // namespace

PassResult expandCustomCalls(HloModule &module, HloPassContext &context) {
  const bool kept = keepCalls(module, context);
  const PassResult result = rewriteModule(module, rules, context);
  return kept && result == PassResult::Unchanged ? PassResult::Changed : result;
}

PassResult expandLibraryCalls(HloModule &module, HloPassContext &context) {
  return rewriteModule(module, markedRules, context);
}

} // namespace hloc
