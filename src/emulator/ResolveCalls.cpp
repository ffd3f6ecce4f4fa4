// Calls, indexed branches and cache policies, expanded into simpler instructions.
//
// A call becomes a copy of the callee's body with registers and local variables of its own. `.param` variables are
// local memory: what the caller stores to its argument variable is what the callee loads from its parameter, so the
// parameter's name in the copy simply stands for the caller's variable.
#include "ResolveKernel.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

constexpr size_t maxCallDepth = 64;

Decoded located(const ptx::Instruction &i, Opcode opcode, const std::array<uint32_t, 3> &location) {
  Decoded d;
  d.opcode = opcode;
  d.line = i.line;
  d.locFile = location[0], d.locLine = location[1], d.locColumn = location[2];
  return d;
}

Source registerSource(uint32_t slot, Type type) {
  Source s;
  s.kind = Source::Kind::Register;
  s.slot = slot;
  s.bits = uint8_t(type.width());
  return s;
}

Source constantSource(uint64_t value, Type type) {
  Source s;
  s.kind = Source::Kind::Constant;
  s.value = value;
  s.bits = uint8_t(type.width());
  return s;
}

Decoded move(Decoded d, Type type, Source to, Source from) {
  d.type = type;
  d.results = 1;
  d.operands = {std::move(to), std::move(from)};
  return d;
}

} // namespace

std::optional<uint32_t> KernelResolver::labelOf(Frame &frame, const ptx::Instruction &i, StringRef name) {
  uint32_t slot = 0;
  const Entry *e = lookUp(frame, name, slot);
  if (e && e->kind == Entry::Kind::Label)
    return slot;
  error(i.range, DiagnosticKind::UndefinedName, "branch target `" + name.str() + "` is not a label in scope");
  return std::nullopt;
}

void KernelResolver::emitBranch(const ptx::Instruction &i, Source guard, uint32_t label) {
  Decoded d = located(i, Opcode::Bra, location);
  d.guard = std::move(guard);
  d.target = label;
  emit(std::move(d));
}

void KernelResolver::branch(Frame &frame, const ptx::Instruction &i) {
  if (i.operands.size() != 1)
    return error(i.range, DiagnosticKind::OperandCount, "`bra` has one operand");
  if (auto label = labelOf(frame, i, i.operands[0].name))
    emitBranch(i, guardOf(frame, i), *label);
}

/// brx.idx %r, targets  ->  one comparison and branch a target; an index beyond the last one traps.
void KernelResolver::indexedBranch(Frame &frame, const ptx::Instruction &i) {
  const bool plain = i.parts.size() == 2 || (i.parts.size() == 3 && i.parts[2] == "uni");
  if (!plain || i.parts[1] != "idx" || i.operands.size() != 2)
    return unsupported(i, "");
  uint32_t slot = 0;
  const Entry *targets = lookUp(frame, i.operands[1].name, slot);
  if (!targets || targets->kind != Entry::Kind::Targets)
    return error(i.range, DiagnosticKind::UndefinedName, "`" + i.operands[1].name + "` is not a list of targets");
  Source index;
  if (i.operands[0].kind != ptx::Operand::Kind::Name ||
      !bindName(frame, i, i.operands[0], {OperandForm::Kind::Value, b32}, index))
    return failed ? void() : unsupported(i, "");
  Source guard = guardOf(frame, i);
  const uint32_t after = newLabel();
  if (guard.kind != Source::Kind::None) {
    guard.negated = !guard.negated;
    emitBranch(i, guard, after);
  }
  const Source hit = registerSource(newRegister(), predicateType);
  for (size_t k = 0; k < targets->names->size() && !failed; ++k) {
    Decoded test = located(i, Opcode::Setp, location);
    test.type = {TypeClass::Unsigned, 32, 1};
    test.results = 1;
    test.operands = {hit, index, constantSource(k, b32)};
    emit(std::move(test));
    if (auto label = labelOf(frame, i, (*targets->names)[k]))
      emitBranch(i, hit, *label);
  }
  emit(located(i, Opcode::Trap, location));
  placeLabel(after);
}

/// A cache policy is a value that only hints read.
void KernelResolver::policy(Frame &frame, const ptx::Instruction &i) {
  const bool known =
      i.parts.size() > 2 && (i.parts[1] == "fractional" || i.parts[1] == "cvt") && i.parts.back() == "b64";
  Source to;
  if (!known || i.operands.empty() || !i.guard.empty())
    return unsupported(i, "");
  if (bindName(frame, i, i.operands[0], {OperandForm::Kind::Result, b64}, to))
    emit(move(located(i, Opcode::Mov, location), b64, to, constantSource(0, b64)));
}

