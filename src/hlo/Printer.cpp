#include "hloc/hlo/Printer.h"

#include "PrintAttributes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

void printShapeInSignature(const Shape &shape, llvm::raw_ostream &os) { os << shape.toString(/*withLayout=*/false); }

void printComputation(const HloComputation &computation, llvm::raw_ostream &os, const PrintOptions &options) {
  if (computation.isEntry())
    os << "ENTRY ";
  os << (options.full ? "%" : "") << computation.name();
  if (options.full) {
    os << " (";
    for (unsigned i = 0; i < computation.numParameters(); ++i) {
      os << (i ? ", " : "") << computation.parameter(i)->name() << ": ";
      printShapeInSignature(computation.parameter(i)->shape(), os);
    }
    os << ") -> ";
    printShapeInSignature(computation.root()->shape(), os);
  }
  os << " {\n";
  for (HloInstruction *instr : computation.instructions()) {
    os << (instr == computation.root() ? "  ROOT " : "  ");
    printHlo(*instr, os, options);
    os << "\n";
  }
  os << "}";
  if (!computation.executionThread().empty())
    os << ", execution_thread=\"" << computation.executionThread() << "\"";
  os << "\n\n";
}

} // namespace

void printHlo(const HloInstruction &instr, llvm::raw_ostream &os, const PrintOptions &options) {
  llvm::StringRef sigil = options.full ? "%" : "";
  os << sigil << instr.name() << " = " << instr.shape().toString() << " " << text(instr.opcode()) << "(";
  if (instr.opcode() == Opcode::Parameter) {
    os << instr.parameterNumber();
  } else if (instr.opcode() == Opcode::Constant) {
    constexpr int64_t elisionLimit = 10;
    bool large = instr.shape().isArray() && instr.shape().rank() > 0 && instr.shape().numElements() > elisionLimit;
    if (large && !options.largeConstants)
      os << "{...}";
    else
      printLiteral(instr.literal(), os);
  } else {
    for (unsigned i = 0; i < instr.numOperands(); ++i) {
      os << (i ? ", " : "");
      if (i && i % 5 == 0)
        os << "/*index=" << i << "*/";
      os << sigil << instr.operand(i)->name();
    }
  }
  os << ")";
  for (const Attribute &attribute : instr.attributes())
    printAttribute(instr, attribute, os, options);
}

namespace {

/// Module order, but a callee that comes after its caller (as after fusions were formed) is moved before it: text that
/// is read back has to define a computation before it is called.
std::vector<const HloComputation *> calleesFirst(const HloModule &module) {
  std::vector<const HloComputation *> order;
  llvm::DenseSet<const HloComputation *> seen;
  // Computations whose callees are being placed, each with those callees and the next of them.
  struct Open {
    const HloComputation *computation;
    llvm::SmallVector<const HloComputation *> callees;
    size_t next = 0;
  };
  std::vector<Open> open;
  auto enter = [&](const HloComputation *computation) {
    if (!seen.insert(computation).second)
      return;
    Open &entered = open.emplace_back(Open{computation, {}});
    for (const HloInstruction *instr : computation->instructions())
      llvm::append_range(entered.callees, instr->calledComputations());
  };
  for (const auto &computation : module.computations()) {
    enter(computation.get());
    while (!open.empty()) {
      Open &top = open.back();
      if (top.next < top.callees.size()) {
        enter(top.callees[top.next++]);
        continue;
      }
      order.push_back(top.computation);
      open.pop_back();
    }
  }
  return order;
}

} // namespace

void printHlo(const HloModule &module, llvm::raw_ostream &os, const PrintOptions &options) {
  os << "HloModule " << module.name();
  for (const Attribute &attribute : module.attributes()) {
    os << ", " << text(attribute.key) << "=";
    printValue(attribute.key, grammar(attribute.key), attribute.value, os, options);
  }
  os << "\n\n";
  if (!module.stackFrames().empty())
    os << module.stackFrames() << "\n\n";
  for (const HloComputation *computation : calleesFirst(module))
    printComputation(*computation, os, options);
}

