#pragma once
// What expanders write ops with: elementwise arithmetic, index arithmetic, and loops that count.
//
//   Expansion x(rewriter.builder());
//   auto *sum = x.binary(Opcode::Add, a, x.like(a, 1));   // a + 1
//   auto state = x.repeat(10, {a}, "loop", [](Expansion &x, HloInstruction *i, llvm::ArrayRef<HloInstruction *> s) {
//     return llvm::SmallVector<HloInstruction *>{x.binary(Opcode::Add, s[0], s[0])};
//   });
//
// All values have the default layout; `result` gives the one that the text wants.

#include "FuseGroups.h"

#include <functional>

namespace hloc {

class Expansion {
public:
  using Value = HloInstruction *;
  using Values = llvm::SmallVector<HloInstruction *>;
  /// The next state, of the number of the round (s32[]) and the state.
  using Round = llvm::function_ref<Values(Expansion &, Value, llvm::ArrayRef<Value>)>;

  /// Of `expanded`, which is in the computation that `builder` builds: what is made has its place in the text.
  Expansion(HloBuilder &builder, const HloInstruction &expanded)
      : Expansion(builder, *expanded.parent(), expanded.range()) {}

  HloBuilder &builder() { return b; }

  /// In the default layout.
  Value plain(Value x);
  /// In the type and layout of `shape`, which has the dimensions of x.
  Value result(Value x, const Shape &shape);

  Value binary(Opcode opcode, Value x, Value y) { return b.infer(opcode, {x, y}); }
  Value add(Value x, Value y) { return binary(Opcode::Add, x, y); }
  Value subtract(Value x, Value y) { return binary(Opcode::Subtract, x, y); }
  Value multiply(Value x, Value y) { return binary(Opcode::Multiply, x, y); }
  Value divide(Value x, Value y) { return binary(Opcode::Divide, x, y); }
  Value unary(Opcode opcode, Value x) { return b.infer(opcode, {x}); }
  Value conjugate(Value x); ///< x itself if it is real
  Value select(Value predicate, Value x, Value y) { return b.infer(Opcode::Select, {predicate, x, y}); }

  /// Constants. `pattern`: of an unsigned integer, whole.
  Value scalar(ElementType type, double value);
  Value pattern(ElementType type, uint64_t value);
  Value filled(ElementType type, llvm::ArrayRef<int64_t> dims, double value);
  Value zeros(const Shape &shape); ///< in its layout
  Value like(Value x, double value) { return filled(x->shape().elementType(), x->shape().dims(), value); }
  /// A scalar at every element.
  Value spread(Value scalar, llvm::ArrayRef<int64_t> dims);
  Value iota(ElementType type, llvm::ArrayRef<int64_t> dims, int64_t dimension);

  Value reshape(Value x, llvm::ArrayRef<int64_t> dims);
  /// x[..., start:limit, ...] of one dimension
  Value range(Value x, unsigned dimension, int64_t start, int64_t limit);
  /// What is at `index` (s32[]) of a dimension, which stays with size 1; an update of such a part.
  Value at(Value x, unsigned dimension, Value index);
  Value withAt(Value x, Value part, unsigned dimension, Value index);
  Value dot(Value x, Value y, llvm::ArrayRef<int64_t> batchX, llvm::ArrayRef<int64_t> batchY, int64_t contractX,
            int64_t contractY);

  /// A loop of `rounds` rounds over `state`; its final state.
  Values repeat(int64_t rounds, llvm::ArrayRef<Value> state, llvm::StringRef name, Round round);
  /// Rounds, at most `limit`, while the first value of the state, a pred[], is true.
  Values repeatWhile(int64_t limit, llvm::ArrayRef<Value> state, llvm::StringRef name, Round round);
  /// The computation of one op on two scalars.
  HloComputation *reducer(Opcode opcode, ElementType type);
  /// Copies what `callee` computes of `arguments`; its result, or the elements of its tuple.
  Values apply(const HloComputation &callee, llvm::ArrayRef<Value> arguments);
  /// The same of a computation of scalars, elementwise but for constants and a tuple as root, at every element.
  Values applyToArrays(const HloComputation &callee, llvm::ArrayRef<Value> arguments, llvm::ArrayRef<int64_t> dims);

private:
  Expansion(HloBuilder &builder, HloComputation &where, SourceRange place) : b(builder), where(where), place(place) {
    b.setRange(place);
  }
  Values copied(const HloComputation &callee, llvm::ArrayRef<Value> arguments, const llvm::ArrayRef<int64_t> *dims);
  Values loop(int64_t rounds, bool asksState, llvm::ArrayRef<Value> state, llvm::StringRef name, Round round);

  HloBuilder &b;
  HloComputation &where; ///< computations that are made stand in front of it
  SourceRange place;
};

} // namespace hloc
