#include "Mutators.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <functional>

namespace hloc::mutation {

namespace {

using ptx::Instruction;
using ptx::Operand;

bool is(const Instruction &instruction, std::initializer_list<llvm::StringRef> opcodes) {
  return llvm::is_contained(opcodes, llvm::StringRef(instruction.parts.front()));
}

bool has(const Instruction &instruction, llvm::StringRef part) { return llvm::is_contained(instruction.parts, part); }

/// Loads and stores of memory that others see; parameters are not.
bool isAccess(const Instruction &i) {
  return is(i, {"ld", "st", "atom", "red"}) && !has(i, "param") && !has(i, "param::entry") && !has(i, "local");
}

bool isFloat(const Instruction &i) {
  return llvm::any_of(i.parts, [](llvm::StringRef part) { return part.starts_with("f") || part.starts_with("bf"); });
}

unsigned bytesOf(const Instruction &i) {
  return llvm::StringSwitch<unsigned>(i.parts.back())
      .Cases({"b8", "u8", "s8"}, 1)
      .Cases({"b16", "u16", "s16", "f16", "bf16"}, 2)
      .Cases({"b64", "u64", "s64", "f64"}, 8)
      .Default(4);
}

/// The part that a change of mode, type or operation turns `part` into; empty where it says nothing of the kind.
std::string otherRounding(llvm::StringRef part) {
  return llvm::StringSwitch<std::string>(part)
      .Case("rn", "rz")
      .Case("rz", "rp")
      .Case("rni", "rmi")
      .Case("rzi", "rni")
      .Case("rmi", "rpi")
      .Case("rpi", "rmi")
      .Default("");
}

std::string otherSign(llvm::StringRef part) {
  if (part.size() > 1 && llvm::isDigit(part[1]) && (part[0] == 's' || part[0] == 'u'))
    return (part[0] == 's' ? "u" : "s") + part.drop_front().str();
  return "";
}

/// An approximation of another function; all take one operand.
std::string otherFunction(llvm::StringRef part) {
  return llvm::StringSwitch<std::string>(part)
      .Case("sin", "cos")
      .Case("cos", "sin")
      .Case("ex2", "lg2")
      .Case("lg2", "ex2")
      .Case("rsqrt", "sqrt")
      .Case("tanh", "sin")
      .Default("");
}

std::string otherComparison(llvm::StringRef part) {
  return llvm::StringSwitch<std::string>(part)
      .Case("lt", "le")
      .Case("le", "lt")
      .Case("gt", "ge")
      .Case("ge", "gt")
      .Case("eq", "ne")
      .Case("ne", "eq")
      .Case("lo", "ls")
      .Case("hi", "hs")
      .Case("leu", "le")
      .Case("geu", "ge")
      .Case("gtu", "gt")
      .Case("ltu", "lt")
      .Case("neu", "ne")
      .Case("equ", "eq")
      .Default("");
}

/// Of an atomic operation, or of a reduction in memory or of a warp.
std::string otherUpdate(llvm::StringRef part) {
  return llvm::StringSwitch<std::string>(part)
      .Case("add", "max")
      .Case("max", "min")
      .Case("min", "max")
      .Case("or", "and")
      .Case("and", "or")
      .Case("all", "any")
      .Case("any", "all")
      .Default("");
}

std::string otherOperation(llvm::StringRef part) {
  return llvm::StringSwitch<std::string>(part).Case("min", "max").Case("max", "min").Case("add", "sub").Default("");
}

/// Registers whose value comes from memory or other threads. All others are made of thread numbers and constants, and
/// are never negative.
llvm::StringSet<> dataRegisters(const ptx::Function &function) {
  llvm::StringSet<> data;
  std::function<bool(const Operand &)> isData = [&](const Operand &operand) {
    return data.contains(operand.name) || llvm::any_of(operand.elements, isData);
  };
  std::function<bool(const Operand &)> add = [&](const Operand &operand) {
    bool added = operand.kind == Operand::Kind::Name && data.insert(operand.name).second;
    for (const Operand &element : operand.elements)
      added |= add(element);
    return added;
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (const ptx::Statement &statement : function.body) {
      const Instruction &i = statement.instruction;
      if (statement.kind != ptx::Statement::Kind::Instruction || i.operands.empty())
        continue;
      bool reads = (isAccess(i) && !is(i, {"st"})) || is(i, {"shfl", "redux", "mma"});
      if (reads || llvm::any_of(llvm::ArrayRef(i.operands).drop_front(), isData))
        grown |= add(i.operands.front());
    }
  }
  return data;
}

class Collector {
public:
  explicit Collector(std::vector<Mutant> &mutants) : mutants(mutants) {}

