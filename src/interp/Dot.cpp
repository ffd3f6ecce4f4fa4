// dot, scaled-dot and ragged-dot: operands are brought to [batch, rows, depth] and [batch, depth, columns] and
// multiplied. `algorithm` says what hardware may lose (TensorCores.h); the oracle loses nothing.

#include "interp/Dot.h"

#include "interp/LaneOp.h"
#include "interp/MatrixProduct.h"
#include "interp/Ops.h"

namespace hloc::interp {

namespace {

Index freeDims(const Shape &shape, llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> depth) {
  Index free;
  for (unsigned i = 0; i < shape.rank(); ++i)
    if (!llvm::is_contained(batch, int64_t(i)) && !llvm::is_contained(depth, int64_t(i)))
      free.push_back(i);
  return free;
}

Index joined(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b, llvm::ArrayRef<int64_t> c) {
  Index all(a.begin(), a.end());
  all.append(b.begin(), b.end());
  all.append(c.begin(), c.end());
  return all;
}

Index sizesOf(const Shape &shape, llvm::ArrayRef<int64_t> dims) {
  Index sizes;
  for (int64_t dim : dims)
    sizes.push_back(shape.dim(unsigned(dim)));
  return sizes;
}

} // namespace

DotDims::DotDims(const HloInstruction &dot) {
  auto copy = [&](AttributeKey key) { return Index(dot.ints(key).begin(), dot.ints(key).end()); };
  lhsBatch = copy(AttributeKey::LhsBatchDims);
  rhsBatch = copy(AttributeKey::RhsBatchDims);
  lhsDepth = copy(AttributeKey::LhsContractingDims);
  rhsDepth = copy(AttributeKey::RhsContractingDims);
}

Literal dotSums(const Literal &lhs, const Literal &rhs, const DotDims &dims) {
  Index rows = freeDims(lhs.shape(), dims.lhsBatch, dims.lhsDepth);
  Index columns = freeDims(rhs.shape(), dims.rhsBatch, dims.rhsDepth);
  Index batchSizes = sizesOf(lhs.shape(), dims.lhsBatch);
  Index rowSizes = sizesOf(lhs.shape(), rows), columnSizes = sizesOf(rhs.shape(), columns);
  MatrixProduct matrices{product(rowSizes), product(columnSizes), product(sizesOf(lhs.shape(), dims.lhsDepth))};
  Literal left = transposed(lhs, joined(dims.lhsBatch, rows, dims.lhsDepth));
  Literal right = transposed(rhs, joined(dims.rhsBatch, dims.rhsDepth, columns));
  ElementType type = lhs.shape().elementType();
  Literal sums(Shape::array(type, joined(batchSizes, rowSizes, columnSizes)));
  int64_t width = hostBytes(type);
  for (int64_t batch = 0; batch < product(batchSizes); ++batch)
    matrices.run(type, left.bytes().data() + batch * matrices.rows * matrices.depth * width,
                 right.bytes().data() + batch * matrices.depth * matrices.columns * width,
                 sums.mutableBytes().data() + batch * matrices.rows * matrices.columns * width);
  return sums;
}

namespace {

llvm::LogicalResult checkTypes(Step &step, unsigned numOperands) {
  for (unsigned i = 0; i < numOperands; ++i)
    if (!isProductDefined(step.array(i).shape().elementType(), step.shape().elementType()))
      return step.unsupported("products of these types are not defined", DiagnosticKind::UnsupportedType);
  return llvm::success();
}

/// operand[i...] * scale[i / (dim / scale dim)...], both widened; exact for what scales are made of.
Literal scaled(const Literal &operand, const Literal &scale, ElementType type) {
  Literal product = widened(operand, type), factors = widened(scale, type);
  // Repeat each scale along its block: dims [s0, r0, s1, r1, ...], stride 0 along the r.
  Index dims, strides, own = rowMajorStrides(scale.shape().dims());
  for (unsigned i = 0; i < operand.shape().rank(); ++i) {
    int64_t blocks = scale.shape().isScalar() ? 1 : scale.shape().dim(i);
    dims.push_back(blocks);
    dims.push_back(blocks == 0 ? 0 : operand.shape().dim(i) / blocks);
    strides.push_back(scale.shape().isScalar() ? 0 : own[i]);
    strides.push_back(0);
  }
  Literal repeated(product.shape());
  copyStrided(dims, hostBytes(product.shape().elementType()), {repeated.mutableBytes().data(), rowMajorStrides(dims)},
              {factors.bytes().data(), strides});
  Lanes lanes;
  lanes.operands[0] = product.bytes().data();
  lanes.operands[1] = repeated.bytes().data();
  lanes.result = product.mutableBytes().data();
  lanes.count = product.numElements();
  binaryKernel(Opcode::Multiply, computeType(product.shape().elementType()))(lanes);
  return product;
}

/// Elements [start, limit) along one dimension.
Literal sliced(const Literal &operand, int64_t dim, int64_t start, int64_t limit) {
  Index dims(operand.shape().dims().begin(), operand.shape().dims().end()), starts(dims.size(), 0);
  dims[size_t(dim)] = limit - start;
  starts[size_t(dim)] = start;
  Literal taken(Shape::array(operand.shape().elementType(), dims));
  if (taken.numElements() != 0)
    copyStrided(dims, hostBytes(operand.shape().elementType()), targetAt(taken, {}), sourceAt(operand, starts));
  return taken;
}

void place(const Literal &part, Literal &whole, int64_t dim, int64_t start) {
  Index starts(whole.shape().rank(), 0);
  starts[size_t(dim)] = start;
  if (part.numElements() != 0)
    copyStrided(part.shape().dims(), hostBytes(part.shape().elementType()), targetAt(whole, starts),
                sourceAt(part, {}));
}

/// Element `index` along `dim`, which disappears.
Literal takenAt(const Literal &operand, int64_t dim, int64_t index) {
  Literal slice = sliced(operand, dim, index, index + 1);
  Index dims(slice.shape().dims().begin(), slice.shape().dims().end());
  dims.erase(dims.begin() + dim);
  Literal dropped(Shape::array(slice.shape().elementType(), dims));
  llvm::copy(slice.bytes(), dropped.mutableBytes().begin());
  return dropped;
}

/// Group g of a ragged dimension covers [limits[g], limits[g+1]); sizes beyond the dimension are cut.
Index groupLimits(const Literal &sizes, int64_t extent) {
  Index limits{0};
  for (int64_t g = 0; g < sizes.numElements(); ++g)
    limits.push_back(std::min(extent, limits.back() + std::max<int64_t>(0, sizes.getInt(g))));
  return limits;
}

} // namespace

llvm::FailureOr<Value> evaluateDot(Step &step) {
  if (llvm::failed(checkTypes(step, 2)))
    return llvm::failure();
  ElementType type = step.shape().elementType();
  Literal result(step.shape());
  roundInto(dotSums(widened(step.array(0), type), widened(step.array(1), type), DotDims(step.instr)), result);
  return Value(std::move(result));
}

llvm::FailureOr<Value> evaluateScaledDot(Step &step) {
  if (llvm::failed(checkTypes(step, 4)))
    return llvm::failure();
  ElementType type = step.shape().elementType();
  Literal lhs = scaled(step.array(0), step.array(2), type), rhs = scaled(step.array(1), step.array(3), type);
  Literal result(step.shape());
  roundInto(dotSums(lhs, rhs, DotDims(step.instr)), result);
  return Value(std::move(result));
}

/// One dot for each group. The ragged dimension may be a free one of lhs (each group has its own rhs), contracted (each
/// group has its own result) or a batch dimension. What lies beyond the groups is zero.
llvm::FailureOr<Value> evaluateRaggedDot(Step &step) {
  if (llvm::failed(checkTypes(step, 2)))
    return llvm::failure();
  const Literal &sizes = step.array(2);
  if (sizes.shape().rank() != 1)
    return step.unsupported("group sizes with batch dimensions");
  ElementType type = step.shape().elementType();
  Literal lhs = widened(step.array(0), type), rhs = widened(step.array(1), type);
  DotDims dims(step.instr);
  int64_t ragged = step.instr.ints(AttributeKey::LhsRaggedDims)[0];
  Index limits = groupLimits(sizes, lhs.shape().dim(unsigned(ragged)));
  Literal sums(Shape::array(lhs.shape().elementType(), step.shape().dims()));
  if (auto *depth = llvm::find(dims.lhsDepth, ragged); depth != dims.lhsDepth.end()) {
    int64_t rhsRagged = dims.rhsDepth[size_t(depth - dims.lhsDepth.begin())];
    int64_t groupBytes = sizes.numElements() == 0 ? 0 : int64_t(sums.bytes().size()) / sizes.numElements();
    for (int64_t g = 0; g < sizes.numElements(); ++g) {
      Literal part = dotSums(sliced(lhs, ragged, limits[g], limits[g + 1]),
                             sliced(rhs, rhsRagged, limits[g], limits[g + 1]), dims);
      llvm::copy(part.bytes(), sums.mutableBytes().begin() + g * groupBytes);
    }
  } else if (auto *batch = llvm::find(dims.lhsBatch, ragged); batch != dims.lhsBatch.end()) {
    int64_t position = batch - dims.lhsBatch.begin();
    place(dotSums(sliced(lhs, ragged, 0, limits.back()), sliced(rhs, dims.rhsBatch[size_t(position)], 0, limits.back()),
                  dims),
          sums, position, 0);
  } else {
    llvm::ArrayRef<int64_t> groupDims = step.instr.ints(AttributeKey::RhsGroupDims);
    if (groupDims.size() != 1)
      return step.unsupported("a ragged free dimension needs one group dimension", DiagnosticKind::InvalidDimensions);
    Index rows = freeDims(lhs.shape(), dims.lhsBatch, dims.lhsDepth);
    int64_t position = int64_t(dims.lhsBatch.size()) + (llvm::find(rows, ragged) - rows.begin());
    for (Index *numbers : {&dims.rhsBatch, &dims.rhsDepth}) // as they are once the group dimension is gone
      for (int64_t &number : *numbers)
        number -= number > groupDims[0];
    for (int64_t g = 0; g < sizes.numElements(); ++g)
      place(dotSums(sliced(lhs, ragged, limits[g], limits[g + 1]), takenAt(rhs, groupDims[0], g), dims), sums, position,
            limits[g]);
  }
  Literal result(step.shape());
  roundInto(sums, result);
  return Value(std::move(result));
}

} // namespace hloc::interp
