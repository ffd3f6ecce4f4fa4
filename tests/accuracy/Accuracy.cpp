// Measures the largest error of the kernels that hloc emits for the elementary functions, on the emulator, against
// correctly rounded values, and compares it with src/interp/Accuracy.def. See scripts/accuracy --help.
#include "Measure.h"

#include "hloc/support/Parallel.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <cmath>
#include <map>
#include <mutex>

using namespace hloc;
using namespace hloc::accuracy;

namespace {

struct Options {
  std::vector<std::string> ops, types, targets = {"sm_80", "sm_90", "sm_100"};
  bool all = false, check = false, interpreter = false;
  std::string definitions, markdown;
  unsigned seeds = 4, jobs = 0;
};

/// Largest errors of one function on one type: in general, and where the exact value is subnormal if that is far
/// larger.
struct Largest {
  double ulps = 0, subnormal = 0;
  bool isOfEveryFloat = false;
};
using Key = std::pair<Opcode, ElementType>;
using Table = std::map<Key, Largest>;

Table checkedIn() {
  Table table;
#define HLOC_ACCURACY(opcode, type, error) table[{Opcode::opcode, ElementType::type}].ulps = error;
#define HLOC_ACCURACY_SUBNORMAL(opcode, type, error) table[{Opcode::opcode, ElementType::type}].subnormal = error;
#define HLOC_ACCURACY_OF_EVERY_FLOAT(opcode) table[{Opcode::opcode, ElementType::F32}].isOfEveryFloat = true;
#include "interp/Accuracy.def"
  return table;
}

llvm::StringRef enumName(Opcode opcode) {
  static constexpr llvm::StringLiteral names[] = {
#define HLOC_OPCODE(name, ...) #name,
#include "hloc/hlo/Opcodes.def"
  };
  return names[size_t(opcode)];
}

llvm::StringRef enumName(ElementType type) {
  static constexpr llvm::StringLiteral names[] = {
#define HLOC_ELEMENT_TYPE(name, text, bits, category) #name,
#include "hloc/hlo/ElementTypes.def"
  };
  return names[size_t(type)];
}

/// The type that a row of the table is about: of the operands, or of the result of a conversion.
ElementType rowType(const Instruction &instruction) {
  return instruction.opcode == Opcode::Convert ? instruction.to : instruction.from;
}

constexpr ElementType elementTypes[] = {
#define HLOC_ELEMENT_TYPE(name, text, bits, category) ElementType::name,
#include "hloc/hlo/ElementTypes.def"
};

std::vector<Instruction> allInstructions() {
  std::vector<Instruction> instructions;
  for (const Function &function : functions())
    for (ElementType type : elementTypes) {
      if (!isFloat(type) && !(isComplex(type) && function.onComplex))
        continue;
      bool isModulus = function.opcode == Opcode::Abs && isComplex(type);
      instructions.push_back({function.opcode, function.arity, type, isModulus ? componentType(type) : type});
    }
  for (ElementType from : elementTypes)
    for (ElementType to : elementTypes) {
      bool isNumber = isFloat(from) || isInteger(from), toNumber = isFloat(to) || (isFloat(from) && isInteger(to));
      if (from != to && ((isNumber && toNumber) || (isComplex(from) && isComplex(to))))
        instructions.push_back({Opcode::Convert, 1, from, to});
    }
  for (ElementType type : elementTypes)
    if (isFloat(type))
      for (auto [exponentBits, mantissaBits] : {std::pair(5, 10), {8, 7}, {4, 3}, {5, 2}, {8, 23}, {3, 0}, {11, 52}})
        instructions.push_back({Opcode::ReducePrecision, 1, type, type, exponentBits, mantissaBits});
  return instructions;
}

bool isChosen(const std::vector<std::string> &names, llvm::StringRef name) {
  return names.empty() || llvm::is_contained(names, name.str());
}

std::vector<Measurement> measureAll(const Options &options) {
  std::vector<Instruction> chosen;
  for (const Instruction &instruction : allInstructions())
    if (isChosen(options.ops, text(instruction.opcode)) && isChosen(options.types, text(rowType(instruction))))
      chosen.push_back(instruction);
  Choices choices;
  for (const std::string &target : options.targets)
    choices.targets.push_back(*findTarget(target));
  choices.numSeeds = options.seeds;
  choices.effort = options.check ? Effort::Quick : options.all ? Effort::All : Effort::Dense;
  choices.withInterpreter = options.interpreter;
  std::vector<Measurement> measured(chosen.size());
  runInParallel(chosen.size(), numWorkers(options.jobs), [&](size_t i) { measured[i] = measure(chosen[i], choices); });
  return measured;
}

/// Up in the second digit; 0.5 is correctly rounded, 0.51 almost.
double roundedUp(double ulps) {
  if (ulps == 0 || (ulps <= 0.5 && ulps > 0.49))
    return ulps == 0 ? 0 : 0.5;
  double unit = std::pow(10.0, std::floor(std::log10(ulps)) - 1);
  return std::ceil(ulps / unit - 1e-9) * unit;
}

std::string nameOf(const Instruction &instruction) {
  std::string name = text(instruction.opcode).str() + " " + text(instruction.from).str();
  if (instruction.opcode == Opcode::Convert)
    name += "->" + text(instruction.to).str();
  if (instruction.opcode == Opcode::ReducePrecision)
    name += fmt::format(" e{}m{}", instruction.exponentBits, instruction.mantissaBits);
  return name;
}

void print(const Instruction &instruction, llvm::StringRef who, const Errors &errors) {
  const Worst &worst = errors.normal.ulps >= errors.subnormal.ulps ? errors.normal : errors.subnormal;
  llvm::outs() << fmt::format("{:<34} {:<14} {:>10.7g} {:>10.7g} {:>8} {:>6}  {}\n", nameOf(instruction), who.str(),
                              errors.normal.ulps, errors.subnormal.ulps, errors.specials, errors.zeroSigns,
                              errors.firstSpecial.empty() ? worst.at : errors.firstSpecial);
}

void print(const std::vector<Measurement> &measured) {
  llvm::outs() << fmt::format("{:<34} {:<14} {:>10} {:>10} {:>8} {:>6}  {}\n", "instruction", "target", "ULP",
                              "subnormal", "special", "zeros", "operands and result");
  for (const Measurement &m : measured) {
    if (!m.missing.empty())
      llvm::outs() << nameOf(m.instruction) << ": " << m.missing << "\n";
    for (const Measurement::Variant &variant : m.kernels)
      print(m.instruction, variant.name, variant.errors);
    if (m.interpreter.largest() > 0 || m.interpreter.specials || m.interpreter.zeroSigns)
      print(m.instruction, "interpreter", m.interpreter);
  }
}

/// Subnormal results that are as good as others, or not much worse, have no figure of their own.
Table merged(const std::vector<Measurement> &measured, bool ofInterpreter) {
  Table table;
  for (const Measurement &m : measured) {
    if (!m.missing.empty() || isInteger(m.instruction.to))
      continue;
    Largest &largest = table[{m.instruction.opcode, rowType(m.instruction)}];
    largest.ulps = std::max(largest.ulps, ofInterpreter ? m.interpreter.normal.ulps : m.normal().ulps);
    largest.subnormal = std::max(largest.subnormal, ofInterpreter ? m.interpreter.subnormal.ulps : m.subnormal().ulps);
    largest.isOfEveryFloat = m.isOfEveryFloat;
  }
  for (auto &[key, largest] : table) {
    bool isApart = largest.subnormal > 2 && largest.subnormal > 4 * largest.ulps;
    if (!isApart)
      largest.ulps = std::max(largest.ulps, largest.subnormal);
    largest = {roundedUp(largest.ulps), isApart ? roundedUp(largest.subnormal) : 0, largest.isOfEveryFloat};
  }
  return table;
}

/// Both have two digits, but one was made by arithmetic.
bool exceeds(double measured, double row) { return measured > row * (1 + 1e-9); }

int check(const std::vector<Measurement> &measured) {
  Table table = checkedIn();
  int failures = 0;
  for (const Measurement &m : measured)
    for (const auto &[name, errors] : m.kernels)
      if (errors.specials || errors.zeroSigns) {
        llvm::errs() << fmt::format("{} on {}: {} special results are wrong, such as {}\n", nameOf(m.instruction), name,
                                    errors.specials + errors.zeroSigns, errors.firstSpecial);
        ++failures;
      }
  for (auto [key, largest] : merged(measured, /*ofInterpreter=*/false)) {
    std::string name = fmt::format("{} {}", text(key.first).str(), text(key.second).str());
    auto row = table.find(key);
    if (row == table.end())
      llvm::errs() << name << ": no row in Accuracy.def\n";
    else if (exceeds(largest.ulps, row->second.ulps) ||
             exceeds(largest.subnormal, std::max(row->second.ulps, row->second.subnormal)))
      llvm::errs() << fmt::format("{}: {:.4g} ULP ({:.4g} where subnormal), Accuracy.def has {:.4g} ({:.4g})\n", name,
                                  largest.ulps, largest.subnormal, row->second.ulps, row->second.subnormal);
    else
      continue;
    ++failures;
  }
  return failures;
}

constexpr llvm::StringLiteral headOfDefinitions =
    R"(// Largest errors of the kernels that hloc emits, made by `scripts/accuracy --update`; ACCURACY.md says how and has the
// same as a table for people.
//
//   HLOC_ACCURACY(Opcode, ElementType, ulps)
//   HLOC_ACCURACY_SUBNORMAL(Opcode, ElementType, ulps)
//
// The type is that of the operands, for `convert` that of the result. The error is the distance of the result from the
// exact value of the function at the given operands, in units in the last place of the result's type: distances of
// neighbours in the binade of the exact value, the smallest subnormal below the smallest normal number. Rounded up in the
// second digit; 0.5 is correctly rounded in all measured cases, 0.51 nearly, 0 exact. Infinity stands for the number
// after the largest. Parts of complex numbers are measured in units of the larger part. Functions that lose all of a
// subnormal result have a second row for these; others keep to the first.
//
// No formula in use computes three complex functions to a bounded error. Theirs is in units times
//   Power      1 + |y log(x)|
//   Logistic   max(1, |result|)
//   Atan2      max(1, 1/|result|) (|x|^2 + |y|^2) / |x^2 + y^2|, the real part modulo 2 pi
//
// Rows of f32 for which there is an HLOC_ACCURACY_OF_EVERY_FLOAT are of all 2^32 operands, not of a sample.
//
// Functions and types without a row have no kernel. Not here because they are exact: comparisons, selections, changes of
// sign, maximum, minimum, rounding to integers, conversions to integers.
#ifndef HLOC_ACCURACY
#error "define HLOC_ACCURACY before including Accuracy.def"
#endif
#ifndef HLOC_ACCURACY_SUBNORMAL
#define HLOC_ACCURACY_SUBNORMAL(opcode, type, ulps)
#endif
#ifndef HLOC_ACCURACY_OF_EVERY_FLOAT
#define HLOC_ACCURACY_OF_EVERY_FLOAT(opcode)
#endif

)";

