#include "hloc/run/WhatIf.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace hloc {

/// The names of what a fusion makes.
static std::vector<std::string> resultsOf(const HloInstruction &fusion) {
  const HloInstruction *root = fusion.computation(AttributeKey::Calls)->root();
  std::vector<std::string> names;
  if (root->opcode() != Opcode::Tuple)
    names.push_back(root->name().str());
  else
    for (const HloInstruction *result : root->operands())
      names.push_back(result->name().str());
  return names;
}

EstimatedWay timesOf(EstimatedModule module, const DeviceModel &device, const HloModule *fused) {
  EstimatedWay way;
  if (fused)
    for (const auto &computation : fused->computations())
      for (const HloInstruction *instr : computation->instructions())
        if (instr->opcode() == Opcode::Fusion)
          way.makes.try_emplace(instr->name().str(), resultsOf(*instr));
  for (const EstimatedKernel &kernel : module.kernels) {
    way.times.push_back(estimate(kernel.counts, device));
    way.seconds += kernel.launches * way.times.back().total;
  }
  if (module.steps)
    way.seconds = module.steps->seconds;
  way.module = std::move(module);
  return way;
}

/// What was reported first, of the errors.
static std::string refusalIn(const DiagnosticEngine &diagnostics) {
  for (const Diagnostic &diagnostic : diagnostics.diagnostics())
    if (diagnostic.isError())
      return diagnostic.message;
  return "it does not compile";
}

EstimatedWay estimateWay(const HloModule &module, const CompiledWay &way, const Toolchain &toolchain) {
  DiagnosticEngine diagnostics;
  CompileObserver nobody;
  CompilerOptions options = way.options;
  options.explanation = nullptr;
  options.remarks.reset();
  options.lineInfo = options.keepGoing = false;
  Compiler compiler(options, toolchain, nobody, diagnostics);
  std::unique_ptr<HloModule> fused = compiler.fuse(module, way.target);
  if (fused && !way.only.empty())
    fused = compiler.only(*fused, way.only, way.target);
  std::optional<CompiledModule> compiled;
  if (fused)
    compiled = compiler.compile(*fused, way.target, Stage::Ptx);
  bool isWhole = compiled.has_value();
  if (isWhole && way.assembling && !compiled->kernels.empty())
    isWhole = succeeded(compiler.assemble(*compiled, way.target, *way.assembling));
  std::optional<EstimatedModule> estimated;
  if (isWhole)
    estimated = estimateModule(compiled->manifest, compiled->ptx, *way.device, diagnostics);
  if (estimated)
    return timesOf(std::move(*estimated), *way.device, fused.get());
  EstimatedWay refused;
  refused.refusal = refusalIn(diagnostics);
  return refused;
}

bool KernelChange::isSame() const {
  constexpr double notShown = 0.005e-6;
  return now && then && std::abs(now->seconds - then->seconds) < notShown && now->bound == then->bound;
}

namespace {

/// A kernel or a call of one way.
struct Part {
  std::string name;
  std::vector<std::string> makes;
  unsigned number; ///< among those of one fusion
  KernelChange::Side side;
};

std::vector<Part> partsOf(const EstimatedWay &way) {
  std::vector<Part> parts;
  std::map<std::string, unsigned> numbers;
  for (auto [kernel, time] : llvm::zip_equal(way.module->kernels, way.times)) {
    auto makes = way.makes.find(kernel.instruction);
    parts.push_back({kernel.name,
                     makes == way.makes.end() ? std::vector{kernel.name} : makes->second,
                     numbers[kernel.instruction]++,
                     {kernel.launches * time.total, time.bound.str()}});
  }
  if (!way.module->steps)
    return parts;
  for (const LibraryTotals &call : way.module->steps->calls)
    parts.push_back({call.step, {call.step}, 0, {call.times * call.cost.seconds, call.function}});
  double rest = way.seconds;
  for (const Part &part : parts)
    rest -= part.side.seconds;
  if (way.module->steps->copies + way.module->steps->fills > 0)
    parts.push_back({"copies and fills", {}, 0, {rest, "memory"}});
  return parts;
}

} // namespace

std::vector<KernelChange> changesBetween(const EstimatedWay &now, const EstimatedWay &then) {
  const std::vector<Part> before = partsOf(now), after = partsOf(then);
  std::vector<KernelChange> changes;
  for (const Part &part : before)
    changes.push_back({part.name, part.makes, part.side, std::nullopt});
  // First what makes the same, then what makes some of it.
  std::vector<bool> isMatched(after.size(), false);
  auto match = [&](auto isAlike) {
    for (size_t i = 0; i < after.size(); ++i)
      for (size_t j = 0; j < before.size() && !isMatched[i]; ++j)
        if (!changes[j].then && before[j].number == after[i].number && isAlike(before[j], after[i])) {
          changes[j].then = after[i].side;
          isMatched[i] = true;
        }
  };
  match([](const Part &a, const Part &b) { return a.makes == b.makes && (!a.makes.empty() || a.name == b.name); });
  match([](const Part &a, const Part &b) {
    return llvm::any_of(a.makes, [&](const std::string &one) { return llvm::is_contained(b.makes, one); });
  });
  for (size_t i = 0; i < after.size(); ++i)
    if (!isMatched[i])
      changes.push_back({after[i].name, after[i].makes, std::nullopt, after[i].side});
  return changes;
}

} // namespace hloc
