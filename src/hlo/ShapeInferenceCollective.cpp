// Tokens and transfers, collectives, asynchronous pairs (hlo-text 6.6, 6.7). hloc keeps these ops and leaves it to
// later stages to say that it does not execute them; the rules here are those that a reader of the text can check.
#include "CollectiveRules.h"
#include "ShapeInferenceContext.h"
#include "hloc/support/Check.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

bool isTupleOf(const Shape &shape, size_t least) { return shape.isTuple() && shape.elements().size() >= least; }

bool isU32Scalar(const Shape &shape) { return shape.isScalar() && shape.elementType() == ElementType::U32; }

// transfer_c2
std::nullopt_t failResult(InferenceContext &c, const char *form) {
  return c.fail(VerifierRule::transfer_c2, "the result " + show(c.declared()) + " is not " + form);
}

std::optional<Shape> inferDataAndToken(InferenceContext &c) {
  const Shape &result = c.declared();
  if (!isTupleOf(result, 2) || result.elements().size() != 2 || !result.element(1).isToken())
    return failResult(c, "(data, token[])");
  return result;
}

std::optional<Shape> inferTransferStart(InferenceContext &c) {
  const Shape &result = c.declared();
  bool fits = isTupleOf(result, 3) && result.elements().size() == 3 && isU32Scalar(result.element(1)) &&
              result.element(2).isToken();
  if (!fits || (c.opcode() == Opcode::Send && !result.element(0).compatible(c.operand(0))))
    return failResult(c, "(data, u32[], token[])");
  return result;
}

// transfer_c4
std::optional<Shape> inferOutfeed(InferenceContext &c) {
  const auto *written = c.get<const Shape *>(AttributeKey::OutfeedShape);
  if (written && !(*written)->compatible(c.operand(0)))
    return c.fail(VerifierRule::transfer_c4,
                  "outfeed_shape is " + show(**written) + ", the operand is " + show(c.operand(0)));
  return Shape::token();
}

// transfer_c3
bool checkSameChannel(InferenceContext &c, const HloInstruction &start) {
  constexpr AttributeKey key = AttributeKey::ChannelId;
  std::optional<int64_t> own, its;
  if (c.has(key))
    own = c.integer(key, 0);
  if (start.has(key))
    its = start.intOr(key, 0);
  if (own == its)
    return true;
  auto show = [](std::optional<int64_t> id) {
    return id ? "channel_id=" + std::to_string(*id) : std::string("no channel_id");
  };
  c.fail(VerifierRule::transfer_c3, "it has " + show(own) + ", " + describe(start) + " has " + show(its));
  return false;
}

std::optional<Shape> inferTransferDone(InferenceContext &c) {
  bool isSend = c.opcode() == Opcode::SendDone;
  Opcode starter = c.operandInstr(0).opcode();
  const Shape &started = c.operand(0);
  bool fits = isTupleOf(started, 3) &&
              (starter == (isSend ? Opcode::Send : Opcode::Recv) || starter == Opcode::GetTupleElement ||
               starter == Opcode::Parameter || starter == Opcode::OptimizationBarrier);
  if (!fits)
    return c.fail(VerifierRule::async_c2, "the operand is " + describe(c.operandInstr(0)));
  if ((starter == Opcode::Send || starter == Opcode::Recv) && !checkSameChannel(c, c.operandInstr(0)))
    return std::nullopt;
  return isSend ? Shape::token() : Shape::tuple({started.element(0), Shape::token()});
}

// collective_c1: result and operand agree outside `dim`; -1: everywhere. Along `dim`, one size divides the other.
bool agreeOutside(const Shape &operand, const Shape &result, int64_t dim) {
  if (!operand.isArray() || !result.isArray() || !sameTypeUpToPrecision(operand.elementType(), result.elementType()) ||
      operand.rank() != result.rank())
    return false;
  for (int64_t i = 0; i < operand.rank(); ++i) {
    int64_t small = std::min(operand.dim(i), result.dim(i)), large = std::max(operand.dim(i), result.dim(i));
    if (i == dim ? small == 0 ? large != 0 : large % small != 0 : small != large)
      return false;
  }
  return true;
}