void writeDefinitions(const Table &table, llvm::raw_ostream &os) {
  os << headOfDefinitions;
  for (auto [key, largest] : table) {
    std::string name = fmt::format("{}, {}", enumName(key.first).str(), enumName(key.second).str());
    os << fmt::format("HLOC_ACCURACY({}, {:.2g})\n", name, largest.ulps);
    if (largest.subnormal)
      os << fmt::format("HLOC_ACCURACY_SUBNORMAL({}, {:.2g})\n", name, largest.subnormal);
    if (largest.isOfEveryFloat)
      os << fmt::format("HLOC_ACCURACY_OF_EVERY_FLOAT({})\n", enumName(key.first).str());
  }
  os << "\n#undef HLOC_ACCURACY\n#undef HLOC_ACCURACY_SUBNORMAL\n#undef HLOC_ACCURACY_OF_EVERY_FLOAT\n";
}

std::string cell(const Largest &largest) {
  std::string text = largest.ulps == 0 ? "0" : fmt::format("{:.2g}", largest.ulps);
  if (largest.subnormal)
    text += fmt::format(" ({:.2g})", largest.subnormal);
  return largest.isOfEveryFloat ? text + " *" : text;
}

/// The text of a table by opcode and column: one for each of the common types and one for the largest error of those of
/// at most 8 bits.
constexpr size_t numColumns = 7;
using Cells = std::map<Opcode, std::array<std::string, numColumns>>;

