// Which instructions translated code does not lower itself.
#include "Program.h"

namespace hloc::emulator {
namespace {

enum class Execution : uint8_t { Lowered, Collective, ByForm };

bool isStorageOnly(Type type) {
  return type.kind == TypeClass::Tf32 || type.kind == TypeClass::E4m3 || type.kind == TypeClass::E5m2;
}

} // namespace

bool isCollective(const Decoded &d) {
  static constexpr Execution executions[] = {
#define HLOC_PTX_OPCODE(name, text, family, counted, execution) Execution::execution,
#include "Opcodes.def"
  };
  Execution execution = executions[size_t(d.opcode)];
  if (execution != Execution::ByForm)
    return execution == Execution::Collective;
  switch (d.opcode) {
  case Opcode::Cvt: // cvt.pack has three operands of integer type
    return isStorageOnly(d.type) || isStorageOnly(d.from) || d.relu || d.satfinite ||
           (d.operands.size() > 2 && !d.from.isFloat());
  case Opcode::Fma:
    return d.relu;
  case Opcode::Max:
  case Opcode::Min:
    return d.xorSign || d.relu || d.operands.size() == 4;
  case Opcode::Prmt:
    return d.mode != Mode::None;
  case Opcode::Setp:
    return d.type.lanes == 2;
  default:
    __builtin_unreachable();
  }
}

} // namespace hloc::emulator