/// One result for each operand; `result` is the declared one or, for a start op, its part.
bool checkCollective(InferenceContext &c, const Shape &result, int64_t dim) {
  unsigned n = c.numOperands();
  bool single = n == 1 && result.isArray();
  bool fits = single || (result.isTuple() && result.elements().size() == n);
  for (unsigned i = 0; fits && i < n; ++i)
    fits = agreeOutside(c.operand(i), single ? result : result.element(i), dim);
  if (!fits)
    c.fail(VerifierRule::collective_c1,
           "the result " + show(result) + " does not agree with the operands " + show(Shape::tuple(c.operandShapes())));
  return fits;
}

/// One result for each operand, which is longer (all-gather) or shorter (reduce-scatter) along `dim`.
bool checkShares(InferenceContext &c, const Shape &result, int64_t dim) {
  if (!checkCollective(c, result, dim))
    return false;
  for (unsigned i = 0; i < c.numOperands(); ++i) {
    int64_t before = c.operand(i).dim(dim), after = (result.isArray() ? result : result.element(i)).dim(dim);
    bool scatters = c.opcode() == Opcode::ReduceScatter;
    if (!checkShards(c, scatters ? before : after, scatters ? after : before))
      return false;
  }
  return true;
}

// collective_c2
std::optional<int64_t> gatheredDim(InferenceContext &c) {
  Dims dims = c.ints(AttributeKey::Dimensions);
  bool fits = dims.size() == 1 && dims[0] >= 0;
  for (unsigned i = 0; fits && i < c.numOperands(); ++i)
    fits = c.operand(i).isArray() && dims[0] < c.operand(i).rank();
  if (!fits)
    return c.fail(VerifierRule::collective_c2, "dimensions " + show(dims) + " must name one dimension of the operands");
  return dims[0];
}

// collective_c3
bool checkReducer(InferenceContext &c) {
  const HloComputation *reducer = c.callee(AttributeKey::ToApply);
  bool fits = reducer && reducer->numParameters() == 2 && reducer->root()->shape().isScalar();
  for (unsigned i = 0; fits && i < 2; ++i)
    fits = reducer->parameters()[i] && reducer->parameters()[i]->shape().isScalar();
  if (!fits)
    c.fail(VerifierRule::collective_c3,
           "cannot reduce with " + (reducer ? signature(*reducer) : std::string("a missing computation")));
  return fits;
}

// collective_c4
bool checkPairs(InferenceContext &c) {
  const auto *pairs = c.get<llvm::ArrayRef<llvm::ArrayRef<int64_t>>>(AttributeKey::SourceTargetPairs);
  llvm::SmallVector<int64_t> sources, targets;
  bool fits = pairs != nullptr;
  for (unsigned i = 0; fits && i < pairs->size(); ++i) {
    fits = (*pairs)[i].size() == 2;
    if (!fits)
      break;
    sources.push_back((*pairs)[i][0]);
    targets.push_back((*pairs)[i][1]);
  }
  for (auto *list : {&sources, &targets}) {
    llvm::sort(*list);
    fits = fits && std::adjacent_find(list->begin(), list->end()) == list->end();
  }
  if (!fits)
    c.fail(VerifierRule::collective_c4, "source_target_pairs are no pairs, or repeat a source or a target");
  return fits;
}

/// The results inside the tuple of a start op, whose form is (operands, results, context...).
std::optional<Shape> startedResult(InferenceContext &c) {
  const Shape &result = c.declared();
  if (!isTupleOf(result, 2))
    return c.fail(VerifierRule::async_c1, "the result " + show(result) + " is not (operands, results, ...)");
  return result.element(1);
}

/// A done op alone in a computation that was formed around it: the start op is where the computation is called.
bool startsOutside(const HloInstruction &operand) {
  return operand.opcode() == Opcode::Parameter && !operand.parent()->isEntry();
}

std::optional<Shape> inferDone(InferenceContext &c, Opcode start) {
  const HloInstruction &starter = c.operandInstr(0);
  bool fits = starter.opcode() == start || startsOutside(starter);
  if (fits && start == Opcode::AllReduceStart)
    return c.operand(0);
  if (!fits || !isTupleOf(c.operand(0), 2))
    return c.fail(VerifierRule::async_c2, "the operand is " + describe(c.operandInstr(0)) + ", not a " + text(start));
  return c.operand(0).element(start == Opcode::CopyStart ? 0 : 1);
}