Cells cellsOf(const Table &table) {
  constexpr ElementType common[] = {ElementType::F64,  ElementType::F32, ElementType::F16,
                                    ElementType::BF16, ElementType::C64, ElementType::C128};
  Cells cells;
  std::map<Opcode, Largest> narrow;
  for (const auto &[key, largest] : table) {
    auto [opcode, type] = key;
    if (const auto *column = llvm::find(common, type); column != std::end(common)) {
      cells[opcode][size_t(column - common)] = cell(largest);
    } else if (isFloat(type)) {
      Largest &of = narrow[opcode];
      of = {std::max(of.ulps, largest.ulps), std::max(of.subnormal, largest.subnormal)};
      cells[opcode][numColumns - 1] = cell(of);
    }
  }
  return cells;
}

/// The rows of a table written before, those after a heading.
Cells cellsIn(llvm::StringRef markdown, llvm::StringRef heading) {
  Cells cells;
  llvm::StringRef lines = markdown.split(heading).second.split("\n## ").first;
  llvm::SmallVector<llvm::StringRef> rows;
  lines.split(rows, '\n');
  for (llvm::StringRef row : rows) {
    llvm::SmallVector<llvm::StringRef> texts;
    row.split(texts, '|');
    if (texts.size() != numColumns + 3)
      continue;
    std::optional<Opcode> opcode = parseOpcode(texts[1].trim(" `"));
    for (size_t column = 0; opcode && column < numColumns; ++column)
      cells[*opcode][column] = texts[column + 2].trim().str();
  }
  return cells;
}

