// Accesses: neighbours that a vector could do at once, local memory.
#include "lint/LowBits.h"
#include "lint/Rules.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

namespace hloc::lint {

namespace {

/// An access that a wider one could take in.
struct Access {
  uint32_t instr = 0;
  int64_t offset = 0;
  unsigned bytes = 0;
};

/// Accesses of one opcode, off one register, with nothing between them that keeps them apart.
struct Group {
  uint32_t base = none, guard = none; ///< registers; none: a variable, no guard
  bool isStore = false;
  std::vector<Access> accesses;
};

/// ld or st of global or shared memory whose order and width nobody else can see.
bool isPlain(const CodeInstr &instr) {
  bool isAccess = instr.name() == "ld" || instr.name() == "st";
  llvm::StringRef space = spaceOf(instr);
  return isAccess && (space == "global" || space == "shared") && instr.text->operands.size() >= 2 &&
         llvm::none_of(instr.text->parts, [](llvm::StringRef part) {
           return llvm::is_contained({"volatile", "relaxed", "acquire", "release", "mmio"}, part);
         });
}

bool touchesMemory(const CodeInstr &instr) {
  return llvm::is_contained({"ld", "ldu", "st", "atom", "red", "bar", "barrier", "fence", "membar", "cp", "call",
                             "multimem", "ldmatrix", "stmatrix", "wmma", "griddepcontrol", "mbarrier"},
                            instr.name());
}

const ptx::Operand &addressOf(const CodeInstr &instr) { return instr.text->operands[instr.name() == "st" ? 0 : 1]; }

/// Finds the groups of a block and hands each on when something ends it.
class Grouping {
public:
  Grouping(const KernelCode &code, llvm::function_ref<void(const Group &)> finished) : code(code), finished(finished) {}

  void add(uint32_t i) {
    const CodeInstr &instr = code.instrs[i];
    if (isPlain(instr) && bytesOf(instr))
      addAccess(i);
    else if (touchesMemory(instr) && spaceOf(instr) != "param" && spaceOf(instr) != "const")
      finishAll();
    for (uint32_t written : instr.results)
      finishIf([&](const Group &group) { return group.base == written || group.guard == written; });
  }

  void finishAll() {
    finishIf([](const Group &) { return true; });
  }

private:
  static constexpr size_t maxOpen = 32; ///< groups; the oldest ends when there are more

  void addAccess(uint32_t i) {
    const CodeInstr &instr = code.instrs[i];
    const ptx::Operand &address = addressOf(instr);
    const bool isStore = instr.name() == "st";
    auto isOf = [&](const Group &group) {
      const ptx::Instruction &first = *code.instrs[group.accesses.front().instr].text;
      return first.parts == instr.text->parts &&
             addressOf(code.instrs[group.accesses.front().instr]).name == address.name &&
             first.guard == instr.text->guard && first.guardNegated == instr.text->guardNegated;
    };
    // A group becomes one access at the place of its first or last: what may be the same memory keeps it from that.
    if (!instr.has("nc"))
      finishIf([&](const Group &group) {
        const CodeInstr &first = code.instrs[group.accesses.front().instr];
        return spaceOf(first) == spaceOf(instr) && (isStore || group.isStore) && !first.has("nc") && !isOf(group);
      });
    auto group = llvm::find_if(open, isOf);
    if (group == open.end()) {
      if (open.size() == maxOpen) {
        finished(open.front());
        open.erase(open.begin());
      }
      open.push_back({code.findRegister(address.name), code.findRegister(instr.text->guard), isStore, {}});
      group = std::prev(open.end());
    }
    group->accesses.push_back({i, int64_t(address.value), bytesOf(instr)});
  }

  template <typename Ends> void finishIf(const Ends &ends) {
    llvm::erase_if(open, [&](const Group &group) {
      bool ended = ends(group);
      if (ended)
        finished(group);
      return ended;
    });
  }