  void enter(const ptx::Function &entered) { data = dataRegisters(entered); }

  void visit(size_t functionIndex, size_t statementIndex, const Instruction &instruction) {
    function = functionIndex;
    statement = statementIndex;
    original = &instruction;
    control();
    copies();
    arrivals();
    tensorCores();
    memory();
    constants();
    operandOrder();
    parts();
    shuffles();
  }

private:
  static void setInteger(Operand &operand, uint64_t value) {
    operand = Operand();
    operand.kind = Operand::Kind::Integer;
    operand.value = value;
  }
  static void increment(Operand &operand) {
    if (operand.kind == Operand::Kind::Integer)
      ++operand.value;
    else
      setInteger(operand, 1);
  }
  /// In the coordinates of a tensor map, the last register becomes the constant 1.
  void changeLastRegister(const char *mutation, size_t operand) {
    const Operand &coordinates = original->operands[operand];
    if (coordinates.elements.size() < 2)
      return;
    change(mutation, [&](Instruction &c) { setInteger(c.operands[operand].elements.back(), 1); });
  }

  void leaveOut(const char *mutation) {
    mutants.push_back({mutation, function, statement, original->line, std::nullopt});
  }
  void change(const char *mutation, const std::function<void(Instruction &)> &edit) {
    Instruction changed = *original;
    edit(changed);
    mutants.push_back({mutation, function, statement, original->line, std::move(changed)});
  }

  void control() {
    const Instruction &i = *original;
    if (is(i, {"bar", "barrier"}))
      leaveOut("drop-barrier");
    if (is(i, {"fence", "membar"}))
      leaveOut("drop-fence");
    if (i.guard.empty())
      return;
    if (is(i, {"bra"}))
      leaveOut("drop-branch");
    else
      change("drop-guard", [](Instruction &c) { c.guard.clear(), c.guardNegated = false; });
    change("negate-guard", [](Instruction &c) { c.guardNegated = !c.guardNegated; });
  }

  /// What pipelines of asynchronous copies are kept in order by.
  void copies() {
    const Instruction &i = *original;
    if (!is(i, {"cp"}))
      return;
    if (has(i, "commit_group"))
      leaveOut("drop-commit");
    if (has(i, "wait_group") || has(i, "wait_all"))
      leaveOut("drop-wait");
    if (has(i, "wait_group"))
      change("loosen-wait", [](Instruction &c) { ++c.operands[0].value; });
  }

  /// What mbarriers wait for: threads, and bytes of bulk copies.
  void arrivals() {
    const Instruction &i = *original;
    const bool isBulk = is(i, {"cp"}) && has(i, "bulk") && !has(i, "commit_group") && !has(i, "wait_group");
    if (isBulk && !has(i, "prefetch")) {
      leaveOut("drop-copy");
      for (size_t n = 0; n < i.operands.size(); ++n)
        changeLastRegister("change-coordinate", n);
    }
    if (!is(i, {"mbarrier"}))
      return;
    const bool waits = has(i, "try_wait") || has(i, "test_wait");
    if (has(i, "init") || has(i, "arrive") || has(i, "expect_tx"))
      leaveOut("drop-arrival");
    if (has(i, "init") || has(i, "expect_tx"))
      change("change-arrivals", [](Instruction &c) { increment(c.operands.back()); });
    if (waits) // it has come before anything has happened
      change("change-phase", [](Instruction &c) { setInteger(c.operands[2], 1); });
    if (has(i, "expect_tx"))
      change("drop-transaction", [](Instruction &c) { setInteger(c.operands.back(), 0); });
  }

  /// Of wgmma: its fences and groups, and what it adds to.
  void tensorCores() {
    const Instruction &i = *original;
    if (!is(i, {"wgmma"}))
      return;
    if (has(i, "fence"))
      leaveOut("drop-fence");
    if (has(i, "commit_group"))
      leaveOut("drop-commit");
    if (has(i, "wait_group")) {
      leaveOut("drop-wait");
      change("loosen-wait", [](Instruction &c) { ++c.operands[0].value; });
    }
    if (!has(i, "mma_async"))
      return;
    leaveOut("drop-product");
    change("swap-fragments", [](Instruction &c) { std::swap(c.operands[0].elements[0], c.operands[0].elements[1]); });
  }