void writeCells(const Cells &cells, llvm::raw_ostream &os) {
  os << "| op | f64 | f32 | f16 | bf16 | c64 | c128 | 4 to 8 bits |\n|---|---|---|---|---|---|---|---|\n";
  for (const auto &[opcode, texts] : cells) {
    os << "| `" << text(opcode) << "` |";
    for (const std::string &text : texts)
      os << " " << text << " |";
    os << "\n";
  }
}

constexpr llvm::StringLiteral headOfMarkdown =
    R"(# Accuracy

Made by `scripts/accuracy --update`, which executes the kernel of one instruction on the emulator and compares with MPFR:
for sm_80, sm_90 and sm_100 where they differ, with approximate instructions as accurate as the emulator can, and with four
seeds as inaccurate as PTX allows, and at either end of that. Operands are all there are of types up to 16 bits and all pairs
of types up to 8; else 4.3 million of f32, 0.26 million of f64, 2 million pairs of f32, f16 and bf16, 0.13 million of f64,
and 0.26 million complex numbers, the places known to be hard among them. Figures with a star are of all 2^32 operands of f32
(`--all`, with one seed).

The figures are the largest distances from the exact value in units in the last place, rounded up in the second digit: 0.5 is
correctly rounded, 0 exact. In brackets, where it is far larger: that of subnormal results, in smallest subnormals. Infinities
and NaN are right everywhere. `Accuracy.def` says more, and is what the bounds are made of.

## Kernels

)";

constexpr llvm::StringLiteral middleOfMarkdown = R"(
`convert`: into the type, from all others, integers among them.
`power`, `logistic` and `atan2` of complex numbers: in units as `Accuracy.def` says. Real `logistic` gives 0 where exp(-x)
overflows.

)";
constexpr llvm::StringLiteral headingOfInterpreter = "## Reference interpreter";

/// What was not measured stays: kernels as Accuracy.def has them, the interpreter as the file has it. Of the column of
/// several types all have to be measured.
void writeMarkdown(const Table &kernels, const std::vector<Measurement> &measured, bool isOfAllTypes,
                   llvm::StringRef before, llvm::raw_ostream &os) {
  Cells interpreter = cellsIn(before, headingOfInterpreter);
  for (const auto &[opcode, texts] : cellsOf(merged(measured, /*ofInterpreter=*/true)))
    for (size_t column = 0; column < (isOfAllTypes ? numColumns : numColumns - 1); ++column)
      if (!texts[column].empty())
        interpreter[opcode][column] = texts[column];
  os << headOfMarkdown;
  writeCells(cellsOf(kernels), os);
  os << middleOfMarkdown << headingOfInterpreter << "\n\n";
  writeCells(interpreter, os);
}

/// Rows that were measured in the place of those that are checked in.
Table updated(const std::vector<Measurement> &measured) {
  Table table = checkedIn();
  for (const auto &[key, largest] : merged(measured, /*ofInterpreter=*/false))
    table[key] = largest;
  return table;
}

std::string contentsOf(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Largest errors of emitted kernels in units in the last place; scripts/accuracy --help explains");
  app.add_option("--op", options.ops)->delimiter(',');
  app.add_option("--type", options.types)->delimiter(',');
  app.add_option("--target", options.targets)->delimiter(',');
  app.add_flag("--all", options.all);
  app.add_flag("--check", options.check);
  app.add_flag("--interpreter", options.interpreter);
  app.add_option("--approximation-seeds", options.seeds);
  app.add_option("--definitions", options.definitions);
  app.add_option("--markdown", options.markdown);
  app.add_option("-j", options.jobs);
  CLI11_PARSE(app, argc, argv);
  std::vector<Measurement> measured = measureAll(options);
  if (options.check)
    return check(measured) ? 1 : 0;
  print(measured);
  if (!options.definitions.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream os(options.definitions, error);
    writeDefinitions(updated(measured), os);
  }
  if (!options.markdown.empty()) {
    std::string before = contentsOf(options.markdown);
    std::error_code error;
    llvm::raw_fd_ostream os(options.markdown, error);
    writeMarkdown(updated(measured), measured, options.types.empty(), before, os);
  }
  return 0;
}
