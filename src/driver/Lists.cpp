#include "Lists.h"

#include "PassList.h"

#include "hloc/emitters/OpcodeSupport.h"
#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/Opcode.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/lint/Lint.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

namespace hloc {

std::string listTargets() {
  std::string out =
      fmt::format("{:<10} {:>4} {:>8} {:>7} {:>7}  products\n", "target", "PTX", "threads", "SMs", "vector");
  for (const TargetInfo &target : allTargets()) {
    std::string products;
    for (const std::string &product : productNames(target))
      products += (products.empty() ? "" : ", ") + product;
    out += fmt::format("{:<10} {:>2}.{} {:>8} {:>7} {:>5} B  {}\n", target.name, target.ptxVersion / 10,
                       target.ptxVersion % 10, target.threadsPerMultiprocessor, target.multiprocessors,
                       target.maxVectorBytes, products);
  }
  return out;
}

/// By kernel: the instruction that it is made for, and how many more it is launched for.
static std::vector<std::string> instructionsOf(const Manifest &manifest) {
  std::vector<std::set<std::string>> launchedFor(manifest.kernels.size());
  forEachStep(manifest.steps, [&](const Step &step) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action))
      launchedFor[launch->kernel].insert(step.name);
  });
  std::vector<std::string> texts;
  for (auto [kernel, names] : llvm::zip_equal(manifest.kernels, launchedFor))
    texts.push_back(names.size() > 1 ? fmt::format("{} and {} more", kernel.instruction, names.size() - 1)
                                     : kernel.instruction);
  return texts;
}

std::string listKernels(const Manifest &manifest) {
  auto extents = [](const Dim3 &dim) {
    std::string text = std::to_string(dim.x);
    if (dim.y != 1 || dim.z != 1)
      text += "x" + std::to_string(dim.y);
    return dim.z == 1 ? text : text + "x" + std::to_string(dim.z);
  };
  size_t nameWidth = 6, instructionWidth = 11;
  std::vector<std::string> instructions = instructionsOf(manifest);
  for (auto [kernel, instruction] : llvm::zip_equal(manifest.kernels, instructions)) {
    nameWidth = std::max(nameWidth, kernel.name.size());
    instructionWidth = std::max(instructionWidth, instruction.size());
  }
  auto line = [&](auto &&name, auto &&instruction, auto &&where, auto &&hero, auto &&grid, auto &&block,
                  auto &&registers, auto &&read, auto &&written, auto &&opName) {
    std::string text =
        fmt::format("{:<{}} {:<{}} {:>6} {:<10} {:>10} {:>5} {:>9} {:>12} {:>13}  {}", name, nameWidth, instruction,
                    instructionWidth, where, hero, grid, block, registers, read, written, opName);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string out = line("kernel", "instruction", "line", "emitter", "grid", "block", "registers", "bytes read",
                         "bytes written", "op_name");
  for (auto [kernel, instruction] : llvm::zip_equal(manifest.kernels, instructions))
    out += line(kernel.name, instruction, kernel.line ? std::to_string(kernel.line) : "-", kernel.hero,
                extents(kernel.grid), extents(kernel.block),
                kernel.resources ? std::to_string(kernel.resources->registers) : "-", kernel.bytesRead,
                kernel.bytesWritten, kernel.opName);
  return out;
}

std::string listRules() {
  std::string out = fmt::format("{:<18} {:<8} {}\n", "rule", "severity", "what it finds");
  for (const lint::RuleRow &rule : lint::rules())
    out += fmt::format("{:<18} {:<8} {}\n", rule.name.str(),
                       rule.severity == lint::Severity::Error ? "error" : "warning", rule.summary.str());
  return out;
}

std::string listRewrites(bool fastMathOnly) {
  std::string out = fmt::format("{:<32} {:<12} {}\n", "rule", "applied", "what it does");
  for (const RewriteRow &row : rewriteRows())
    if (row.isFastMath || !fastMathOnly)
      out += fmt::format("{:<32} {:<12} {}\n", row.name.str(), row.isFastMath ? "--fast-math" : "always",
                         row.summary.str());
  return out;
}

static std::string megabytes(uint64_t bytes) { return fmt::format("{:.1f} MB", double(bytes) / (1 << 20)); }

std::string cacheStatistics(const CacheSettings &settings) {
  if (settings.folder.empty())
    return "no cache: HLOC_NO_CACHE is set, or there is no home\n";
  const CacheContents contents = CubinCache(settings).contents();
  std::string text = fmt::format("folder        {}\n", settings.folder);
  text += fmt::format("machine code  {} in {} files\n", megabytes(contents.cubinBytes), contents.numCubins);
  text += fmt::format("PTX           {} in {} files\n", megabytes(contents.textBytes), contents.numTexts);
  text += fmt::format("limit         {}\n", megabytes(settings.limit));
  if (!contents.oldest.empty())
    text += fmt::format("written       {} to {} UTC\n", contents.oldest, contents.newest);
  return text;
}

std::string versionText() { return fmt::format("hloc {}\nLLVM {}\n", HLOC_VERSION, LLVM_VERSION_STRING); }

std::string listOps() {
  std::string out = fmt::format("{:<28} {:<8} {:<12} {}\n", "opcode", "kernels", "interpreter", "why not");
  for (unsigned i = 0; i < numOpcodes(); ++i) {
    auto opcode = static_cast<Opcode>(i);
    const char *kernel = kernelRefusal(opcode);
    const char *interpreter = interpreterRefusal(opcode);
    std::string why = kernel ? kernel : "";
    if (interpreter)
      why += (why.empty() ? "" : "; ") + std::string(interpreter);
    out += fmt::format("{:<28} {:<8} {:<12} {}", text(opcode).str(), kernel ? "no" : "yes", interpreter ? "no" : "yes",
                       why);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string listHeroes() {
  std::string out;
  for (const HeroRow &hero : heroRows())
    out += fmt::format("{}\n  takes: {}\n  how: {}\n", hero.name.str(), hero.takes.str(), hero.how.str());
  return out;
}

std::string listPasses(unsigned optimizationLevel) {
  std::string out = fmt::format("{:<5} {:<30} {}\n", "stage", "pass", "what it does");
  for (const PassRow &pass : passesInOrder(optimizationLevel))
    out += fmt::format("{:<5} {:<30} {}\n", pass.stage, pass.name, pass.summary);
  return out;
}

} // namespace hloc
