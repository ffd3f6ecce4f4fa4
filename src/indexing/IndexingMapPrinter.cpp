#include "hloc/indexing/IndexingMap.h"
#include "indexing/LinearSum.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>
#include <utility>

using namespace hloc;
using mlir::AffineBinaryOpExpr;
using mlir::AffineExpr;
using mlir::AffineExprKind;

namespace {

class Printer {
public:
  explicit Printer(const IndexingMap &map);
  std::string print();

private:
  void nameVariables(llvm::ArrayRef<IndexingVariable> variables, llvm::StringRef prefix,
                     llvm::SmallVectorImpl<std::string> &names, llvm::StringSet<> &taken);
  void printList(llvm::ArrayRef<std::string> names, char open, char close, bool always);
  void printDomain();
  void printSum(AffineExpr expression);
  void printAddend(AffineExpr right);
  void printProduct(AffineExpr atom, int64_t coefficient);
  /// In parentheses unless it is a variable or a constant.
  void printOperand(AffineExpr expression);
  static void printInterval(llvm::raw_ostream &out, Interval interval) {
    out << " in [" << interval.lower << ", " << interval.upper << "]";
  }

  const IndexingMap &map;
  llvm::SmallVector<std::string> dimNames, symbolNames;
  size_t numRanges;
  std::string text;
  llvm::raw_string_ostream out{text};
};

} // namespace

Printer::Printer(const IndexingMap &map) : map(map), numRanges(map.ranges().size()) {
  llvm::StringSet<> taken;
  nameVariables(map.dims(), "d", dimNames, taken);
  nameVariables(map.ranges(), "s", symbolNames, taken);
  llvm::SmallVector<std::string> runtimeNames;
  nameVariables(map.runtimes(), "rt", runtimeNames, taken);
  symbolNames.append(runtimeNames.begin(), runtimeNames.end());
}

/// A name that another variable has already (composition brings variables of two maps together) gives way to the name
/// by position, and that to one with underscores, so that the text is never ambiguous.
void Printer::nameVariables(llvm::ArrayRef<IndexingVariable> variables, llvm::StringRef prefix,
                            llvm::SmallVectorImpl<std::string> &names, llvm::StringSet<> &taken) {
  for (auto [index, variable] : llvm::enumerate(variables)) {
    std::string name = variable.name;
    if (name.empty() || taken.contains(name))
      name = (prefix + llvm::Twine(index)).str();
    while (!taken.insert(name).second)
      name += '_';
    names.push_back(std::move(name));
  }
}

void Printer::printList(llvm::ArrayRef<std::string> names, char open, char close, bool always) {
  if (names.empty() && !always)
    return;
  out << open;
  llvm::interleaveComma(names, out);
  out << close;
}

void Printer::printOperand(AffineExpr expression) {
  bool isPlain = !llvm::isa<AffineBinaryOpExpr>(expression);
  if (auto value = llvm::dyn_cast<mlir::AffineConstantExpr>(expression))
    isPlain = value.getValue() >= 0;
  if (!isPlain)
    out << '(';
  printSum(expression);
  if (!isPlain)
    out << ')';
}

/// `coefficient` is positive; signs belong to the sum.
void Printer::printProduct(AffineExpr atom, int64_t coefficient) {
  auto binary = llvm::dyn_cast<AffineBinaryOpExpr>(atom);
  if (binary && coefficient != 1) {
    printOperand(atom);
  } else if (auto dim = llvm::dyn_cast<mlir::AffineDimExpr>(atom)) {
    out << dimNames[dim.getPosition()];
  } else if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(atom)) {
    out << symbolNames[symbol.getPosition()];
  } else if (binary) {
    printOperand(binary.getLHS());
    switch (atom.getKind()) {
    case AffineExprKind::FloorDiv:
      out << " / ";
      break;
    case AffineExprKind::CeilDiv:
      out << " ceildiv ";
      break;
    case AffineExprKind::Mod:
      out << " mod ";
      break;
    default:
      out << " * ";
      break;
    }
    printOperand(binary.getRHS());
  }
  if (coefficient != 1)
    out << " * " << coefficient;
}