std::string hloText(const HloModule &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printHlo(module, os, PrintOptions());
  return text;
}

namespace {

/// Attribute values compare by content; references to instructions and computations by name.
bool equalValues(const AttributeValue &a, const AttributeValue &b) {
  if (a.index() != b.index())
    return false;
  if (auto *computation = std::get_if<HloComputation *>(&a))
    return (*computation)->name() == std::get<HloComputation *>(b)->name();
  auto sameNames = [](auto listA, auto listB) {
    return listA.size() == listB.size() && llvm::all_of(llvm::zip(listA, listB), [](auto pair) {
             return std::get<0>(pair)->name() == std::get<1>(pair)->name();
           });
  };
  if (auto *list = std::get_if<llvm::ArrayRef<HloComputation *>>(&a))
    return sameNames(*list, std::get<llvm::ArrayRef<HloComputation *>>(b));
  if (auto *list = std::get_if<llvm::ArrayRef<HloInstruction *>>(&a))
    return sameNames(*list, std::get<llvm::ArrayRef<HloInstruction *>>(b));
  if (auto *window = std::get_if<const Window *>(&a))
    return **window == *std::get<const Window *>(b);
  if (auto *labels = std::get_if<const ConvolutionLabels *>(&a))
    return **labels == *std::get<const ConvolutionLabels *>(b);
  if (auto *shape = std::get_if<const Shape *>(&a))
    return **shape == *std::get<const Shape *>(b);
  if (auto *literal = std::get_if<const Literal *>(&a))
    return **literal == *std::get<const Literal *>(b);
  return a == b;
}

bool equalInstructions(const HloInstruction &a, const HloInstruction &b) {
  if (a.opcode() != b.opcode() || a.name() != b.name() || !(a.shape() == b.shape()) ||
      a.numOperands() != b.numOperands() || a.parameterNumber() != b.parameterNumber() ||
      a.hasLiteral() != b.hasLiteral())
    return false;
  for (unsigned i = 0; i < a.numOperands(); ++i)
    if (a.operand(i)->id() != b.operand(i)->id())
      return false;
  auto said = [](const HloInstruction &instr) {
    return llvm::make_filter_range(instr.attributes(), [&](const Attribute &one) { return !isOmitted(instr, one); });
  };
  auto same = [](const Attribute &x, const Attribute &y) { return x.key == y.key && equalValues(x.value, y.value); };
  if (!llvm::equal(said(a), said(b), same))
    return false;
  return !a.hasLiteral() || a.literal() == b.literal();
}

bool equalComputations(const HloComputation &a, const HloComputation &b, std::string &why) {
  if (a.name() != b.name() || a.instructions().size() != b.instructions().size() || a.isEntry() != b.isEntry() ||
      a.root()->id() != b.root()->id() || a.executionThread() != b.executionThread()) {
    why = ("computation `" + llvm::Twine(a.name()) + "` against `" + b.name() + "`").str();
    return false;
  }
  for (auto [x, y] : llvm::zip(a.instructions(), b.instructions()))
    if (!equalInstructions(*x, *y)) {
      why = describe(*x) + " against " + describe(*y) + " in `" + a.name().str() + "`";
      return false;
    }
  return true;
}

} // namespace

bool equalModules(const HloModule &a, const HloModule &b, std::string &why) {
  if (a.name() != b.name() || a.computations().size() != b.computations().size() ||
      a.attributes().size() != b.attributes().size() || a.stackFrames() != b.stackFrames()) {
    why = "module `" + a.name().str() + "`: name, header or number of computations";
    return false;
  }
  for (auto [x, y] : llvm::zip(a.attributes(), b.attributes()))
    if (x.key != y.key || !equalValues(x.value, y.value)) {
      why = "module attribute `" + text(x.key).str() + "`";
      return false;
    }
  for (auto [x, y] : llvm::zip(a.computations(), b.computations()))
    if (!equalComputations(*x, *y, why))
      return false;
  return true;
}

} // namespace hloc
