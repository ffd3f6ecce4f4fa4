#pragma once
// One HLO instruction as a kernel on the emulator and as the interpreter evaluates it, run again and again on arrays of
// bit patterns.

#include "run/EmulatorDevice.h"

#include "hloc/hlo/HloModule.h"
#include "hloc/hlo/Opcode.h"
#include "hloc/kernel/Device.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/kernel/TargetInfo.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hloc::accuracy {

/// Elements of the arrays a kernel works on.
inline constexpr size_t chunk = 1 << 16;

struct Instruction {
  Opcode opcode;
  unsigned arity;
  ElementType from, to;                   ///< of the operands and of the result
  int exponentBits = 0, mantissaBits = 0; ///< of reduce-precision
  /// `bf16[65536] exponential(bf16[65536])` and the module around it.
  std::string module() const;
};

/// Bit patterns; complex numbers take two, real part first.
using Patterns = std::vector<uint64_t>;

class Kernel {
public:
  /// Null, with the first diagnostic in `why`, if there is no kernel for it.
  static std::unique_ptr<Kernel> make(const Instruction &instruction, const TargetInfo &target, std::string &why);
  /// Another machine to run it on, on which approximate instructions err as the seed has it (EmulatorOptions); without
  /// one as little as they can.
  bool addMachine(std::optional<uint64_t> approximationSeed, std::string &why);

  /// `chunk` elements of each operand. What the emulated kernel and the interpreter make of them; false after printing
  /// what went wrong.
  bool run(size_t machine, llvm::ArrayRef<Patterns> operands, Patterns &result);
  bool interpret(llvm::ArrayRef<Patterns> operands, Patterns &result);
  /// The same of a function from f32 to f32, without the detour through patterns.
  bool run(size_t machine, llvm::ArrayRef<float> operand, llvm::MutableArrayRef<float> result);
  bool interpret(llvm::ArrayRef<float> operand, llvm::MutableArrayRef<float> result);
  size_t numMachines() const { return machines.size(); }
  const std::string &ptx() const { return image; }

private:
  Literal literalOf(const Patterns &patterns, ElementType type) const;
  Patterns patternsOf(const Literal &literal) const;

  Instruction instruction = {};
  std::unique_ptr<HloModule> module;
  std::string image;
  DeviceProgram program;
  DiagnosticEngine diagnostics;
  std::vector<std::unique_ptr<EmulatorDevice>> machines;
};

} // namespace hloc::accuracy
