// rng and rng-get-and-update-state -> rng-bit-generator on a state that is passed along: HLO leaves their values and
// their state open. Here that is a counter, 0 when the entry starts, in the order of the instructions, carried through
// loops; each number takes 64 bits of threefry under a fixed key, two of them if it is normal (Box-Muller).

#include "Expansion.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <numbers>

namespace hloc {

namespace {

using Value = Expansion::Value;
using Values = Expansion::Values;

constexpr ElementType u64 = ElementType::U64, f64 = ElementType::F64;
constexpr uint64_t generatorKey = uint64_t(0x6C) << 32 | 0x68; // "hl" of the name, a letter a word

bool isRandom(const HloInstruction &instr) {
  return instr.opcode() == Opcode::Rng || instr.opcode() == Opcode::RngGetAndUpdateState;
}

/// Distributions of 64 random bits each.
class Numbers {
public:
  Numbers(Expansion &x, const HloInstruction &rng, Value &state) : x(x), rng(rng), state(state) {
    dims.assign(rng.shape().dims().begin(), rng.shape().dims().end());
  }

  Value made() {
    ElementType type = rng.shape().elementType();
    if (rng.enumOr(AttributeKey::Distribution, RandomDistribution::Uniform) == RandomDistribution::Normal)
      return x.result(normal(), rng.shape());
    return x.result(isFloat(type) ? uniform() : integer(), rng.shape());
  }

private:
  Value spread(Value scalar) { return x.spread(scalar, dims); }
  Value parameter(unsigned i) { return spread(x.builder().convert(rng.operand(i), f64)); }

  /// `perElement` words each, as the last dimension if there are several.
  Value bits(int64_t perElement) {
    HloBuilder &b = x.builder();
    llvm::SmallVector<int64_t> sizes(dims);
    if (perElement > 1)
      sizes.push_back(perElement);
    Shape shape = Shape::array(u64, sizes), pair = Shape::array(u64, {2});
    Value counter = b.concatenate({x.reshape(x.pattern(u64, generatorKey), {1}), x.reshape(state, {1})}, 0);
    Value made = b.add(Opcode::RngBitGenerator, Shape::tuple({pair, shape}), {counter},
                       {{AttributeKey::Algorithm, int64_t(RandomAlgorithm::ThreeFry)}});
    state = x.add(state, x.pattern(u64, uint64_t(shape.numElements())));
    return b.tupleElement(made, 1);
  }

  /// [0, 1) from 53 bits.
  Value unit(Value words) {
    Value high = x.binary(Opcode::ShiftRightLogical, words, spread(x.pattern(u64, 11)));
    return x.multiply(x.builder().convert(high, f64), x.filled(f64, dims, 0x1p-53));
  }

  Value uniform() {
    HloBuilder &b = x.builder();
    ElementType type = rng.shape().elementType();
    Value low = parameter(0), high = parameter(1);
    Value made = b.convert(x.add(low, x.multiply(unit(bits(1)), x.subtract(high, low))), type);
    // rounded up to the excluded end
    Value isOutside = b.compare(ComparisonDirection::Ge, b.convert(made, f64), high);
    return x.select(isOutside, b.convert(low, type), made);
  }

  Value normal() {
    HloBuilder &b = x.builder();
    Value words = bits(2);
    auto word = [&](int64_t i) { return unit(x.reshape(x.range(words, unsigned(dims.size()), i, i + 1), dims)); };
    Value one = x.filled(f64, dims, 1), tail = x.subtract(one, word(0));
    Value radius = x.unary(Opcode::Sqrt, x.multiply(x.filled(f64, dims, -2), x.unary(Opcode::Log, tail)));
    Value angle = x.multiply(x.filled(f64, dims, 2 * std::numbers::pi), word(1));
    Value deviation = x.multiply(x.multiply(parameter(1), radius), x.unary(Opcode::Cosine, angle));
    return b.convert(x.add(parameter(0), deviation), rng.shape().elementType());
  }

  Value integer() {
    HloBuilder &b = x.builder();
    ElementType type = rng.shape().elementType();
    auto whole = [&](unsigned i) {
      if (!isSigned(type))
        return spread(b.convert(rng.operand(i), u64));
      Value wide = b.convert(rng.operand(i), ElementType::S64);
      return spread(b.infer(Opcode::BitcastConvert, {wide}, {}, Shape::scalar(u64)));
    };
    Value low = whole(0), range = x.subtract(whole(1), low), none = x.filled(u64, dims, 0);
    Value made = x.binary(Opcode::Remainder, bits(1), range);
    Value isEmpty = b.compare(ComparisonDirection::Eq, range, none);
    Value sum = x.add(low, x.select(isEmpty, none, made));
    return isPred(type) ? b.compare(ComparisonDirection::Ne, sum, none) : b.convert(sum, type);
  }

  Expansion &x;
  const HloInstruction &rng;
  Value &state;
  llvm::SmallVector<int64_t> dims;
};

class StatePassing {
public:
  explicit StatePassing(HloModule &module) : control(controlComputations(module)) {}

