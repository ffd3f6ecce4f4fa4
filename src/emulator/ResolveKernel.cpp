#include "ResolveKernel.h"

#include "CodeOrder.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace hloc::emulator {

static constexpr uint32_t maxRegisters = 1 << 20;
static constexpr uint64_t maxMemory = 1ull << 32; ///< of one thread's local or one block's shared variables

uint64_t bytesOf(const ptx::Variable &v) {
  auto type = typeOf(v.type);
  return type && type->width() % 8 == 0 ? type->bytes() * v.length.value_or(1) : 0;
}

uint64_t alignmentOf(const ptx::Variable &v) {
  auto type = typeOf(v.type);
  return std::max<uint64_t>({1, v.pointer ? 0 : v.align, type ? type->bytes() : 0});
}

const ptx::Function *ModuleScope::function(StringRef name) const {
  auto alias = aliases.find(name);
  return module.find(alias == aliases.end() ? name : StringRef(alias->second));
}

void KernelResolver::error(SourceRange range, DiagnosticKind kind, std::string message) {
  diagnostics.report(kind, range, std::move(message));
  failed = true;
}

std::optional<Kernel> KernelResolver::run() {
  kernel.name = entry.name;
  Frame frame{.f = entry, .isEntry = true};
  directives();
  layOutShared();
  parameters(frame);
  callStack.push_back(entry.name);
  if (!failed)
    body(frame);
  patchLabels();
  if (failed)
    return std::nullopt;
  restoreCodeOrder(kernel);
  return std::move(kernel);
}

void KernelResolver::parameters(Frame &frame) {
  for (const ptx::Variable &v : entry.parameters) {
    const uint64_t bytes = bytesOf(v);
    if (!bytes || v.space != "param" || bytes > maxMemory)
      return error(v.where, DiagnosticKind::UnsupportedType, "parameter type `" + v.type + "` is not supported");
    kernel.paramBytes = alignTo(kernel.paramBytes, alignmentOf(v));
    Entry e;
    e.kind = Entry::Kind::Variable;
    e.symbol = {Space::Param, kernel.paramBytes};
    frame.scopes[0].entries[v.name] = e;
    kernel.paramOffsets.push_back(kernel.paramBytes);
    kernel.paramSizes.push_back(unsigned(bytes));
    kernel.paramBytes += bytes;
  }
}

/// `.reqntid 128, 1` -> {128, 1, 1}
static bool threeNumbers(StringRef text, std::array<uint32_t, 3> &out) {
  out = {1, 1, 1};
  SmallVector<StringRef, 3> parts;
  text.split(parts, ',');
  for (size_t i = 0; i < parts.size(); ++i)
    if (i > 2 || parts[i].trim().getAsInteger(10, out[i]))
      return false;
  return true;
}

void KernelResolver::directives() {
  for (StringRef text : entry.directives) {
    auto [name, rest] = text.split(' ');
    bool good = true;
    if (name == ".reqntid")
      good = threeNumbers(rest, kernel.required);
    else if (name == ".maxntid")
      good = threeNumbers(rest, kernel.maximum);
    else if (name == ".reqnctapercluster")
      good = threeNumbers(rest, kernel.cluster) && !is_contained(kernel.cluster, 0u);
    else if (name == ".maxclusterrank")
      good = !rest.trim().getAsInteger(10, kernel.maxClusterBlocks) && kernel.maxClusterBlocks;
    else if (name == ".explicitcluster")
      kernel.explicitCluster = true;
    else if (name == ".blocksareclusters")
      kernel.blocksAreClusters = true;
    else if (name == ".maxnreg")
      good = !rest.trim().getAsInteger(10, kernel.maxRegisters);
    else if (name == ".minnctapersm")
      good = !rest.trim().getAsInteger(10, kernel.minBlocks);
    else
      good = is_contained({".maxnctapersm", ".noreturn", ".pragma"}, name);
    if (!good)
      error(entry.where, DiagnosticKind::UnsupportedFeature, "kernel directive `" + text.str() + "` is not supported");
    constexpr unsigned firstWithClusters = 90;
    if (good && name.contains("cluster") && module.target && module.target->architecture < firstWithClusters)
      error(entry.where, DiagnosticKind::UnsupportedTarget,
            "`" + name.str() + "` needs sm_90, this text is for " + module.target->name());
  }
  if (kernel.blocksAreClusters && !(kernel.cluster[0] && kernel.required[0]))
    error(entry.where, DiagnosticKind::BadAttribute,
          "kernel `" + entry.name + "` has .blocksareclusters without .reqntid and .reqnctapercluster");
}

