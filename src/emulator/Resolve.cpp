// Syntax tree -> Program: the variables of the module, then each kernel (ResolveKernel.cpp). Each opcode part is
// consumed by the rule that gives it a meaning (ResolveForm.h); whatever is left over makes the instruction
// unsupported.
#include "RegisterHazards.h"
#include "ResolveKernel.h"
#include "UnreadSums.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace llvm;

namespace hloc::emulator {
namespace {

constexpr uint64_t maxImage = 256 << 20; ///< far above any constant table, small enough to allocate anywhere

bool place(const ptx::Variable &v, Program &program, ModuleScope &scope, DiagnosticEngine &diagnostics) {
  const uint64_t bytes = bytesOf(v), count = v.length.value_or(1);
  // An array without a length has that of its initial value; one without either is another file's.
  const uint64_t size = v.length && !*v.length ? v.initial.size() * typeOf(v.type).value_or(b32).bytes() : bytes;
  if (!size || size > maxImage || program.image.size() > maxImage ||
      v.initial.size() > std::max(count, v.initial.size() * !count) || (v.linkage == "extern" && v.initial.empty())) {
    diagnostics.report(DiagnosticKind::UnsupportedType, v.where, "variable `" + v.name + "` is not supported");
    return false;
  }
  const size_t at = alignTo(program.image.size(), alignmentOf(v));
  program.image.resize(at + size);
  const uint64_t address = (uint64_t(1) << regionShift) + at;
  if (!scope.globals.try_emplace(v.name, Symbol{Space::Global, address}).second) {
    diagnostics.report(DiagnosticKind::Redefinition, v.where, "`" + v.name + "` is defined twice");
    return false;
  }
  program.variables.push_back({v.name, Space::Global, address, size, v.space == "const", true});
  return true;
}

/// 0xFF00(symbol): the masked byte of the address.
uint64_t masked(uint64_t address, uint64_t mask) { return mask ? (address & mask) >> countr_zero(mask) : address; }

bool initialize(const ptx::Variable &v, Program &program, const ModuleScope &scope, DiagnosticEngine &diagnostics) {
  const unsigned bytes = typeOf(v.type)->bytes();
  uint64_t at = scope.globals.find(v.name)->second.address - (uint64_t(1) << regionShift);
  for (const ptx::Initializer &i : v.initial) {
    uint64_t value = i.value;
    if (!i.symbol.empty()) {
      auto target = scope.globals.find(i.symbol);
      if (target == scope.globals.end()) {
        diagnostics.report(DiagnosticKind::UnsupportedFeature, v.where,
                           "the address of `" + i.symbol + "` in an initial value is not supported");
        return false;
      }
      value = masked(target->second.address + value, i.mask);
    }
    std::memcpy(&program.image[at], &value, bytes);
    at += bytes;
  }
  return true;
}

bool variables(const ptx::Module &module, Program &program, ModuleScope &scope, DiagnosticEngine &diagnostics) {
  for (const ptx::Variable &v : module.variables) {
    if (v.space == "shared")
      scope.shared[v.name] = &v;
    else if (!place(v, program, scope, diagnostics))
      return false;
  }
  for (const ptx::Variable &v : module.variables)
    if (v.space != "shared" && !initialize(v, program, scope, diagnostics))
      return false;
  return true;
}

} // namespace

std::string Program::location(const Decoded &instruction) const {
  if (!instruction.locLine)
    return {};
  std::string file = instruction.locFile < files.size() ? files[instruction.locFile] : "";
  return file + ":" + std::to_string(instruction.locLine) + ":" + std::to_string(instruction.locColumn);
}

std::unique_ptr<Program> resolve(const ptx::Module &module, DiagnosticEngine &diagnostics) {
  auto program = std::make_unique<Program>();
  program->files = module.files;
  ModuleScope scope{
      .module = module, .target = Target::parse(module.target), .globals = {}, .shared = {}, .aliases = {}};
  for (const auto &[first, second] : module.aliases)
    scope.aliases[first] = second;
  if (!module.addressSize.empty() && module.addressSize != "64") {
    diagnostics.report(DiagnosticKind::UnsupportedFeature,
                       "addresses of " + module.addressSize + " bits are not supported");
    return nullptr;
  }
  if (!variables(module, *program, scope, diagnostics))
    return nullptr;
  program->gridWorkspace = alignTo(program->image.size(), gridWorkspaceBytes);
  scope.gridWorkspace = (uint64_t(1) << regionShift) + program->gridWorkspace;
  bool cooperative = false;
  for (const ptx::Function &f : module.functions)
    if (f.isEntry && f.hasBody)
      if (auto kernel = KernelResolver(f, scope, diagnostics).run()) {
        cooperative |= kernel->cooperative;
        dropUnreadSums(*kernel);
        markRegisterHazards(*kernel);
        program->kernels[f.name] = std::move(*kernel);
      }
  if (cooperative) {
    program->image.resize(program->gridWorkspace + gridWorkspaceBytes);
    program->variables.push_back(
        {"workspace of the grid", Space::Global, scope.gridWorkspace, gridWorkspaceBytes, false, true});
  }
  return diagnostics.hasErrors() ? nullptr : std::move(program);
}

} // namespace hloc::emulator