  void memory() {
    const Instruction &i = *original;
    if (!isAccess(i))
      return;
    if (is(i, {"st", "red"}))
      leaveOut("drop-store");
    if (is(i, {"red", "atom"}))
      for (size_t n = 1; n < i.parts.size(); ++n)
        replacePart("change-update", n, otherUpdate(i.parts[n]));
    for (size_t n = 0; n < i.operands.size(); ++n) {
      const Operand &operand = i.operands[n];
      if (operand.kind == Operand::Kind::Address)
        change("shift-address", [&](Instruction &c) { c.operands[n].value += bytesOf(i); });
      if (operand.kind == Operand::Kind::Vector && operand.elements.size() > 1 &&
          (operand.elements[0].name != operand.elements[1].name ||
           operand.elements[0].value != operand.elements[1].value))
        change("swap-elements",
               [&](Instruction &c) { std::swap(c.operands[n].elements[0], c.operands[n].elements[1]); });
    }
  }

  void constants() {
    const Instruction &i = *original;
    for (size_t n = 1; n < i.operands.size(); ++n) {
      if (i.operands[n].kind == Operand::Kind::Float32)
        changeFloat(n, 0x3f800000, 0x7f800000, 1u << 19);
      if (i.operands[n].kind == Operand::Kind::Float64)
        changeFloat(n, 0x3ff0000000000000, 0x7ff0000000000000, uint64_t(1) << 48);
      if (i.operands[n].kind != Operand::Kind::Integer)
        continue;
      // The bits of a float are compared with where one approximation ends: at the next float it is as good.
      constexpr int64_t bitsOfFloats = 1 << 20;
      int64_t value = int64_t(i.operands[n].value);
      if (is(i, {"setp"}) && isData(1) && (value > bitsOfFloats || value < -bitsOfFloats))
        continue;
      if (is(i, {"setp"})) {
        change("widen-bound", [&](Instruction &c) { ++c.operands[n].value; });
        change("narrow-bound", [&](Instruction &c) { --c.operands[n].value; });
      } else if (is(i, {"add", "sub", "mul", "mad", "shl", "shr", "or", "and", "xor"}) && !isFloat(i)) {
        change("shift-constant", [&](Instruction &c) { ++c.operands[n].value; });
      }
    }
  }

  /// One instead of zero, or a sixteenth more or less: much, because an approximation has coefficients that matter
  /// little.
  void changeFloat(size_t operand, uint64_t one, uint64_t exponentMask, uint64_t bit) {
    uint64_t value = original->operands[operand].value;
    if ((value & exponentMask) != exponentMask) // neither infinity nor NaN
      change("change-float", [&](Instruction &c) { c.operands[operand].value = value ? value ^ bit : one; });
  }

  void operandOrder() {
    const Instruction &i = *original;
    bool ordered = is(i, {"sub", "div", "rem", "selp"}) ||
                   (is(i, {"setp"}) && (has(i, "lt") || has(i, "le") || has(i, "gt") || has(i, "ge")));
    if (ordered && i.operands.size() >= 3 && !isSame(1, 2))
      change("swap-operands", [](Instruction &c) { std::swap(c.operands[1], c.operands[2]); });
    if (is(i, {"fma", "mad"}) && i.operands.size() == 4 && !isSame(2, 3))
      change("swap-operands", [](Instruction &c) { std::swap(c.operands[2], c.operands[3]); });
    // Fragments of a matrix: two registers of one operand trade places.
    if (is(i, {"mma"}))
      for (size_t n = 1; n < i.operands.size(); ++n)
        if (i.operands[n].elements.size() > 1)
          change("swap-fragments",
                 [&](Instruction &c) { std::swap(c.operands[n].elements[0], c.operands[n].elements[1]); });
  }

  void replacePart(const char *mutation, size_t index, const std::string &part) {
    if (!part.empty())
      change(mutation, [&](Instruction &c) { c.parts[index] = part; });
  }