  /// Is there anything to do, and can it be done? Not where branches draw, nor where it takes a condition to.
  bool applies() {
    bool any = false;
    for (HloComputation *computation : control) {
      for (const HloInstruction *instr : computation->instructions()) {
        if (!draws(*instr))
          continue;
        any = true;
        drawing.insert(computation);
        bool isLoop = instr->opcode() == Opcode::While;
        if (isLoop ? !instr->shape().isTuple() || drawing.contains(instr->computation(AttributeKey::Condition))
                   : !isRandom(*instr) || isComplex(instr->shape().elementType()))
          return false;
        if (isLoop)
          conditions.insert(instr->computation(AttributeKey::Condition));
      }
    }
    return any;
  }

  void run() {
    for (HloComputation *computation : control)
      if (drawing.contains(computation) || conditions.contains(computation))
        rewrite(*computation);
  }

private:
  bool draws(const HloInstruction &instr) const {
    if (isRandom(instr))
      return true;
    return isControlFlow(instr) &&
           llvm::any_of(instr.calledComputations(), [&](HloComputation *called) { return drawing.contains(called); });
  }

  static Values elementsOf(HloBuilder &b, Value tuple, size_t count) {
    if (tuple->opcode() == Opcode::Tuple)
      return Values(tuple->operands());
    Values elements;
    for (size_t i = 0; i < count; ++i)
      elements.push_back(b.tupleElement(tuple, int64_t(i)));
    return elements;
  }

  static Shape withState(const Shape &tuple) {
    llvm::SmallVector<Shape> shapes(tuple.elements());
    shapes.push_back(Shape::scalar(u64));
    return Shape::tuple(shapes);
  }

  /// The state, last in the parameter, whose other uses see the tuple that it was.
  Value fromParameter(HloEditor &editor) {
    HloInstruction *parameter = editor.computation().parameters().front();
    auto uses = editor.uses(parameter);
    size_t count = parameter->shape().elements().size();
    editor.setShape(parameter, withState(parameter->shape()));
    HloBuilder b(editor, editor.next(parameter));
    b.setRange(parameter->range());
    Value whole = nullptr;
    for (const HloUse &use : uses) {
      if (use.user->opcode() == Opcode::GetTupleElement)
        continue;
      if (!whole)
        whole = b.tuple(elementsOf(b, parameter, count));
      editor.setOperand(use.user, use.operand, whole);
    }
    if (editor.root() == parameter)
      editor.setRoot(b.tuple(elementsOf(b, parameter, count)));
    return b.tupleElement(parameter, int64_t(count));
  }

  void rewrite(HloComputation &computation) {
    HloEditor editor(computation);
    Value state = nullptr;
    if (!computation.isEntry()) {
      state = fromParameter(editor);
      if (!drawing.contains(&computation)) {
        editor.eraseIfDead(state);
        return;
      }
    }
    for (HloInstruction *instr = editor.first(), *next; instr; instr = next) {
      next = editor.next(instr);
      if (!draws(*instr))
        continue;
      HloBuilder b(editor, instr);
      Expansion x(b, *instr);
      if (!state)
        state = x.pattern(u64, 0);
      if (instr->opcode() == Opcode::While) {
        passThrough(editor, b, instr, state);
        continue;
      }
      editor.replaceAllUses(instr, drawn(x, *instr, state));
      editor.erase(instr);
    }
    if (computation.isEntry())
      return;
    HloBuilder b(editor, nullptr);
    b.setRange(editor.root()->range());
    Values results = elementsOf(b, editor.root(), editor.root()->shape().elements().size());
    results.push_back(state);
    HloInstruction *former = editor.root();
    editor.setRoot(b.tuple(results));
    editor.eraseIfDead(former);
  }

  Value drawn(Expansion &x, const HloInstruction &instr, Value &state) {
    if (instr.opcode() == Opcode::Rng)
      return Numbers(x, instr, state).made();
    Value pair = x.builder().concatenate({x.reshape(state, {1}), x.filled(u64, {1}, 0)}, 0);
    state = x.add(state, x.pattern(u64, uint64_t(instr.intOr(AttributeKey::Delta, 0))));
    return x.result(pair, instr.shape());
  }

  void passThrough(HloEditor &editor, HloBuilder &b, HloInstruction *loop, Value &state) {
    size_t count = loop->shape().elements().size();
    Values elements = elementsOf(b, loop->operand(0), count);
    elements.push_back(state);
    Shape shape = withState(loop->shape());
    Value with = b.add(Opcode::While, shape, {b.tuple(elements)}, loop->attributes());
    Values results = elementsOf(b, with, count);
    state = b.tupleElement(with, int64_t(count));
    editor.replaceAllUses(loop, b.tuple(results));
    editor.eraseWithOperands(loop);
  }

  std::vector<HloComputation *> control;
  llvm::DenseSet<const HloComputation *> drawing, conditions;
};

} // namespace

PassResult expandRng(HloModule &module, HloPassContext &) {
  if (module.headerless())
    return PassResult::Unchanged;
  StatePassing passing(module);
  if (!passing.applies())
    return PassResult::Unchanged;
  passing.run();
  return PassResult::Changed;
}

} // namespace hloc
