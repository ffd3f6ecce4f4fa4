#include "KernelHlo.h"

#include "hloc/hlo/Printer.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

static ShownLine lineOf(const HloInstruction &instr, const SourceFile &file, llvm::StringRef before) {
  ShownLine line;
  llvm::raw_string_ostream os(line.text);
  os << before;
  printHlo(instr, os, {.full = true, .largeConstants = false});
  line.text = llvm::StringRef(line.text).rtrim('\n').str();
  if (instr.range().isValid())
    line.hloLines.push_back(file.lineColumn(instr.range().begin).line);
  return line;
}

static void addCallees(const HloInstruction &instr, llvm::SetVector<const HloComputation *> &computations) {
  for (const HloComputation *called : instr.calledComputations()) {
    for (const HloInstruction *inner : called->instructions())
      addCallees(*inner, computations);
    computations.insert(called);
  }
}

std::vector<ShownLine> hloOf(const HloInstruction &fusion, const SourceFile &file) {
  std::vector<ShownLine> lines;
  llvm::SetVector<const HloComputation *> computations;
  addCallees(fusion, computations);
  for (const HloComputation *computation : computations) {
    lines.emplace_back().text = ("%" + computation->name() + " {").str();
    for (const HloInstruction *instr : computation->instructions())
      lines.push_back(lineOf(*instr, file, instr == computation->root() ? "  ROOT " : "  "));
    lines.emplace_back().text = "}";
    lines.emplace_back();
  }
  lines.push_back(lineOf(fusion, file, ""));
  return lines;
}

} // namespace hloc
