// Arithmetic that costs many times what would do.
#include "lint/Rules.h"

#include "fmt/format.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc::lint {

namespace {

/// f64 operations joined by the registers between them. What goes in and comes out is f64 of its own, or is converted.
class DoubleParts {
public:
  explicit DoubleParts(const KernelCode &code)
      : code(code), classes(unsigned(code.numRegisters())), around(code.numRegisters()) {
    for (const CodeInstr &instr : code.instrs)
      lookAt(instr);
    // A register that double operations write joins those that read it with them.
    for (const CodeInstr &instr : code.instrs)
      if (computesDouble(instr) && !instr.results.empty())
        for (uint32_t read : instr.reads)
          if (around[read].isDouble)
            classes.join(instr.results.front(), read);
    classes.compress();
    parts.resize(classes.getNumClasses());
    for (auto [i, instr] : llvm::enumerate(code.instrs))
      if (computesDouble(instr) && !instr.results.empty())
        addTo(parts[classes[instr.results.front()]], uint32_t(i));
  }

  struct Part {
    uint32_t first = none; ///< instr that computes
    bool fromNarrow = false, toNarrow = false, isMeant = false;
    unsigned count = 0;
  };
  std::vector<Part> parts;

private:
  /// Who writes and reads a register besides double operations.
  struct Around {
    bool isDouble = false;   ///< one of those writes it
    bool fromNarrow = false; ///< cvt.f64.f32 and the like write it
    bool toNarrow = false;   ///< cvt.rn.f32.f64 and the like read it
    bool fromElse = false, toElse = false;
  };

  static bool isNarrow(llvm::StringRef type) { return type == "f32" || type == "f16" || type == "bf16"; }

  /// On doubles: arithmetic, and comparisons and choices that belong to it.
  static bool computesDouble(const CodeInstr &instr) {
    bool isMemory = llvm::is_contained({"ld", "ldu", "st", "atom", "red", "cvt", "mov"}, instr.name());
    return !isMemory && instr.has("f64");
  }

  void lookAt(const CodeInstr &instr) {
    llvm::ArrayRef<std::string> words = instr.text->parts;
    const bool isDouble = computesDouble(instr), converts = instr.name() == "cvt" && words.size() >= 3;
    const bool isConstant = instr.name() == "mov" && instr.reads.empty();
    const bool fromNarrow = converts && isNarrow(words.back()),
               toNarrow = converts && isNarrow(words[words.size() - 2]);
    for (uint32_t result : instr.results) {
      around[result].isDouble |= isDouble;
      around[result].fromNarrow |= fromNarrow;
      around[result].fromElse |= !isDouble && !fromNarrow && !isConstant;
    }
    for (uint32_t read : instr.reads) {
      around[read].toNarrow |= toNarrow;
      around[read].toElse |= !isDouble && !toNarrow;
    }
  }

  void addTo(Part &part, uint32_t number) {
    const CodeInstr &instr = code.instrs[number];
    const bool compares = instr.name() == "setp", chooses = instr.name() == "selp" || compares;
    part.count += !chooses;
    if (!chooses && part.first == none)
      part.first = number;
    for (uint32_t read : instr.reads) {
      bool isPredicate = read == code.findRegister(instr.text->guard) || (chooses && isWrittenByComparison(read));
      part.fromNarrow |= around[read].fromNarrow;
      part.isMeant |= !isPredicate && around[read].fromElse;
    }
    for (uint32_t result : instr.results) {
      part.toNarrow |= around[result].toNarrow;
      part.isMeant |= !compares && around[result].toElse;
    }
  }

  bool isWrittenByComparison(uint32_t number) const {
    return !code.writers[number].empty() &&
           llvm::is_contained({"setp", "and", "or", "xor", "not"}, code.instrs[code.writers[number].front()].name());
  }

  const KernelCode &code;
  llvm::IntEqClasses classes; ///< of registers
  std::vector<Around> around; ///< each register
};

/// A number in the text, or a register that only ever gets one.
bool isConstant(const ptx::Operand &operand, const KernelCode &code) {
  if (operand.kind == ptx::Operand::Kind::Integer)
    return true;
  uint32_t number = operand.kind == ptx::Operand::Kind::Name ? code.findRegister(operand.name) : none;
  if (number == none || code.writers[number].size() != 1)
    return false;
  const ptx::Instruction &writer = *code.instrs[code.writers[number].front()].text;
  return writer.parts.front() == "mov" && writer.operands.size() == 2 &&
         writer.operands[1].kind == ptx::Operand::Kind::Integer;
}

} // namespace

void findAccidentalDoubles(const KernelContext &context) {
  if (context.facts.wantsDouble)
    return;
  DoubleParts doubles(context.code);
  for (const DoubleParts::Part &part : doubles.parts)
    if (part.first != none && part.fromNarrow && part.toNarrow && !part.isMeant)
      context.report(Rule::AccidentalDouble, context.code.instrs[part.first],
                     fmt::format("{} f64 {} on values that were narrower floats and become such again: at half of the "
                                 "rate of f32 at best, on many devices at 1/64",
                                 part.count, part.count == 1 ? "operation" : "operations"));
}

void findSlowDivisions(const KernelContext &context) {
  const KernelCode &code = context.code;
  for (auto [i, instr] : llvm::enumerate(code.instrs)) {
    if (instr.name() != "div" && instr.name() != "rem")
      continue;
    llvm::StringRef type = instr.type();
    bool rounds = llvm::any_of(instr.text->parts,
                               [](llvm::StringRef part) { return llvm::is_contained({"rn", "rz", "rm", "rp"}, part); });
    if (type == "f32" && rounds)
      context.report(Rule::SlowDivision, instr,
                     "a correctly rounded quotient takes 8 instructions and a slow path; `div.full.f32` 5, with 2 ULP");
    if (type.starts_with("f") || instr.text->operands.size() < 3)
      continue;
    const ptx::Operand &divisor = instr.text->operands[2];
    if (isConstant(divisor, code))
      context.report(Rule::SlowDivision, instr,
                     "ptxas divides by a constant as by anything, in 15 instructions and more; a multiplication and a "
                     "shift do it");
    else if (code.loopOf(uint32_t(i)) != none && !context.facts.wantsIntegerDivision)
      context.report(Rule::SlowDivision, instr,
                     "an integer division in a loop takes 15 instructions and more each time; coordinates can be "
                     "carried along");
  }
}

} // namespace hloc::lint