  const KernelCode &code;
  llvm::function_ref<void(const Group &)> finished;
  std::vector<Group> open;
};

/// Whether an address plus `offset` is certainly a multiple of `bytes`, a power of two.
bool isMultiple(const LowBits &base, int64_t offset, unsigned bytes) {
  return base.known >= llvm::countr_zero(bytes) && ((base.value + uint64_t(offset)) & (bytes - 1)) == 0;
}

/// The widest vector, in bytes, that takes in accesses `run`, which lie side by side, and how many it takes in; 0 if
/// none does.
std::pair<unsigned, unsigned> widestVector(llvm::ArrayRef<Access> run, const LowBits &base, unsigned maxBytes) {
  const unsigned bytes = run.front().bytes;
  for (unsigned wide = maxBytes; wide > bytes; wide /= 2)
    for (const Access &first : run)
      if (isMultiple(base, first.offset, wide) && first.offset + wide <= run.back().offset + bytes)
        return {wide, wide / bytes};
  return {0, 0};
}

/// `v4.b32` of 16 bytes: elements of the given bytes, or of four where they would be too many.
std::string vectorOf(unsigned wide, unsigned elementBytes) {
  unsigned element = std::max(elementBytes, wide <= 4 ? wide : 4u);
  return element >= wide ? fmt::format("b{}", 8 * wide) : fmt::format("v{}.b{}", wide / element, 8 * element);
}

} // namespace

void findScalarAccesses(const KernelContext &context) {
  const KernelCode &code = context.code;
  LowBitsOfRegisters lowBits(code);
  auto examine = [&](const Group &group) {
    if (group.accesses.size() < 2)
      return;
    const CodeInstr &first = code.instrs[group.accesses.front().instr];
    ptx::Operand address = addressOf(first);
    address.value = 0;
    const LowBits base = lowBits.ofAddress(address);
    const unsigned bytes = bytesOf(first), maxBytes = spaceOf(first) == "global" ? context.target.maxVectorBytes : 16;
    std::vector<Access> sorted = group.accesses;
    llvm::sort(sorted, [](const Access &a, const Access &b) {
      return std::pair(a.offset, a.instr) < std::pair(b.offset, b.instr);
    });
    auto sameOffset = [](const Access &a, const Access &b) { return a.offset == b.offset; };
    sorted.erase(std::unique(sorted.begin(), sorted.end(), sameOffset), sorted.end());
    for (size_t begin = 0, end; begin < sorted.size(); begin = end) {
      for (end = begin + 1; end < sorted.size() && sorted[end].offset == sorted[end - 1].offset + bytes;)
        ++end;
      llvm::ArrayRef<Access> run(sorted.data() + begin, end - begin);
      auto [wide, count] = widestVector(run, base, maxBytes);
      if (!wide)
        continue;
      uint32_t at = llvm::min_element(run, [](const Access &a, const Access &b) { return a.instr < b.instr; })->instr;
      context.report(Rule::ScalarAccess, code.instrs[at],
                     fmt::format("{} {} of {} bytes lie side by side at {}-byte boundaries: one `.{}` does {} of them",
                                 run.size(), group.isStore ? "stores" : "loads", bytes, wide,
                                 vectorOf(wide, typeBits(first.type()) / 8),
                                 count == run.size() ? "all" : std::to_string(count)));
    }
  };
  for (const CodeBlock &block : code.blocks) {
    Grouping grouping(code, examine);
    for (uint32_t i = block.begin; i < block.end; ++i)
      grouping.add(i);
    grouping.finishAll();
  }
}

void findLocalMemory(const KernelContext &context) {
  for (const CodeInstr &instr : context.code.instrs)
    if ((instr.name() == "ld" || instr.name() == "st") && spaceOf(instr) == "local")
      return context.report(Rule::LocalMemory, instr, "local memory is DRAM behind a cache, a place for each thread");
  for (const ptx::Statement &statement : context.code.function.body)
    if (statement.kind == ptx::Statement::Kind::Variable && statement.variable.space == "local")
      return context.report(Rule::LocalMemory, fmt::format("`{}` lies in local memory, which is DRAM behind a cache",
                                                           statement.variable.name));
}

} // namespace hloc::lint