  void parts() {
    const Instruction &i = *original;
    for (size_t n = 1; n < i.parts.size() && is(i, {"cvt"}); ++n)
      replacePart("change-rounding", n, otherRounding(i.parts[n]));
    // Where the bound is a constant, the bound is changed instead.
    bool isBound = i.operands.size() > 2 && i.operands[2].kind != Operand::Kind::Name && !has(i, "eq") && !has(i, "ne");
    if (is(i, {"setp"}) && !isBound)
      for (size_t n = 1; n < i.parts.size(); ++n)
        replacePart("change-comparison", n, otherComparison(i.parts[n]));
    if (has(i, "approx") && i.parts.size() > 1)
      replacePart("change-function", 0, otherFunction(i.parts.front()));
    if (has(i, "sat"))
      change("drop-saturation", [](Instruction &c) { llvm::erase(c.parts, "sat"); });
    if (is(i, {"and", "or"}) && i.parts.size() == 2)
      replacePart("change-logic", 0, i.parts.front() == "and" ? "or" : "and");
    if (is(i, {"cvt"}) && isFloat(i))
      for (size_t n = 1; n < i.parts.size(); ++n)
        replacePart("change-sign", n, otherSign(i.parts[n]));
    if (is(i, {"min", "max", "shr", "div", "rem"}) && !isFloat(i) && isData(1))
      replacePart("change-sign", i.parts.size() - 1, otherSign(i.parts.back()));
    bool plain = i.parts.size() == 2 && isFloat(i); // add.f32: forms without a subtraction of the same name stay
    if (is(i, {"min", "max"}) || (is(i, {"add"}) && plain))
      replacePart("change-operation", 0, otherOperation(i.parts.front()));
  }

  void shuffles() {
    const Instruction &i = *original;
    if (is(i, {"redux", "vote"}) && i.operands.size() == 3) {
      for (size_t n = 1; n < i.parts.size(); ++n)
        replacePart("change-update", n, otherUpdate(i.parts[n]));
      change("change-members", [](Instruction &c) {
        c.operands[2] = Operand(); // it may have been in a register
        c.operands[2].kind = Operand::Kind::Integer;
        c.operands[2].value = 0x7fffffff;
      });
    }
    if (!is(i, {"shfl"}) || i.operands.size() < 5)
      return;
    change("change-lane", [](Instruction &c) { ++c.operands[2].value; });
    for (size_t n = 1; n < i.parts.size(); ++n) {
      replacePart("change-shuffle", n, i.parts[n] == "down" ? "up" : i.parts[n] == "up" ? "down" : "");
      replacePart("change-shuffle", n, i.parts[n] == "bfly" ? "down" : "");
    }
    change("change-members", [](Instruction &c) { c.operands[4].value &= 0x7fffffff; });
  }

  /// Registers or constants of which an instruction is the same when they trade places.
  bool isSame(size_t left, size_t right) const {
    const Operand &l = original->operands[left], &r = original->operands[right];
    return l.kind == r.kind && l.name == r.name && l.value == r.value && l.elements.empty() && r.elements.empty();
  }
  bool isData(size_t operand) const { return data.contains(original->operands[operand].name); }

  std::vector<Mutant> &mutants;
  llvm::StringSet<> data; ///< of the function
  size_t function = 0, statement = 0;
  const Instruction *original = nullptr;
};

} // namespace

ptx::Module Mutant::apply(ptx::Module module) const {
  std::vector<ptx::Statement> &body = module.functions[function].body;
  if (replacement)
    body[statement].instruction = *replacement;
  else
    body.erase(body.begin() + ptrdiff_t(statement));
  return module;
}

std::vector<Mutant> mutantsOf(const ptx::Module &module) {
  std::vector<Mutant> mutants;
  Collector collector(mutants);
  for (size_t f = 0; f < module.functions.size(); ++f) {
    collector.enter(module.functions[f]);
    for (size_t s = 0; s < module.functions[f].body.size(); ++s) {
      const ptx::Statement &statement = module.functions[f].body[s];
      if (statement.kind == ptx::Statement::Kind::Instruction)
        collector.visit(f, s, statement.instruction);
    }
  }
  return mutants;
}

bool explains(const std::string &mutation, const std::string &symptom) {
  auto oneOf = [&](std::initializer_list<llvm::StringRef> names) {
    return llvm::is_contained(names, llvm::StringRef(symptom));
  };
  if (mutation == "drop-fence")
    return oneOf({"shared-race", "global-race"});
  // Wrong values cannot be the only sign of a missing barrier: they may not show at all.
  if (mutation == "drop-barrier")
    return oneOf({"shared-race", "global-race", "uninitialized-read", "divergent-barrier", "deadlock", "absent-block"});
  if (mutation == "drop-wait" || mutation == "loosen-wait" || mutation == "drop-commit")
    return oneOf({"shared-race", "global-race", "uninitialized-read", "open-copy", "open-wgmma", "register-race"});
  if (mutation == "drop-store")
    return oneOf({"unwritten-output", "uninitialized-read", "mismatch", "bad-tensor-map"});
  return true;
}

} // namespace hloc::mutation
