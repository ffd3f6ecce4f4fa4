#include "hloc/emitters/OpcodeSupport.h"

namespace hloc {

const char *kernelRefusal(Opcode opcode) {
  switch (family(opcode)) {
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
  case OpcodeFamily::Source:
    break;
  case OpcodeFamily::Convert:
    return opcode == Opcode::StochasticConvert ? "no emitter yet" : nullptr;
  case OpcodeFamily::Identity:
    return opcode == Opcode::Domain || opcode == Opcode::AddDependency ? "has no meaning inside a fusion" : nullptr;
  case OpcodeFamily::Movement:
    switch (opcode) {
    case Opcode::DynamicReshape:
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize:
      return "dynamic shapes";
    default:
      return nullptr;
    }
  case OpcodeFamily::Structured:
    switch (opcode) {
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Dot:
    case Opcode::Map:
      return nullptr; // as loops of one thread, for now
    default:
      return "no emitter yet";
    }
  case OpcodeFamily::Random:
    return "no emitter yet";
  case OpcodeFamily::Structure:
    return nullptr;
  case OpcodeFamily::Control:
    if (opcode == Opcode::CustomCall)
      return "code of a library";
    return opcode == Opcode::Call || opcode == Opcode::Fusion ? nullptr : "control flow between kernels";
  case OpcodeFamily::Host:
    return "host transfer and ordering";
  case OpcodeFamily::Collective:
    return "several devices";
  case OpcodeFamily::Async:
    return "asynchronous execution";
  }
  return nullptr;
}

} // namespace hloc
