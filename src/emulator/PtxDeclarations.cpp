// Operands of instructions, and variables with their initial values.
#include "PtxParser.h"

using namespace llvm;

namespace hloc::ptx {

static constexpr unsigned maxOperandDepth = 4;

Operand Parser::operandList(Operand::Kind kind, char close, unsigned depth) {
  Operand result;
  result.kind = kind;
  if (take(close))
    return result;
  do
    result.elements.push_back(operand(depth + 1));
  while (!failed && take(','));
  expect(close);
  return result;
}

/// [name + offset], [offset], and [tensorMap, {coordinates}].
Operand Parser::address(unsigned depth) {
  Operand result;
  result.kind = Operand::Kind::Address;
  if (atName())
    result.name = name();
  const bool plus = !result.name.empty() && take('+');
  if (!failed && peek() != ']' && peek() != ',') {
    if (!result.name.empty() && !plus && peek() != '-')
      error(DiagnosticKind::UnsupportedFeature, "this form of address is not supported (instruction `" + opcode + "`)");
    Operand offset = number();
    if (offset.kind != Operand::Kind::Integer)
      error(DiagnosticKind::BadNumber, "offset of an address is not an integer");
    result.value = offset.value;
  }
  if (!failed && take(',')) {
    expect('{');
    result.elements = operandList(Operand::Kind::Vector, '}', depth).elements;
  }
  if (!failed && peek() != ']')
    error(DiagnosticKind::UnsupportedFeature, "this form of address is not supported (instruction `" + opcode + "`)");
  expect(']');
  return result;
}

/// A name, `symbol + offset`, or a pair `%r|%p`.
Operand Parser::named(unsigned depth) {
  Operand result;
  result.name = name();
  result.kind = result.name == "_" ? Operand::Kind::Sink : Operand::Kind::Name;
  if (take('|')) {
    Operand pair;
    pair.kind = Operand::Kind::Pair;
    pair.elements.push_back(result);
    pair.elements.push_back(operand(depth + 1));
    return pair;
  }
  if (peek() == '+' || peek() == '-') {
    take('+');
    result.value = integer();
  }
  return result;
}

Operand Parser::operand(unsigned depth) {
  Operand result;
  if (depth > maxOperandDepth) {
    error(DiagnosticKind::TooDeep, "operand is nested too deeply");
    return result;
  }
  if (take('{'))
    return operandList(Operand::Kind::Vector, '}', depth);
  if (opcode.starts_with("call") && take('('))
    return operandList(Operand::Kind::List, ')', depth);
  if (take('['))
    return address(depth);
  if (take('!')) {
    result = operand(depth + 1);
    result.negated = true;
    return result;
  }
  return atNumber() ? number() : named(depth);
}

/// `.align 4 .b8`, `.u64 .ptr .global .align 16`
void Parser::variableType(Variable &v) {
  while (!failed && take('.')) {
    std::string part = dotted();
    if (part == "align")
      v.align = literalInteger();
    else if (part == "ptr")
      v.pointer = true;
    else if (v.pointer)
      v.pointerSpace = part;
    else if (v.type.empty())
      v.type = part;
    else
      error(DiagnosticKind::UnsupportedFeature, "variables with `." + part + "` are not supported");
  }
}

Variable Parser::variable(std::string linkage, std::string space) {
  constexpr uint64_t maxRange = 1u << 20, maxLength = 1ull << 32, maxAlign = 4096;
  Variable v;
  v.linkage = std::move(linkage);
  v.space = std::move(space);
  peek();
  v.where = {uint32_t(at), uint32_t(at)};
  variableType(v);
  v.name = name();
  if (take('<')) {
    v.range = literalInteger();
    expect('>');
  }
  while (!failed && take('[')) {
    uint64_t size = peek() == ']' ? 0 : integer();
    if (size > maxLength)
      error(DiagnosticKind::InputTooLarge, "variable `" + v.name + "` is too large");
    v.length = std::min(v.length.value_or(1) * size, maxLength + 1);
    expect(']');
  }
  if (take('='))
    initialValue(v, 0);
  v.where.end = uint32_t(at);
  if (v.range.value_or(0) > maxRange || v.length.value_or(0) > maxLength || v.align > maxAlign)
    error(DiagnosticKind::InputTooLarge, "variable `" + v.name + "` is too large");
  if (v.align & (v.align - 1))
    error(DiagnosticKind::BadNumber, "alignment of `" + v.name + "` is not a power of two");
  return v;
}

/// Rows of `{{1, 2}, {3, 4}}` follow each other.
void Parser::initialValue(Variable &v, unsigned depth) {
  if (depth > maxOperandDepth)
    return error(DiagnosticKind::TooDeep, "initial value is nested too deeply");
  if (!take('{'))
    return v.initial.push_back(initializer());
  if (take('}'))
    return;
  do
    initialValue(v, depth + 1);
  while (!failed && take(','));
  expect('}');
}

/// 12, 0f3F800000, table, table+4, generic(table)+4, 0xFF00(table)
Initializer Parser::initializer() {
  Initializer result;
  if (!atName()) {
    Operand bits = number();
    result.value = bits.value;
    if (bits.kind == Operand::Kind::Integer && take('(')) {
      result.mask = bits.value;
      result.value = 0;
    } else {
      return result;
    }
  }
  result.symbol = name();
  if (result.symbol == "generic" && take('(')) {
    result.generic = true;
    result.symbol = name();
    expect(')');
  }
  if (peek() == '+' || peek() == '-') {
    take('+');
    result.value = integer();
  }
  if (result.mask)
    expect(')');
  return result;
}

} // namespace hloc::ptx