static void collectNames(const ptx::Operand &o, StringSet<> &names) {
  if (!o.name.empty())
    names.insert(o.name);
  for (const ptx::Operand &e : o.elements)
    collectNames(e, names);
}

/// Names in the operands of `f` and of all that it calls.
void KernelResolver::collectReferences(const ptx::Function &f, StringSet<> &names, StringSet<> &functions) {
  std::vector<const ptx::Function *> work = {&f};
  while (!work.empty()) {
    const ptx::Function &next = *work.back();
    work.pop_back();
    if (!functions.insert(next.name).second)
      continue;
    for (const ptx::Statement &s : next.body) {
      if (s.kind == ptx::Statement::Kind::Variable && s.variable.space == "shared")
        placeShared(s.variable);
      if (s.kind != ptx::Statement::Kind::Instruction)
        continue;
      for (const ptx::Operand &o : s.instruction.operands) {
        collectNames(o, names);
        if (s.instruction.parts[0] == "call")
          if (const ptx::Function *callee = module.function(o.name))
            work.push_back(callee);
      }
    }
  }
}

void KernelResolver::placeShared(const ptx::Variable &v) {
  const uint64_t bytes = bytesOf(v);
  if (!bytes || bytes > maxMemory || kernel.sharedBytes > maxMemory)
    return error(v.where, DiagnosticKind::UnsupportedType, "shared variable `" + v.name + "` is not supported");
  kernel.sharedBytes = alignTo(kernel.sharedBytes, alignmentOf(v));
  sharedOfFunctions[&v] = {Space::Shared, kernel.sharedBytes};
  kernel.variables.push_back({v.name, Space::Shared, kernel.sharedBytes, bytes, false, false});
  kernel.sharedBytes += bytes;
}

/// Static variables first, then what is reserved; all `.extern .shared` arrays begin where those end.
void KernelResolver::layOutShared() {
  StringSet<> names, functions;
  collectReferences(entry, names, functions);
  std::vector<const ptx::Variable *> dynamic;
  uint64_t dynamicAlign = 16;
  for (const ptx::Variable &v : module.module.variables) {
    if (v.space != "shared" || !names.contains(v.name))
      continue;
    if (v.linkage == "extern" || (v.length && !*v.length)) {
      dynamic.push_back(&v);
      dynamicAlign = std::max(dynamicAlign, alignmentOf(v));
      continue;
    }
    placeShared(v);
    shared[v.name] = sharedOfFunctions[&v];
  }
  if (module.target && kernel.sharedBytes > module.target->maxStaticShared())
    error(entry.where, DiagnosticKind::UnsupportedTarget,
          "kernel `" + entry.name + "` has " + utostr(kernel.sharedBytes) + " bytes of static shared memory; " +
              module.target->name() + " allows " + utostr(module.target->maxStaticShared()));
  if (any_of(names.keys(), [](StringRef name) { return name.starts_with("%reserved_smem_offset_"); })) {
    kernel.sharedBytes = alignTo(kernel.sharedBytes, 128);
    kernel.reservedShared = kernel.sharedBytes;
    kernel.variables.push_back(
        {"%reserved_smem", Space::Shared, kernel.sharedBytes, reservedSharedBytes, false, false});
    kernel.sharedBytes += reservedSharedBytes;
  }
  kernel.sharedBytes = alignTo(kernel.sharedBytes, dynamicAlign);
  for (const ptx::Variable *v : dynamic) {
    shared[v->name] = {Space::Shared, kernel.sharedBytes};
    kernel.variables.push_back({v->name, Space::Shared, kernel.sharedBytes, 0, false, false});
  }
}

uint32_t KernelResolver::newRegister() { return kernel.registers++; }

uint32_t KernelResolver::newLabel() {
  labels.push_back(0);
  return uint32_t(labels.size() - 1);
}

Symbol KernelResolver::allocateLocal(const ptx::Variable &v) {
  const uint64_t bytes = bytesOf(v);
  if (!bytes || bytes > maxMemory || kernel.localBytes > maxMemory) {
    error(v.where, DiagnosticKind::UnsupportedType, "variable `" + v.name + "` is not supported");
    return {Space::Local, 0};
  }
  kernel.localBytes = alignTo(kernel.localBytes, alignmentOf(v));
  Symbol symbol{Space::Local, kernel.localBytes};
  kernel.variables.push_back({v.name, Space::Local, symbol.address, bytes, false, false});
  kernel.localBytes += bytes;
  return symbol;
}

