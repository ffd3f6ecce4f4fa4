#include "interp/Pieces.h"

#include "hloc/interp/Bounds.h"
#include "hloc/support/Parallel.h"
#include "interp/BoundMachine.h"

#include "llvm/ADT/STLExtras.h"

#include <atomic>

namespace hloc::interp {

namespace {

struct Piece {
  int64_t begin, count;
};

/// The elements of a piece as an array of one dimension. What all elements share, a scalar, is as it is.
Value taken(const Literal &from, Piece piece) {
  if (from.shape().rank() == 0)
    return Value::borrow(from);
  Literal made(Shape::array(from.shape().elementType(), {piece.count}));
  if (from.isElided())
    return Value(std::move(made));
  const size_t width = hostBytes(from.shape().elementType());
  llvm::copy(from.bytes().slice(size_t(piece.begin) * width, size_t(piece.count) * width), made.mutableBytes().begin());
  return Value(std::move(made));
}

/// Puts a piece of a result in its place. False if it has not the declared type, which the interpreter refuses.
bool put(const Bounded &value, Piece piece, Literal &result) {
  if (result.isTuple())
    return llvm::all_of(llvm::enumerate(value.elements), [&](auto element) {
      return put(element.value(), piece, result.mutableElements()[element.index()]);
    });
  const ElementType type = result.shape().elementType();
  const Bounded all = value.array().numElements() == piece.count ? value : repeated(value, piece.count);
  if (all.array().shape().elementType() != type)
    return false;
  llvm::copy(all.array().bytes(), result.mutableBytes().begin() + piece.begin * int64_t(hostBytes(type)));
  return true;
}

bool interpretPiece(const HloModule &module, llvm::ArrayRef<Literal> arguments, const InterpreterOptions &options,
                    Piece piece, Literal &result) {
  DiagnosticEngine unheard;
  InterpreterOptions quiet = options;
  quiet.progress = nullptr; // counts by pieces
  BoundMachine machine(unheard, quiet, Backend::Hloc);
  machine.leaveOutBounds();
  std::vector<Bounded> values;
  for (const Literal &argument : arguments)
    values.emplace_back(taken(argument, piece));
  const Shape lift = Shape::array(ElementType::Pred, {piece.count});
  llvm::FailureOr<Bounded> value = machine.run(*module.entry(), std::move(values), &lift);
  return succeeded(value) && put(*value, piece, result);
}

} // namespace

bool isInterpretedInPieces(const HloModule &module, llvm::ArrayRef<Literal> arguments) {
  const llvm::SmallVector<Shape::Leaf, 4> leaves = module.entry()->root()->shape().leaves();
  const auto parameters = module.entry()->parameters();
  return !leaves.empty() && leaves.front().shape.isArray() && leaves.front().shape.numElements() > elementsOfPiece &&
         arguments.size() == parameters.size() &&
         llvm::all_of(llvm::zip_equal(arguments, parameters),
                      [](const auto &pair) {
                        const Shape &given = std::get<0>(pair).shape(), &wanted = std::get<1>(pair)->shape();
                        return wanted.isArray() && !wanted.hasDynamicDims() && given.compatible(wanted);
                      }) &&
         !module.entry()->root()->shape().hasDynamicDims() && isElementwise(module);
}

llvm::FailureOr<Literal> interpretInPieces(const HloModule &module, llvm::ArrayRef<Literal> arguments,
                                           const InterpreterOptions &options) {
  const Shape &shape = module.entry()->root()->shape();
  const llvm::SmallVector<Shape::Leaf, 4> leaves = shape.leaves();
  const int64_t count = leaves.front().shape.numElements();
  uint64_t bytes = 0;
  for (const Shape::Leaf &leaf : leaves)
    bytes += uint64_t(count) * hostBytes(leaf.shape.elementType());
  if (bytes > options.maxBytes)
    return llvm::failure();
  Literal result(shape);
  std::atomic<bool> failed = false;
  if (options.progress)
    options.progress->begin(uint64_t(count));
  runInParallel(size_t(llvm::divideCeil(count, elementsOfPiece)), numWorkers(0), [&](size_t number) {
    const int64_t begin = int64_t(number) * elementsOfPiece;
    const Piece piece{begin, std::min(elementsOfPiece, count - begin)};
    if (failed || !interpretPiece(module, arguments, options, piece, result))
      failed = true;
    if (options.progress)
      options.progress->advance(uint64_t(piece.count));
  });
  if (failed)
    return llvm::failure();
  return result;
}

} // namespace hloc::interp
