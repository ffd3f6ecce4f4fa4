// OpcodeEmission.def as a table.
#include "hloc/emitters/OpcodeSupport.h"

#include "emitters/FunctionEmitter.h"
#include "hloc/hlo/External.h"

#include <array>

namespace hloc {

const OpcodeEmission &FunctionEmitter::emissionOf(Opcode opcode) {
  using Kind = OpcodeEmission::Kind;
  static constexpr auto table = [] {
    using enum OpcodeTrait;
    std::array<OpcodeEmission, numOpcodes()> rows{};
    std::array<OpcodeFamily, numOpcodes()> families{};
    auto at = [&](Opcode opcode) -> OpcodeEmission & { return rows[static_cast<size_t>(opcode)]; };
#define HLOC_OPCODE(name, text, minOperands, maxOperands, family, shape, traits, attributes)                           \
  families[static_cast<size_t>(Opcode::name)] = OpcodeFamily::family;                                                  \
  if (includes(traits, Elementwise))                                                                                   \
    at(Opcode::name) = {Kind::InPlace, nullptr, nullptr};
#include "hloc/hlo/Opcodes.def"
#define HLOC_EMIT(name, method) at(Opcode::name) = {Kind::Method, &FunctionEmitter::method, nullptr};
#define HLOC_EMIT_IN_PLACE(name) at(Opcode::name) = {Kind::InPlace, nullptr, nullptr};
#define HLOC_EMIT_LEAF(name) at(Opcode::name) = {Kind::Leaf, nullptr, nullptr};
#define HLOC_TAKEN_APART(name) at(Opcode::name) = {Kind::TakenApart, nullptr, nullptr};
#define HLOC_REFUSE(name, reason) at(Opcode::name) = {Kind::Refused, nullptr, reason};
#define HLOC_REFUSE_FAMILY(refused, reason)                                                                            \
  for (size_t i = 0; i < numOpcodes(); ++i)                                                                            \
    if (families[i] == OpcodeFamily::refused)                                                                          \
      rows[i] = {Kind::Refused, nullptr, reason};
#include "emitters/OpcodeEmission.def"
    return rows;
  }();
  static_assert(
      [] {
        for (const OpcodeEmission &row : table)
          if (row.kind == Kind::Missing)
            return false;
        return true;
      }(),
      "an opcode that is not elementwise has no row in OpcodeEmission.def");
  return table[static_cast<size_t>(opcode)];
}

const char *kernelRefusal(Opcode opcode) { return FunctionEmitter::emissionOf(opcode).reason; }

std::string kernelRefusal(const HloInstruction &instr, const char *otherwise) {
  const char *known = kernelRefusal(instr.opcode());
  std::string what = "opcode `" + text(instr.opcode()).str() + "`", reason = known ? known : otherwise;
  if (llvm::StringRef target = instr.string(AttributeKey::CustomCallTarget); !target.empty()) {
    what += " of `" + target.str() + "`";
    if (isHostPython(target))
      reason = "a function of the host's Python";
  }
  return what + " is not supported in a kernel: " + reason;
}

bool isLeaf(const HloInstruction &instr) {
  return FunctionEmitter::emissionOf(instr.opcode()).kind == OpcodeEmission::Kind::Leaf;
}

} // namespace hloc