std::optional<Shape> inferAllToAll(InferenceContext &c) {
  if (c.has(AttributeKey::Dimensions) && !gatheredDim(c))
    return std::nullopt;
  if (!checkCollective(c, c.declared(), -1) || !checkSplit(c))
    return std::nullopt;
  return c.declared();
}

std::optional<Shape> inferPermute(InferenceContext &c) {
  if (!checkPairs(c))
    return std::nullopt;
  // With slice_sizes the operands are (input, output, input starts, output starts): an update in place.
  if (c.has(AttributeKey::SliceSizes))
    return c.declared();
  if (c.opcode() == Opcode::CollectivePermuteStart) {
    std::optional<Shape> result = startedResult(c);
    return result && checkCollective(c, *result, -1) ? std::optional<Shape>(c.declared()) : std::nullopt;
  }
  return checkCollective(c, c.declared(), -1) ? std::optional<Shape>(c.declared()) : std::nullopt;
}

std::optional<Shape> inferCopyStart(InferenceContext &c) {
  const Shape &result = c.declared();
  if (!isTupleOf(result, 2) || !result.element(0).compatible(c.operand(0)) ||
      !result.element(1).compatible(c.operand(0)))
    return c.fail(VerifierRule::async_c1, "the result " + show(result) + " is not (copy, original, context)");
  return result;
}

/// Is `part` the beginning of `whole`?
bool isPrefix(llvm::ArrayRef<Shape> part, llvm::ArrayRef<Shape> whole) {
  return part.size() <= whole.size() && llvm::all_of(llvm::zip(part, whole), [](auto pair) {
           return std::get<0>(pair).compatible(std::get<1>(pair));
         });
}

/// Results may be complete, or appear one by one in later updates.
bool isResultSoFar(const Shape &part, const HloComputation &callee) {
  const Shape &whole = callee.root()->shape();
  return part.compatible(whole) || (part.isTuple() && isPrefix(part.elements(), results(callee)));
}

llvm::SmallVector<Shape, 4> parametersOf(const HloComputation &callee) {
  llvm::SmallVector<Shape, 4> shapes;
  for (const HloInstruction *parameter : callee.parameters())
    shapes.push_back(parameter->shape());
  return shapes;
}

// async_c1, async_c3: `operands` are those that the chain of start and updates has by now
std::optional<Shape> inferAsyncTuple(InferenceContext &c, const HloComputation *callee,
                                     llvm::ArrayRef<Shape> operands) {
  const Shape &result = c.declared();
  if (!isTupleOf(result, 2) || !result.element(0).compatible(Shape::tuple(operands)))
    return c.fail(VerifierRule::async_c1, "the result " + show(result) + " does not start with the operands " +
                                              show(Shape::tuple(operands)) + ", followed by results");
  if (!callee || !isPrefix(operands, parametersOf(*callee)) || !isResultSoFar(result.element(1), *callee))
    return c.fail(VerifierRule::async_c3, "the result " + show(result) + " and the operands do not fit " +
                                              (callee ? signature(*callee) : std::string("a missing computation")));
  return result;
}

/// The async-start at the beginning of a chain of updates; null if there is none.
const HloInstruction *startOf(const HloInstruction *instr) {
  while (instr->opcode() == Opcode::AsyncUpdate && instr->numOperands() > 0)
    instr = instr->operand(0);
  return instr->opcode() == Opcode::AsyncStart ? instr : nullptr;
}

std::optional<Shape> inferAsyncUpdateOrDone(InferenceContext &c) {
  if (startsOutside(c.operandInstr(0)) && isTupleOf(c.operand(0), 2))
    return c.opcode() == Opcode::AsyncDone ? c.operand(0).element(1) : c.declared();
  const HloInstruction *start = startOf(&c.operandInstr(0));
  const HloComputation *callee = start ? start->computation(AttributeKey::Calls) : nullptr;
  if (!callee || !callee->root() || !isTupleOf(c.operand(0), 2) || !c.operand(0).element(0).isTuple())
    return c.fail(VerifierRule::async_c2,
                  "the operand is " + describe(c.operandInstr(0)) + ", not an async-start or async-update");
  if (c.opcode() == Opcode::AsyncDone)
    return callee->root()->shape();
  llvm::SmallVector<Shape, 4> operands(c.operand(0).element(0).elements());
  llvm::append_range(operands, c.operandShapes(1, c.numOperands()));
  return inferAsyncTuple(c, callee, operands);
}

} // namespace

