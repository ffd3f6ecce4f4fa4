// Atomics: loops around compare-and-swap, scopes.
#include "lint/Rules.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

namespace hloc::lint {

namespace {

/// An atomic instruction that computes what an operation followed by a compare-and-swap does.
struct NativeRow {
  llvm::StringLiteral operation, type; ///< of the arithmetic; `*`: any integer type of that width
  unsigned bits;                       ///< 16: of a half in a word, or of a 16-bit compare-and-swap
  uint32_t major;                      ///< the first architecture that has it
  llvm::StringLiteral atomic;
};
constexpr NativeRow natives[] = {
    {"add", "f32", 32, 2, "add.f32"},
    {"add", "f64", 64, 6, "add.f64"},
    {"add", "f16", 16, 7, "add.noftz.f16"},
    {"add", "f16x2", 32, 6, "add.noftz.f16x2"},
    {"add", "bf16", 16, 9, "add.noftz.bf16"},
    {"add", "bf16x2", 32, 9, "add.noftz.bf16x2"},
    {"add", "*", 32, 2, "add.u32"},
    {"add", "*", 64, 2, "add.u64"},
    {"sub", "*", 32, 2, "add.u32"},
    {"sub", "*", 64, 2, "add.u64"},
    {"min", "*", 32, 2, "min"},
    {"min", "*", 64, 5, "min"},
    {"max", "*", 32, 2, "max"},
    {"max", "*", 64, 5, "max"},
    {"and", "*", 32, 2, "and.b32"},
    {"and", "*", 64, 5, "and.b64"},
    {"or", "*", 32, 2, "or.b32"},
    {"or", "*", 64, 5, "or.b64"},
    {"xor", "*", 32, 2, "xor.b32"},
    {"xor", "*", 64, 5, "xor.b64"},
};

bool isFloat(llvm::StringRef type) { return type.starts_with("f") || type.starts_with("bf"); }

/// How a compare-and-swap's new value is made inside its loop.
class UpdateOf {
public:
  /// `swap` writes what was there, compares with operand 2, stores operand 3.
  UpdateOf(const KernelCode &code, uint32_t swap) : code(code), swap(swap), loop(code.loopOf(swap)) {
    const ptx::Instruction &text = *code.instrs[swap].text;
    const ptx::Operand &expected = text.operands[2], &stored = text.operands[3];
    expectsOld = expected.kind == ptx::Operand::Kind::Name && reaches(code.findRegister(expected.name));
    if (stored.kind == ptx::Operand::Kind::Name)
      collect(code.findRegister(stored.name));
  }

  /// Else the loop waits for something, as that around a lock does.
  bool expectsOld = false;
  bool usesOld = false;                 ///< the new value depends on the old one
  bool movesBits = false;               ///< shifts and masks: a part of a word
  llvm::SmallVector<uint32_t> computes; ///< all that is not moving bits or converting
  llvm::StringRef narrow;               ///< f16 or bf16 if it is converted from there

private:
  /// Whether the register has what the swap found, by moves inside the loop.
  bool reaches(uint32_t number) {
    llvm::SmallVector<uint32_t> waiting = {number};
    llvm::SmallSet<uint32_t, 8> seen;
    while (!waiting.empty() && seen.size() < maxSlice) {
      uint32_t at = waiting.pop_back_val();
      if (at == none || !seen.insert(at).second || code.writers[at].size() > maxSlice)
        continue;
      for (uint32_t writer : code.writers[at]) {
        if (writer == swap)
          return true;
        if (code.instrs[writer].name() == "mov" && code.isIn(writer, loop))
          waiting.append(code.instrs[writer].reads.begin(), code.instrs[writer].reads.end());
      }
    }
    return false;
  }

  void collect(uint32_t number) {
    llvm::SmallVector<uint32_t> waiting = {number};
    llvm::SmallSet<uint32_t, 16> seen, counted;
    while (!waiting.empty() && seen.size() < maxSlice) {
      uint32_t at = waiting.pop_back_val();
      if (at == none || !seen.insert(at).second || code.writers[at].size() > maxSlice)
        continue;
      for (uint32_t writer : code.writers[at]) {
        usesOld |= writer == swap;
        if (writer == swap || !code.isIn(writer, loop) || !counted.insert(writer).second)
          continue;
        count(writer);
        waiting.append(code.instrs[writer].reads.begin(), code.instrs[writer].reads.end());
      }
    }
  }