/// call{.uni} (results), name, (arguments){, prototype}; the lists may be missing.
void KernelResolver::call(Frame &frame, const ptx::Instruction &i) {
  using Kind = ptx::Operand::Kind;
  if (i.parts.size() > 2 || (i.parts.size() == 2 && i.parts[1] != "uni"))
    return unsupported(i, i.parts[1]);
  ArrayRef<ptx::Operand> operands = i.operands, results, arguments;
  if (!operands.empty() && operands[0].kind == Kind::List) {
    results = operands[0].elements;
    operands = operands.drop_front();
  }
  if (operands.empty() || operands[0].kind != Kind::Name)
    return unsupported(i, "");
  StringRef name = operands[0].name;
  if (operands.size() > 1 && operands[1].kind == Kind::List)
    arguments = operands[1].elements;
  const ptx::Function *callee = module.function(name);
  if (!callee || callee->isEntry)
    return error(i.range, DiagnosticKind::UnsupportedFeature,
                 "call of `" + name.str() + "`, which is not a function of this file, is not supported");
  if (!callee->hasBody) {
    if (name != "__assertfail")
      return error(i.range, DiagnosticKind::UnsupportedFeature,
                   "call of `" + name.str() + "`, which has no body in this file, is not supported");
    Decoded trap = located(i, Opcode::Trap, location);
    trap.guard = guardOf(frame, i);
    return emit(std::move(trap));
  }
  if (is_contained(callStack, callee->name))
    return error(i.range, DiagnosticKind::UnsupportedFeature,
                 "recursive call of `" + callee->name + "` is not supported");
  if (callStack.size() > maxCallDepth || callee->results.size() != results.size() ||
      callee->parameters.size() != arguments.size())
    return error(i.range, DiagnosticKind::OperandCount, "call does not fit the parameters of `" + callee->name + "`");
  inlineCall(frame, i, *callee, results, arguments);
}

void KernelResolver::inlineCall(Frame &frame, const ptx::Instruction &i, const ptx::Function &callee,
                                ArrayRef<ptx::Operand> results, ArrayRef<ptx::Operand> arguments) {
  const uint32_t after = newLabel();
  if (Source guard = guardOf(frame, i); guard.kind != Source::Kind::None) {
    guard.negated = !guard.negated;
    emitBranch(i, guard, after);
  }
  Frame copy{.f = callee, .isEntry = false, .returnLabel = newLabel()};
  for (auto [formal, actual] : zip(callee.parameters, arguments))
    if (!bindFormal(frame, copy, i, formal, actual, false))
      return;
  for (auto [formal, actual] : zip(callee.results, results))
    if (!bindFormal(frame, copy, i, formal, actual, true))
      return;
  callStack.push_back(callee.name);
  const auto callLocation = location;
  body(copy);
  location = callLocation;
  callStack.pop_back();
  placeLabel(copy.returnLabel);
  for (auto [formal, actual] : zip(callee.results, results))
    if (formal.space == "reg") {
      Source to;
      auto type = typeOf(formal.type);
      if (!bindName(frame, i, actual, {OperandForm::Kind::Result, *type}, to))
        return;
      uint32_t slot = 0;
      copy.scope = 0;
      lookUp(copy, formal.name, slot);
      emit(move(located(i, Opcode::Mov, location), *type, to, registerSource(slot, *type)));
    }
  placeLabel(after);
}

/// Parameters in registers are copied; `.param` ones share the caller's variable.
bool KernelResolver::bindFormal(Frame &caller, Frame &callee, const ptx::Instruction &i, const ptx::Variable &formal,
                                const ptx::Operand &actual, bool isResult) {
  if (formal.space == "reg") {
    declare(callee, callee.scopes[0], formal);
    auto type = typeOf(formal.type);
    if (failed || isResult)
      return !failed;
    Source from;
    const OperandForm rule{OperandForm::Kind::Value, *type};
    if (!(actual.kind == ptx::Operand::Kind::Name ? bindName(caller, i, actual, rule, from)
                                                  : bindConstant(i, actual, rule, from)))
      return false;
    uint32_t slot = 0;
    lookUp(callee, formal.name, slot);
    emit(move(located(i, Opcode::Mov, location), *type, registerSource(slot, *type), from));
    return true;
  }
  uint32_t slot = 0;
  const Entry *variable = lookUp(caller, actual.name, slot);
  if (!variable || variable->kind != Entry::Kind::Variable || variable->symbol.space != Space::Local)
    return mismatch(i, "argument `" + actual.name + "`");
  Entry e;
  e.kind = Entry::Kind::Variable;
  e.symbol = variable->symbol;
  callee.scopes[0].entries[formal.name] = e;
  return true;
}

} // namespace hloc::emulator
