#pragma once
// One instruction on given operands: what most interpreter tests need.
//
//   OneOp op;
//   op.run(Opcode::Slice, Shape::array(F32, {2}), {x}, {{AttributeKey::Slice, op.list<SliceDim>({{0, 4, 2}})}})

#include "hloc/hlo/HloBuilder.h"
#include "hloc/interp/Interpreter.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

namespace hloc {

inline Literal numbers(ElementType type, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<double> values) {
  Literal literal(Shape::array(type, dims));
  for (size_t i = 0; i < values.size(); ++i)
    if (isFloat(type))
      literal.setDouble(int64_t(i), values[i]);
    else if (isComplex(type))
      literal.setComplex(int64_t(i), values[i]);
    else
      literal.setInt(int64_t(i), int64_t(values[i]));
  return literal;
}
inline Literal numbers(ElementType type, llvm::ArrayRef<double> values) {
  return numbers(type, {int64_t(values.size())}, values);
}
inline Literal scalar(ElementType type, double value) { return numbers(type, {}, {value}); }

inline std::vector<double> doubles(const Literal &literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.numElements(); ++i)
    values.push_back(literal.getDouble(i));
  return values;
}

class OneOp {
public:
  OneOp() : module("m") {}

  template <typename T> llvm::ArrayRef<T> list(std::vector<T> values) {
    return module.arena().saveList(llvm::ArrayRef<T>(values));
  }
  Attribute ints(AttributeKey key, std::vector<int64_t> values) { return {key, list<int64_t>(values)}; }
  template <typename Enum> static Attribute choice(AttributeKey key, Enum value) { return {key, int64_t(value)}; }

  /// A scalar computation (a, b) -> opcode(a, b).
  HloComputation *binary(Opcode opcode, ElementType type, std::vector<Attribute> attributes = {}) {
    HloComputation *made = module.addComputation("f" + std::to_string(module.computations().size()));
    HloBuilder b(*made);
    HloInstruction *x = b.parameter(0, Shape::scalar(type)), *y = b.parameter(1, Shape::scalar(type));
    Shape result = Shape::scalar(opcode == Opcode::Compare ? ElementType::Pred : type);
    made->setRoot(b.add(opcode, result, {x, y}, attributes));
    return made;
  }
  /// (a, b) -> b
  HloComputation *second(ElementType type) {
    HloComputation *made = module.addComputation("f" + std::to_string(module.computations().size()));
    HloBuilder b(*made);
    b.parameter(0, Shape::scalar(type));
    made->setRoot(b.parameter(1, Shape::scalar(type)));
    return made;
  }

  llvm::FailureOr<Literal> tryRun(Opcode opcode, const Shape &shape, std::vector<Literal> operands,
                                  std::vector<Attribute> attributes = {}) {
    HloComputation *entry = module.addComputation("entry" + std::to_string(module.computations().size()));
    HloBuilder b(*entry);
    std::vector<HloInstruction *> parameters;
    for (const Literal &operand : operands)
      parameters.push_back(b.parameter(int64_t(parameters.size()), operand.shape()));
    entry->setRoot(b.add(opcode, shape, parameters, attributes));
    return interpret(*entry, operands, diagnostics);
  }
  Literal run(Opcode opcode, const Shape &shape, std::vector<Literal> operands,
              std::vector<Attribute> attributes = {}) {
    llvm::FailureOr<Literal> result = tryRun(opcode, shape, std::move(operands), std::move(attributes));
    std::string messages;
    llvm::raw_string_ostream os(messages);
    diagnostics.print(os, false);
    INFO(messages);
    REQUIRE(llvm::succeeded(result));
    return *result;
  }
  /// An op on operands of one dimension each.
  std::vector<double> values(Opcode opcode, ElementType result, std::vector<Literal> operands,
                             std::vector<Attribute> attributes = {}) {
    Shape shape = Shape::array(result, operands[0].shape().dims());
    return doubles(run(opcode, shape, std::move(operands), std::move(attributes)));
  }

  HloModule module;
  DiagnosticEngine diagnostics;
};

} // namespace hloc
