#include "BisectRoutes.h"

#include "hloc/fusion/FusionPlan.h"
#include "hloc/kernel/Manifest.h"
#include "hloc/reduce/OtherRoutes.h"
#include "hloc/support/Files.h"
#include "hloc/support/Parallel.h"
#include "hloc/transforms/OtherWays.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

using Names = std::vector<std::string>;

/// What to read of a file that a child may have written.
std::string contents(const std::string &file) {
  std::string error;
  return readFile(file, error).value_or("");
}

//===--- other emitters -----------------------------------------------------------------------------------------===//

std::vector<KernelSpec> kernelsOf(const std::string &file, const std::string &step, const RouteTools &tools) {
  const std::string path = tools.write("kernels.json", "");
  Manifest manifest;
  std::string error;
  if (!tools.compile(file, {"--stop-after=ptx", "--manifest=" + path}).exited(0) ||
      !parseManifest(contents(path), manifest, error))
    return {};
  auto isOther = [&](const KernelSpec &kernel) { return kernel.instruction != step; };
  if (!llvm::all_of(manifest.kernels, isOther))
    llvm::erase_if(manifest.kernels, isOther);
  return manifest.kernels;
}

/// A kernel by another emitter than it has.
struct OtherEmitter {
  const KernelSpec *kernel = nullptr;
  std::string hero;
  Ending ending = {};
  bool isSame = false; ///< results are those of the emitter that it has, bit for bit

  std::string option() const { return fmt::format("--force={}:hero={}", kernel->name, hero); }
};

std::vector<OtherEmitter> otherEmitters(llvm::ArrayRef<KernelSpec> kernels) {
  constexpr size_t mostKernels = 8;
  std::vector<OtherEmitter> others;
  for (const KernelSpec &kernel : kernels.take_front(mostKernels))
    for (const HeroRow &row : heroRows())
      if (row.name != kernel.hero)
        others.push_back({&kernel, row.name.str()});
  return others;
}

/// One that takes it, and is wrong as well.
std::string wrongToo(const OtherEmitter &other) {
  return fmt::format("`{}` as `{}` is wrong, too{}", other.kernel->instruction, other.hero,
                     other.isSame ? ", by the same results" : "");
}

//===--- a third opinion ----------------------------------------------------------------------------------------===//

/// `--regimes=exact` if that is where the error is said to be.
Names inItsRegime(llvm::StringRef errors) {
  auto [before, after] = errors.split("in the regime `");
  return after.empty() ? Names() : Names{"--regimes=" + after.split('`').first.str()};
}

/// Who gives what the op is if it is expressed by others?
struct Agreement {
  bool kernels = false, reference = false;
  bool tells() const { return kernels != reference; }
};

Agreement agreementOn(const OtherRoute &route, const Names &regime, const RouteTools &tools) {
  const std::string asked = tools.write("asked.hlo", route.asked);
  const std::string otherwise = tools.write("otherwise.hlo", route.otherwise);
  const std::string ofKernels = tools.write("kernels.npz", ""), ofReference = tools.write("reference.npz", "");
  auto with = [](Names options, llvm::ArrayRef<std::string> more) {
    llvm::append_range(options, more);
    return options;
  };
  tools.run(asked, with(regime, {"--fusion=none", "--outputs=" + ofKernels}));
  tools.interpret(asked, with(regime, {"--outputs=" + ofReference}));
  // Of floats, the other way may round more coarsely than either.
  for (const Names &tolerance : {Names{}, Names{"--tolerance=1e-3"}}) {
    const Ending kernels = tools.interpret(otherwise, with(with(regime, tolerance), {"--expected=" + ofKernels}));
    const Ending reference = tools.interpret(otherwise, with(with(regime, tolerance), {"--expected=" + ofReference}));
    const bool isKnown = (kernels.exited(0) || kernels.exited(4)) && (reference.exited(0) || reference.exited(4));
    const Agreement found{kernels.exited(0), reference.exited(0)};
    if (isKnown && found.tells())
      return found;
  }
  return {};
}

RouteVerdict verdictOn(const OtherRoute &route, bool isOneOp, const Agreement &agreement) {
  const llvm::StringRef op = text(route.opcode);
  RouteVerdict verdict;
  verdict.tried.push_back(fmt::format("`{}` expressed as {} and interpreted gives what {}", op.str(),
                                      otherWayOf(route.opcode).str(),
                                      agreement.kernels ? "kernels give" : "the interpreter gives"));
  if (agreement.kernels)
    verdict.blame = fmt::format("the reference, by the interpreter's rule of `{}`", op.str());
  else if (isOneOp)
    verdict.blame = fmt::format("the lowering of `{}`: its emission, which all emitters share, or a pass that no "
                                "kernel can do without",
                                op.str());
  return verdict;
}

} // namespace

RouteVerdict blameEmitter(const std::string &file, const std::string &step, const RouteTools &tools) {
  const std::vector<KernelSpec> kernels = kernelsOf(file, step, tools);
  std::vector<OtherEmitter> others = otherEmitters(kernels);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < others.size(); ++i)
    outputs.push_back(tools.write(fmt::format("forced-{}.npz", i), ""));
  const std::string chosen = tools.write("chosen.npz", "");
  tools.run(file, {"--outputs=" + chosen});
  const std::string asChosen = contents(chosen);
  runInParallel(others.size(), tools.jobs, [&](size_t i) {
    others[i].ending = tools.run(file, {"-j1", others[i].option(), "--outputs=" + outputs[i]});
    others[i].isSame = !asChosen.empty() && contents(outputs[i]) == asChosen;
  });
  RouteVerdict verdict;
  for (const OtherEmitter &other : others) {
    if (other.ending.exited(4))
      verdict.tried.push_back(wrongToo(other));
    if (other.ending.exited(0) && verdict.blame.empty())
      verdict.blame = fmt::format("the emitter `{}` of `{}`: as `{}` it is right", other.kernel->hero,
                                  other.kernel->instruction, other.hero);
  }
  return verdict;
}

RouteVerdict blameSharedPart(const std::string &text, const std::string &errors, const RouteTools &tools) {
  OtherRoutes all = otherRoutes(text);
  if (!all.isOneOp())
    all = otherRoutes(tools.reduced(text, "--fusion=none"));
  RouteVerdict verdict;
  verdict.tried.push_back("every op a kernel of its own is wrong, too");
  for (const OtherRoute &route : all.routes) {
    const Agreement agreement = agreementOn(route, inItsRegime(errors), tools);
    if (!agreement.tells())
      continue;
    const RouteVerdict found = verdictOn(route, all.isOneOp(), agreement);
    llvm::append_range(verdict.tried, found.tried);
    if (!found.blame.empty()) {
      verdict.blame = found.blame;
      break;
    }
  }
  return verdict;
}

} // namespace hloc