/// Prints the sum in the order it has, so that what is parsed back is the same expression.
void Printer::printSum(AffineExpr expression) {
  auto binary = llvm::dyn_cast<AffineBinaryOpExpr>(expression);
  if (expression.getKind() == AffineExprKind::Constant) {
    out << llvm::cast<mlir::AffineConstantExpr>(expression).getValue();
    return;
  }
  if (expression.getKind() == AffineExprKind::Mul) {
    auto value = llvm::dyn_cast<mlir::AffineConstantExpr>(binary.getRHS());
    if (value && value.getValue() > 0)
      return printProduct(binary.getLHS(), value.getValue());
    if (value && value.getValue() == -1) {
      out << '-';
      return printOperand(binary.getLHS());
    }
    printOperand(binary.getLHS());
    out << " * ";
    if (value)
      out << value.getValue();
    else
      printOperand(binary.getRHS());
    return;
  }
  if (expression.getKind() != AffineExprKind::Add)
    return printProduct(expression, 1);

  printSum(binary.getLHS());
  printAddend(binary.getRHS());
}

/// What follows the first term of a sum, with its sign: ` + x`, ` - x * 3`, ` - 4`.
void Printer::printAddend(AffineExpr right) {
  auto value = llvm::dyn_cast<mlir::AffineConstantExpr>(right);
  int64_t factor = 1;
  if (!value && right.getKind() == AffineExprKind::Mul)
    if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(llvm::cast<AffineBinaryOpExpr>(right).getRHS()))
      factor = constant.getValue();
  constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
  if (value && value.getValue() < 0 && value.getValue() != smallest) {
    out << " - " << -value.getValue();
  } else if (factor < 0 && factor != smallest) {
    out << " - ";
    AffineExpr inner = llvm::cast<AffineBinaryOpExpr>(right).getLHS();
    if (factor == -1)
      printOperand(inner);
    else
      printProduct(inner, -factor);
  } else {
    out << " + ";
    if (right.getKind() == AffineExprKind::Add)
      printOperand(right);
    else
      printSum(right);
  }
}

void Printer::printDomain() {
  llvm::SmallVector<std::string> entries;
  auto addVariables = [&](llvm::ArrayRef<IndexingVariable> variables, llvm::ArrayRef<std::string> names) {
    for (auto [variable, name] : llvm::zip(variables, names)) {
      std::string entry;
      llvm::raw_string_ostream stream(entry);
      stream << name;
      printInterval(stream, variable.bounds);
      entries.push_back(std::move(entry));
    }
  };
  llvm::ArrayRef<std::string> symbols = symbolNames;
  addVariables(map.dims(), dimNames);
  addVariables(map.ranges(), symbols.take_front(numRanges));
  addVariables(map.runtimes(), symbols.drop_front(numRanges));
  size_t constraintsBegin = entries.size();
  std::string head = std::exchange(text, {});
  for (const IndexingMap::Constraint &constraint : map.constraints()) {
    printSum(constraint.first);
    printInterval(out, constraint.second);
    entries.push_back(std::exchange(text, {}));
  }
  llvm::sort(entries.begin() + constraintsBegin, entries.end());
  text = std::move(head);
  if (entries.empty())
    return;
  out << ", domain: ";
  llvm::interleaveComma(entries, out);
}

std::string Printer::print() {
  if (map.isKnownEmpty())
    return "KNOWN EMPTY";
  printList(dimNames, '(', ')', /*always=*/true);
  llvm::ArrayRef<std::string> symbols = symbolNames;
  printList(symbols.take_front(numRanges), '[', ']', /*always=*/false);
  printList(symbols.drop_front(numRanges), '{', '}', /*always=*/false);
  out << " -> (";
  llvm::interleave(
      map.affine().getResults(), [&](AffineExpr expression) { printSum(expression); }, [&] { out << ", "; });
  out << ')';
  printDomain();
  return text;
}

std::string IndexingMap::toString() const { return Printer(*this).print(); }
