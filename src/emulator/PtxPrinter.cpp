#include "hloc/emulator/Ptx.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace hloc::ptx {
namespace {

void print(const Operand &o, raw_ostream &os) {
  if (o.negated)
    os << '!';
  switch (o.kind) {
  case Operand::Kind::Name:
    os << o.name;
    if (o.value)
      os << '+' << int64_t(o.value);
    break;
  case Operand::Kind::Integer:
    os << int64_t(o.value);
    break;
  case Operand::Kind::Float32:
    os << "0f" << format_hex_no_prefix(o.value, 8, true);
    break;
  case Operand::Kind::Float64:
    os << "0d" << format_hex_no_prefix(o.value, 16, true);
    break;
  case Operand::Kind::Address:
    os << '[' << o.name;
    if (o.name.empty())
      os << int64_t(o.value);
    else if (o.value)
      os << '+' << int64_t(o.value);
    if (!o.elements.empty()) {
      os << ", {";
      interleaveComma(o.elements, os, [&](const Operand &e) { print(e, os); });
      os << '}';
    }
    os << ']';
    break;
  case Operand::Kind::Vector:
    os << '{';
    interleaveComma(o.elements, os, [&](const Operand &e) { print(e, os); });
    os << '}';
    break;
  case Operand::Kind::List:
    os << '(';
    interleaveComma(o.elements, os, [&](const Operand &e) { print(e, os); });
    os << ')';
    break;
  case Operand::Kind::Sink:
    os << '_';
    break;
  case Operand::Kind::Pair:
    print(o.elements[0], os);
    os << '|';
    print(o.elements[1], os);
    break;
  }
}

void print(const Initializer &i, raw_ostream &os) {
  if (i.symbol.empty()) {
    os << int64_t(i.value);
    return;
  }
  if (i.mask)
    os << "0x" << utohexstr(i.mask) << '(';
  os << (i.generic ? "generic(" : "") << i.symbol << (i.generic ? ")" : "");
  if (i.value)
    os << '+' << int64_t(i.value);
  if (i.mask)
    os << ')';
}

void print(const Variable &v, raw_ostream &os) {
  if (!v.linkage.empty())
    os << '.' << v.linkage << ' ';
  os << '.' << v.space;
  if (v.align && !v.pointer)
    os << " .align " << v.align;
  if (!v.type.empty())
    os << " ." << v.type;
  if (v.pointer) {
    os << " .ptr";
    if (!v.pointerSpace.empty())
      os << " ." << v.pointerSpace;
    if (v.align)
      os << " .align " << v.align;
  }
  os << ' ' << v.name;
  if (v.range)
    os << '<' << *v.range << '>';
  if (v.length) {
    os << '[';
    if (*v.length)
      os << *v.length;
    os << ']';
  }
  if (!v.initial.empty()) {
    os << (v.length ? " = {" : " = ");
    interleaveComma(v.initial, os, [&](const Initializer &i) { print(i, os); });
    os << (v.length ? "}" : "");
  }
}

void print(const Instruction &i, raw_ostream &os) {
  if (!i.guard.empty())
    os << '@' << (i.guardNegated ? "!" : "") << i.guard << ' ';
  os << i.opcode();
  if (!i.operands.empty())
    os << ' ';
  interleaveComma(i.operands, os, [&](const Operand &o) { print(o, os); });
}

void print(const Statement &s, raw_ostream &os) {
  switch (s.kind) {
  case Statement::Kind::Label:
    os << s.label << ":\n";
    return;
  case Statement::Kind::Open:
    os << "{\n";
    return;
  case Statement::Kind::Close:
    os << "}\n";
    return;
  case Statement::Kind::Location:
    os << "\t.loc " << s.location[0] << ' ' << s.location[1] << ' ' << s.location[2] << s.text << '\n';
    return;
  case Statement::Kind::Targets:
    os << s.label << ": .branchtargets ";
    interleaveComma(s.names, os);
    os << ";\n";
    return;
  case Statement::Kind::Directive:
    os << '\t' << s.text << '\n';
    return;
  case Statement::Kind::Variable:
    os << '\t';
    print(s.variable, os);
    os << ";\n";
    return;
  case Statement::Kind::Instruction:
    os << '\t';
    print(s.instruction, os);
    os << ";\n";
    return;
  }
}

void printParameters(const std::vector<Variable> &parameters, raw_ostream &os) {
  os << '(';
  interleave(parameters, os, [&](const Variable &v) { os << "\n\t", print(v, os); }, ",");
  os << "\n)";
}

void print(const Function &f, raw_ostream &os) {
  os << '\n' << (f.linkage.empty() ? "" : "." + f.linkage + " ") << (f.isEntry ? ".entry " : ".func ");
  if (!f.results.empty()) {
    printParameters(f.results, os);
    os << ' ';
  }
  os << f.name;
  printParameters(f.parameters, os);
  os << '\n';
  for (const std::string &directive : f.directives)
    os << directive << '\n';
  if (!f.hasBody) {
    os << ";\n";
    return;
  }
  os << "{\n";
  for (const Statement &s : f.body)
    print(s, os);
  os << "}\n";
}

} // namespace

void print(const Module &module, raw_ostream &os) {
  os << ".version " << module.version << '\n';
  if (!module.target.empty())
    os << ".target " << module.target << '\n';
  if (!module.addressSize.empty())
    os << ".address_size " << module.addressSize << '\n';
  for (size_t i = 0; i < module.files.size(); ++i)
    if (!module.files[i].empty())
      os << ".file " << i << " \"" << module.files[i] << "\"\n";
  for (const Variable &v : module.variables) {
    print(v, os);
    os << ";\n";
  }
  for (const Function &f : module.functions)
    print(f, os);
  for (const auto &[first, second] : module.aliases)
    os << ".alias " << first << ", " << second << ";\n";
}

} // namespace hloc::ptx
