// LLVM's passes one by one: who is told of them, and what they are called.

#include "LlvmStageParts.h"

#include "hloc/codegen/LlvmPasses.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

using Clock = std::chrono::steady_clock;

/// What adds no pass of its own, but only runs others.
bool isPlumbing(llvm::StringRef className) {
  return llvm::isSpecialPass(className, {"PassManager", "PassAdaptor", "AnalysisManagerProxy", "DevirtSCCRepeatedPass",
                                         "ModuleInlinerWrapperPass", "RequireAnalysisPass", "InvalidateAnalysisPass"});
}

/// Shared by the callbacks, which LLVM copies and owns.
struct PassRuns {
  const llvm::Module &module;
  const LlvmPassCallback &tell;
  llvm::PassInstrumentationCallbacks &callbacks;
  std::vector<Clock::time_point> begins;
  llvm::StringMap<unsigned> counts;

  void begin(llvm::StringRef className) {
    if (!isPlumbing(className))
      begins.push_back(Clock::now());
  }
  void end(llvm::StringRef className) {
    if (isPlumbing(className))
      return;
    Clock::time_point end = Clock::now(), begin = begins.back();
    begins.pop_back();
    llvm::StringRef known = callbacks.getPassNameForClassName(className);
    std::string name = (known.empty() ? className : known).str();
    std::string id = name + "#" + std::to_string(++counts[name]);
    tell({name, id, begin, end, [this] { return printLlvm(module); }});
  }
};

/// The passes in a textual pipeline, `function(instcombine<max-iterations=1>,sccp)`, without options and without what
/// they are nested in.
std::vector<std::string> passesIn(llvm::StringRef pipeline) {
  std::vector<std::string> names;
  while (!pipeline.empty()) {
    llvm::StringRef word = pipeline.take_until([](char c) { return llvm::StringRef("(),<").contains(c); });
    pipeline = pipeline.drop_front(word.size());
    if (pipeline.starts_with("<")) {
      int depth = 0;
      pipeline = pipeline.drop_until([&](char c) { return (depth += (c == '<') - (c == '>')) == 0; }).drop_front();
    }
    if (word.starts_with("loop") && pipeline.starts_with("("))
      names.insert(names.end(), {"loop-simplify", "lcssa"}); // are run before any pass over loops
    if (!word.empty() && !pipeline.starts_with("(") && word != "require" && word != "invalidate")
      names.push_back(word.str());
    pipeline = pipeline.drop_front(!pipeline.empty());
  }
  return names;
}

/// What the passes do to kernels, by their names in LLVM.
llvm::StringRef summaryOf(llvm::StringRef name) {
  static const llvm::StringMap<llvm::StringRef> summaries = {
      {"always-inline", "Pastes what has to be inlined into its callers"},
      {"correlated-propagation", "Decides comparisons by the ranges that branches imply"},
      {"early-cse", "Equal expressions and loads are computed once"},
      {"function-attrs", "Learns which helpers read and write memory"},
      {"globaldce", "Helpers and variables that nothing uses go"},
      {"infer-alignment", "Accesses learn how they are aligned"},
      {"inline", "Pastes helpers into their callers"},
      {"instcombine", "Combines instructions into fewer or cheaper ones"},
      {"ipsccp", "Propagates constants and ranges through all functions"},
      {"licm", "Moves out of loops what does not change in them"},
      {"loop-rotate", "Tests a loop's condition at its end"},
      {"loop-unroll", "Unrolls short loops"},
      {"loop-simplify", "Gives loops one entry and one way back"},
      {"lcssa", "Values leave loops through phis"},
      {"nvvm-reflect", "Answers libdevice's questions about the target"},
      {"nvvm-intr-range", "Ids of threads and blocks learn their ranges"},
      {"reassociate", "Orders sums such that common parts are shared"},
      {"sccp", "Propagates constants and ranges"},
      {"simplifycfg", "Merges blocks, turns short branches into selects"},
      {"speculative-execution", "Moves cheap instructions before the branch that guards them"},
  };
  return summaries.lookup(name);
}

} // namespace

void tellOfPasses(llvm::PassInstrumentationCallbacks &callbacks, const llvm::Module &module,
                  const LlvmPassCallback &tell) {
  auto runs = std::make_shared<PassRuns>(PassRuns{module, tell, callbacks, {}, {}});
  callbacks.registerBeforeNonSkippedPassCallback([runs](llvm::StringRef pass, llvm::Any) { runs->begin(pass); });
  callbacks.registerAfterPassCallback(
      [runs](llvm::StringRef pass, llvm::Any, const llvm::PreservedAnalyses &) { runs->end(pass); });
  // A loop that was unrolled, a function that was inlined: the module is there all the same.
  callbacks.registerAfterPassInvalidatedCallback(
      [runs](llvm::StringRef pass, const llvm::PreservedAnalyses &) { runs->end(pass); });
}

void leaveOutPasses(llvm::PassInstrumentationCallbacks &callbacks, const DisabledPasses &disabled) {
  auto counts = std::make_shared<llvm::StringMap<unsigned>>();
  callbacks.registerShouldRunOptionalPassCallback(
      [&callbacks, &disabled, counts](llvm::StringRef className, llvm::Any) {
        if (isPlumbing(className))
          return true;
        const llvm::StringRef known = callbacks.getPassNameForClassName(className);
        const std::string name = (known.empty() ? className : known).str();
        return !disabled.has("llvm", name, name + "#" + std::to_string(++(*counts)[name]));
      });
}

std::string printLlvm(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

std::vector<PassName> llvmPasses(unsigned optimizationLevel) {
  std::vector<PassName> passes;
  auto add = [&](llvm::StringRef pipeline, llvm::StringRef kernels) {
    for (const std::string &name : passesIn(pipeline)) {
      std::string summary = summaryOf(name).str();
      if (summary.empty())
        summary = "One of LLVM's passes of this -O";
      passes.push_back({name, name, summary + kernels.str()});
    }
  };
  for (const auto &[pipeline, kernels] : llvmPipelines(optimizationLevel))
    add(pipeline, kernels);
  return passes;
}

} // namespace hloc