  void count(uint32_t number) {
    const CodeInstr &instr = code.instrs[number];
    llvm::StringRef name = instr.name();
    if (name == "mov")
      return;
    if (llvm::is_contained({"cvt", "prmt", "shl", "shr", "bfe", "bfi", "lop3", "shf"}, name)) {
      movesBits |= name != "cvt" || !isFloat(instr.type());
      if (name == "cvt" && (instr.type() == "f16" || instr.type() == "bf16"))
        narrow = instr.type();
      return;
    }
    computes.push_back(number);
  }

  static constexpr size_t maxSlice = 64; ///< registers, and writers of one; what takes more is no atomic's
  const KernelCode &code;
  uint32_t swap, loop;
};

/// Bits of a part of a word that are changed by one operation, of 16 bits for lack of smaller ones: the word's atomic
/// does that, with ones or zeros around the operand. Empty if there is more to it.
std::string bitsOfPart(const KernelCode &code, const UpdateOf &update, unsigned bits) {
  std::string found;
  for (uint32_t number : update.computes) {
    const CodeInstr &instr = code.instrs[number];
    if (!llvm::is_contained({"and", "or", "xor"}, instr.name()))
      return "";
    if (instr.type() != "b16")
      continue;
    if (!found.empty())
      return "";
    found = fmt::format("{}.b{}", instr.name().str(), bits);
  }
  return found;
}

/// The atomic instruction that does the update, as `atom.` is written before it; empty if there is none.
std::string nativeOf(const KernelCode &code, const UpdateOf &update, unsigned bits, const TargetInfo &target) {
  if (!update.expectsOld)
    return "";
  if (update.computes.empty() && !update.usesOld && !update.movesBits)
    return fmt::format("exch.b{}", bits);
  if (!update.usesOld)
    return "";
  if (update.movesBits && bits >= 32)
    if (std::string native = bitsOfPart(code, update, bits); !native.empty())
      return native;
  const CodeInstr *operation = nullptr;
  for (uint32_t number : update.computes) {
    const CodeInstr &instr = code.instrs[number];
    // A half is put back into its word by masks.
    bool masks = llvm::is_contained({"and", "or", "xor", "selp", "sub", "add"}, instr.name()) && !isFloat(instr.type());
    if (masks && (update.movesBits || !update.narrow.empty()) && update.computes.size() > 1)
      continue;
    if (operation)
      return "";
    operation = &instr;
  }
  if (!operation)
    return "";
  const bool isHalf = isFloat(operation->type()) && (!update.narrow.empty() || typeBits(operation->type()) == 16);
  if (!isHalf && update.movesBits)
    return ""; // bytes and nibbles of a word have no others
  llvm::StringRef type = isHalf && !update.narrow.empty() ? update.narrow : operation->type();
  for (const NativeRow &row : natives) {
    bool fits = row.type == "*" ? !isFloat(type) && typeBits(type) == bits : type == row.type;
    if (row.operation == operation->name() && fits && (row.bits == bits || (isHalf && bits >= 16)) &&
        target.major >= row.major)
      return row.atomic.contains('.') ? row.atomic.str() : row.atomic.str() + "." + type.str();
  }
  return "";
}

} // namespace

void findCasLoops(const KernelContext &context) {
  const KernelCode &code = context.code;
  for (auto [i, instr] : llvm::enumerate(code.instrs)) {
    bool swaps = instr.name() == "atom" && instr.has("cas") && instr.text->operands.size() == 4;
    if (!swaps || code.loopOf(uint32_t(i)) == none)
      continue;
    UpdateOf update(code, uint32_t(i));
    if (std::string native = nativeOf(code, update, typeBits(instr.type()), context.target); !native.empty())
      context.report(Rule::CasLoop, instr,
                     fmt::format("this loop compares and swaps until nobody was faster; `atom.{0}`, or `red.{0}` where "
                                 "the old value is not needed, does it in one",
                                 native));
  }
}

void findSystemScopes(const KernelContext &context) {
  for (const CodeInstr &instr : context.code.instrs) {
    bool synchronizes = llvm::is_contained({"atom", "red", "fence", "membar", "ld", "st", "multimem"}, instr.name());
    if (synchronizes && instr.has("sys"))
      context.report(Rule::SystemScope, instr,
                     "system scope waits for other devices and the host; `.gpu` is enough for one device");
  }
}

} // namespace hloc::lint
