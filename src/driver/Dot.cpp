#include "Dot.h"

#include "hloc/hlo/External.h"

#include "fmt/format.h"

namespace hloc {

namespace {

const char *colour(const HloInstruction &instr) {
  if (isExternal(instr))
    return "salmon";
  switch (family(instr.opcode())) {
  case OpcodeFamily::Source:
    return "lightgrey";
  case OpcodeFamily::Movement:
    return "lightblue";
  case OpcodeFamily::Structured:
    return "khaki";
  case OpcodeFamily::Control:
    return "palegreen";
  case OpcodeFamily::Unary:
  case OpcodeFamily::Binary:
  case OpcodeFamily::Ternary:
  case OpcodeFamily::Compare:
  case OpcodeFamily::Convert:
  case OpcodeFamily::Identity:
  case OpcodeFamily::Random:
  case OpcodeFamily::Structure:
  case OpcodeFamily::Host:
  case OpcodeFamily::Collective:
  case OpcodeFamily::Async:
    return "white";
  }
  return "white";
}

} // namespace

std::string dotEscaped(llvm::StringRef text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out;
}

std::string dotGraph(const HloModule &module) {
  std::string out = fmt::format("digraph \"{}\" {{\n  node [shape=box, style=filled, fontname=monospace];\n",
                                dotEscaped(module.name()));
  unsigned cluster = 0;
  for (const auto &computation : module.computations()) {
    out += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", cluster, dotEscaped(computation->name()));
    for (HloInstruction *instr : computation->instructions())
      out += fmt::format("    n{}_{} [label=\"{}\\n{}\\n{}\", fillcolor={}{}];\n", cluster, instr->id(),
                         dotEscaped(instr->name()), text(instr->opcode()).str(), dotEscaped(instr->shape().toString()),
                         colour(*instr), instr == computation->root() ? ", penwidth=3" : "");
    for (HloInstruction *instr : computation->instructions())
      for (unsigned i = 0; i < instr->numOperands(); ++i)
        out += fmt::format("    n{}_{} -> n{}_{}{};\n", cluster, instr->operand(i)->id(), cluster, instr->id(),
                           instr->numOperands() > 1 ? fmt::format(" [label={}]", i) : "");
    out += "  }\n";
    ++cluster;
  }
  return out + "}\n";
}

} // namespace hloc