void KernelResolver::declare(Frame &frame, Scope &scope, const ptx::Variable &v) {
  Entry e;
  if (v.space == "reg") {
    auto type = typeOf(v.type);
    const uint64_t count = v.range.value_or(1);
    if (!type || v.length || type->bits == 4)
      return error(v.where, DiagnosticKind::UnsupportedType, "register type `" + v.type + "` is not supported");
    if (kernel.registers + count > maxRegisters)
      return error(v.where, DiagnosticKind::InputTooLarge, "`" + frame.f.name + "` has too many registers");
    e.kind = v.range ? Entry::Kind::Range : Entry::Kind::Register;
    e.type = *type;
    e.slot = kernel.registers;
    e.count = uint32_t(count);
    kernel.registers += e.count;
  } else if (v.space == "shared") {
    e.kind = Entry::Kind::Variable;
    e.symbol = sharedOfFunctions.lookup(&v);
  } else if (v.space == "local" || v.space == "param") {
    e.kind = Entry::Kind::Variable;
    e.symbol = allocateLocal(v);
  } else {
    return error(v.where, DiagnosticKind::UnsupportedFeature,
                 "`." + v.space + "` variables inside of functions are not supported");
  }
  if (!scope.entries.try_emplace(v.name + (v.range ? "<" : ""), e).second)
    error(v.where, DiagnosticKind::Redefinition, "`" + v.name + "` is declared twice");
}

/// Declares everything before the first instruction is read: labels are named before they are placed.
void KernelResolver::collectScopes(Frame &frame) {
  size_t current = 0;
  for (const ptx::Statement &s : frame.f.body) {
    Entry e;
    switch (s.kind) {
    case ptx::Statement::Kind::Open:
      frame.scopes.push_back({current, {}});
      current = frame.scopes.size() - 1;
      continue;
    case ptx::Statement::Kind::Close:
      current = frame.scopes[current].parent;
      continue;
    case ptx::Statement::Kind::Variable:
      declare(frame, frame.scopes[current], s.variable);
      continue;
    case ptx::Statement::Kind::Label:
      e.kind = Entry::Kind::Label;
      e.slot = newLabel();
      break;
    case ptx::Statement::Kind::Targets:
      e.kind = Entry::Kind::Targets;
      e.names = &s.names;
      break;
    case ptx::Statement::Kind::Instruction:
    case ptx::Statement::Kind::Location:
    case ptx::Statement::Kind::Directive:
      continue;
    }
    if (!frame.scopes[current].entries.try_emplace(s.label, e).second)
      error(frame.f.where, DiagnosticKind::Redefinition, "label `" + s.label + "` is defined twice");
  }
}

void KernelResolver::body(Frame &frame) {
  collectScopes(frame);
  size_t opened = 0;
  frame.scope = 0;
  for (const ptx::Statement &s : frame.f.body) {
    if (failed)
      return;
    switch (s.kind) {
    case ptx::Statement::Kind::Open:
      frame.scope = ++opened;
      break;
    case ptx::Statement::Kind::Close:
      frame.scope = frame.scopes[frame.scope].parent;
      break;
    case ptx::Statement::Kind::Label:
      placeLabel(frame.scopes[frame.scope].entries.find(s.label)->second.slot);
      break;
    case ptx::Statement::Kind::Location:
      location = s.location;
      break;
    case ptx::Statement::Kind::Instruction:
      instruction(frame, s.instruction);
      break;
    case ptx::Statement::Kind::Variable:
    case ptx::Statement::Kind::Targets:
    case ptx::Statement::Kind::Directive:
      break;
    }
  }
}

void KernelResolver::patchLabels() {
  for (Decoded &d : kernel.code)
    if (d.opcode == Opcode::Bra)
      d.target = labels[d.target];
}

/// The innermost declaration of a name; `%r12` may be one of `%r<16>`.
const KernelResolver::Entry *KernelResolver::lookUp(const Frame &frame, StringRef name, uint32_t &slot) const {
  StringRef base = name.rtrim("0123456789"), digits = name.substr(base.size());
  uint32_t index = 0;
  const bool numbered = !digits.empty() && (digits.size() == 1 || digits[0] != '0') && !digits.getAsInteger(10, index);
  const std::string range = base.str() + "<";
  for (size_t i = frame.scope;; i = frame.scopes[i].parent) {
    const auto &entries = frame.scopes[i].entries;
    if (auto it = entries.find(name); it != entries.end()) {
      slot = it->second.slot;
      return &it->second;
    }
    if (auto it = numbered ? entries.find(range) : entries.end(); it != entries.end() && index < it->second.count) {
      slot = it->second.slot + index;
      return &it->second;
    }
    if (i == 0)
      return nullptr;
  }
}

} // namespace hloc::emulator
