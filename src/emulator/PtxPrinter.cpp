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
    os << ']';
    break;
  case Operand::Kind::Vector:
    os << '{';
    interleaveComma(o.elements, os, [&](const Operand &e) { print(e, os); });
    os << '}';
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
    interleaveComma(v.initial, os, [&](uint64_t bits) { os << int64_t(bits); });
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

void print(const Function &f, raw_ostream &os) {
  os << '\n' << (f.linkage.empty() ? "" : "." + f.linkage + " ") << ".entry " << f.name << '(';
  interleave(f.parameters, os, [&](const Variable &v) { os << "\n\t", print(v, os); }, ",");
  os << "\n)\n";
  for (const std::string &directive : f.directives)
    os << directive << '\n';
  os << "{\n";
  for (const Statement &s : f.body) {
    if (s.kind == Statement::Kind::Label) {
      os << s.label << ":\n";
      continue;
    }
    os << '\t';
    if (s.kind == Statement::Kind::Variable)
      print(s.variable, os);
    else
      print(s.instruction, os);
    os << ";\n";
  }
  os << "}\n";
}

} // namespace

void print(const Module &module, raw_ostream &os) {
  os << ".version " << module.version << "\n.target " << module.target << '\n';
  if (!module.addressSize.empty())
    os << ".address_size " << module.addressSize << '\n';
  for (const Variable &v : module.variables) {
    print(v, os);
    os << ";\n";
  }
  for (const Function &f : module.functions)
    print(f, os);
}

} // namespace hloc::ptx