std::optional<Shape> inferHost(InferenceContext &c) {
  auto withToken = [&](std::optional<Shape> (*infer)(InferenceContext &)) {
    const Shape &last = c.operand(c.numOperands() - 1);
    return last.isToken() ? infer(c)
                          : c.fail(VerifierRule::transfer_c1, "the last operand is " + show(last) + ", not a token");
  };
  switch (c.opcode()) {
  case Opcode::AfterAll:
    for (unsigned i = 0; i < c.numOperands(); ++i)
      if (!c.operand(i).isToken() && !c.operand(i).isArray())
        return c.fail(VerifierRule::after_all_c1,
                      "operand " + llvm::Twine(i) + " is " + show(c.operand(i)) + ", neither a token nor an array");
    return Shape::token();
  case Opcode::SendDone:
  case Opcode::RecvDone:
    return inferTransferDone(c);
  case Opcode::Infeed:
    return withToken(inferDataAndToken);
  case Opcode::Outfeed:
    return withToken(inferOutfeed);
  case Opcode::Send:
  case Opcode::Recv:
    return withToken(inferTransferStart);
  default:
    HLOC_UNREACHABLE("an op of the Host family has no shape inference");
  }
}

std::optional<Shape> inferCollective(InferenceContext &c) {
  const std::optional<Shape> declared = c.declared();
  if (c.flag(AttributeKey::UseGlobalDeviceIds, false) && !c.has(AttributeKey::ChannelId))
    return c.fail(VerifierRule::collective_c5, "use_global_device_ids=true needs a channel_id");
  if (!checkGroups(c))
    return std::nullopt;
  switch (c.opcode()) {
  case Opcode::AllReduce:
  case Opcode::AllReduceStart:
    return checkReducer(c) && checkCollective(c, c.declared(), -1) ? declared : std::nullopt;
  case Opcode::ReduceScatter:
  case Opcode::AllGather: {
    if (c.opcode() == Opcode::ReduceScatter && !checkReducer(c))
      return std::nullopt;
    std::optional<int64_t> dim = gatheredDim(c);
    return dim && checkShares(c, c.declared(), *dim) ? declared : std::nullopt;
  }
  case Opcode::AllGatherStart: {
    std::optional<int64_t> dim = gatheredDim(c);
    std::optional<Shape> result = dim ? startedResult(c) : std::nullopt;
    return result && checkShares(c, *result, *dim) ? declared : std::nullopt;
  }
  case Opcode::AllReduceDone:
    return inferDone(c, Opcode::AllReduceStart);
  case Opcode::AllGatherDone:
    return inferDone(c, Opcode::AllGatherStart);
  case Opcode::CollectivePermuteDone:
    return inferDone(c, Opcode::CollectivePermuteStart);
  case Opcode::AllToAll:
    return inferAllToAll(c);
  case Opcode::RaggedAllToAll:
    return c.operand(1);
  case Opcode::CollectiveBroadcast:
    // With has_dynamic_root the last operand is the root's number, which is not returned.
    return c.flag(AttributeKey::HasDynamicRoot, false) || checkCollective(c, c.declared(), -1) ? declared
                                                                                               : std::nullopt;
  case Opcode::CollectivePermute:
  case Opcode::CollectivePermuteStart:
    return inferPermute(c);
  default:
    HLOC_UNREACHABLE("a collective has no shape inference");
  }
}

std::optional<Shape> inferAsync(InferenceContext &c) {
  switch (c.opcode()) {
  case Opcode::CopyStart:
    return inferCopyStart(c);
  case Opcode::CopyDone:
    return inferDone(c, Opcode::CopyStart);
  case Opcode::AsyncStart:
    return inferAsyncTuple(c, c.callee(AttributeKey::Calls), c.operandShapes());
  case Opcode::AsyncUpdate:
  case Opcode::AsyncDone:
    return inferAsyncUpdateOrDone(c);
  default:
    HLOC_UNREACHABLE("an asynchronous op has no shape inference");
  }
}

} // namespace hloc
