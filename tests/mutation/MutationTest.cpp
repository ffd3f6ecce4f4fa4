// Breaks kernels on purpose and demands that `hloc run` rejects them:
//
//   mutation-test FOLDER... [--corpus] [--explained] [--seeds=N] [--per-kernel=N] [--per-corpus-kernel=N]
//                 [--largest=BYTES] [--keep=DIR] [--jobs=N] [--seconds=S] [--only=REGEX]
//
// A kernel is F.hlo, compiled (with the options that a first line `// compiled with ...` has), or F.ptx of another
// compiler with F.json and F.hlo beside it; --corpus adds those of $HLOC_CORPUS. `equivalent.txt` of the first folder
// explains mutants that compute the same, one a line; it stays true because a row whose mutant is killed or gone fails
// the test. One of a kernel that is compiled has no numbers of registers, which change with any pass: it explains all
// mutants of that text, and stays true as long as one of them survives.
//   kernel:mutation | instruction that it becomes | reason
// The score is killed / (all - explained); it must reach 98 %.

#include "HlocRuns.h"
#include "Mutators.h"
#include "TestOptions.h"

#include "hloc/kernel/LaunchDescription.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

using namespace hloc;
using namespace hloc::mutation;

namespace {

constexpr double wantedScore = 0.98;

struct Options : TestOptions {
  bool corpus = false;
  bool explained = false;                      ///< the explained mutants alone, and all of them
  size_t perKernel = 48, perCorpusKernel = 20; ///< mutants
  uint64_t largest = 256 << 10;                ///< bytes of the buffers of a kernel of the corpus
  std::string keep;                            ///< a folder that gets the kernels and mutants

  Options() : TestOptions(/*seeds=*/3, /*secondsPerRun=*/10) {
    addFlag("--corpus", corpus);
    addFlag("--explained", explained);
    addNumber("--per-kernel", perKernel);
    addNumber("--per-corpus-kernel", perCorpusKernel);
    addNumber("--largest", largest);
    addText("--keep", "DIR", keep);
  }
};

struct Kernel {
  std::string name, hlo; ///< the file
  std::string ptx, launch;
  CommandLine compile; ///< if it is to be compiled
  size_t mutants = 0;  ///< at most so many
  std::optional<ptx::Module> module;

  CommandLine run(const std::string &ptxFile, unsigned seed) const {
    return {"hloc", "run", hlo, "--ptx=" + ptxFile, launch, "--seed=" + std::to_string(seed)};
  }
};

struct Trial {
  const Kernel *kernel;
  Mutant mutant;
  std::string file;
};

struct Count {
  unsigned all = 0, killed = 0, explained = 0;
};

std::optional<std::string> textOf(const std::string &file) {
  std::string error;
  std::optional<std::string> text = readFile(file, error);
  if (!text)
    llvm::errs() << file << ": " << error << "\n";
  return text;
}

std::optional<LaunchDescription> launchOf(const std::string &file) {
  std::optional<std::string> text = textOf(file);
  DiagnosticEngine diagnostics;
  if (text)
    diagnostics.setFile(std::make_shared<const SourceFile>(file, std::move(*text)));
  return text ? parseLaunchDescription(diagnostics) : std::nullopt;
}

/// PTX of the corpus that lacks a kernel, or works on too much data, is left out.
bool isUsable(const LaunchDescription &launch, const ptx::Module &module, uint64_t largest) {
  uint64_t bytes = 0;
  for (const LaunchBuffer &buffer : launch.buffers)
    bytes += buffer.bytes;
  return bytes <= largest &&
         llvm::all_of(launch.kernels, [&](const LaunchKernel &kernel) { return module.find(kernel.name); });
}

std::optional<ptx::Module> parsePtx(const std::string &file) {
  std::optional<std::string> text = textOf(file);
  if (!text)
    return std::nullopt;
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<const SourceFile>(file, std::move(*text)));
  return ptx::parse(diagnostics);
}

/// The name of a finding, `mismatch`, or `` for PTX that was run and found right.
std::string symptomOf(const HlocOutcome &outcome) {
  if (outcome.exitCode == HlocOutcome::timedOut)
    return "time-limit";
  if (outcome.exitCode == 0)
    return "";
  if (outcome.exitCode != 4)
    return fmt::format("exit code {}: {}", outcome.exitCode, outcome.firstError);
  llvm::StringRef name = llvm::StringRef(outcome.firstError).split("error: ").second.split(':').first;
  bool isFinding = !name.empty() && llvm::all_of(name, [](char c) { return c == '-' || llvm::isLower(c); });
  return isFinding ? name.str() : "mismatch";
}

class Campaign {
public:
  Campaign(const Options &options, const TemporaryFolder &folder) : options(options), folder(folder) {}

  bool readExplanations(const std::string &file) {
    std::optional<std::string> text = textOf(file);
    if (!text)
      return false;
    for (llvm::StringRef line : llvm::split(llvm::StringRef(*text), '\n')) {
      auto [key, reason] = line.trim().rsplit(" | ");
      if (!key.starts_with("#") && !reason.trim().empty())
        explained.insert(key.trim().str());
    }
    return true;
  }

  void add(const std::string &path, bool ofCorpus) {
    std::vector<std::string> entries;
    std::error_code failed;
    for (llvm::sys::fs::directory_iterator it(path, failed), end; it != end && !failed; it.increment(failed))
      entries.push_back(it->path());
    std::sort(entries.begin(), entries.end());
    for (const std::string &entry : entries)
      if (llvm::sys::fs::is_directory(entry))
        add(entry, ofCorpus);
      else if (llvm::StringRef(entry).ends_with(".hlo") && options.wants(entry))
        addKernel(entry, ofCorpus);
  }

  /// Compiles what is to be compiled, and runs every kernel as it is.
  bool prepare() {
    std::vector<HlocJob> jobs;
    for (const Kernel &kernel : kernels) {
      HlocJob &job = jobs.emplace_back();
      if (!kernel.compile.empty())
        job.commands.push_back(kernel.compile);
      for (unsigned seed = 0; seed < options.seeds; ++seed)
        job.commands.push_back(kernel.run(kernel.ptx, seed));
      job.mustWork = job.commands.size();
    }
    HlocLimits patient = options.limits;
    patient.secondsPerRun *= 4;
    runHloc(jobs, patient, [&](size_t i, llvm::ArrayRef<HlocOutcome> outcomes) {
      Kernel &kernel = kernels[i];
      const HlocOutcome *odd = llvm::find_if(outcomes, [](auto &outcome) { return outcome.exitCode != 0; });
      if (odd == outcomes.end() && (kernel.module || (kernel.module = parsePtx(kernel.ptx))))
        return;
      llvm::outs() << "FAIL " << kernel.name
                   << ": unchanged: " << (odd == outcomes.end() ? "cannot be parsed" : odd->firstError) << "\n";
      bad = true;
      kernel.module.reset();
    });
    return !kernels.empty();
  }

  bool run() {
    std::vector<Trial> trials;
    std::vector<HlocJob> jobs;
    for (const Kernel &kernel : kernels) {
      std::vector<Mutant> all = kernel.module ? mutantsOf(*kernel.module) : std::vector<Mutant>();
      for (const Mutant &mutant : all)
        existing.insert(keyOf({&kernel, mutant, ""}));
      for (Mutant &mutant : choose(kernel, std::move(all))) {
        Trial &trial = trials.emplace_back(Trial{&kernel, std::move(mutant), ""});
        trial.file = folder.file(std::to_string(trials.size()) + ".ptx");
        std::string text, error;
        llvm::raw_string_ostream os(text);
        ptx::print(trial.mutant.apply(*kernel.module), os);
        bad |= !writeFile(trial.file, text, error);
        keep(trial, text);
        // One seed shows that an explained mutant is killed and its row wrong, but for luck; --explained tries all.
        const unsigned seeds = options.explained || !explained.count(keyOf(trial)) ? options.seeds : 1;
        HlocJob &job = jobs.emplace_back();
        for (unsigned seed = 0; seed < seeds; ++seed)
          job.commands.push_back(kernel.run(trial.file, seed));
        job.mustWork = job.commands.size();
      }
    }
    runHloc(jobs, options.limits, [&](size_t i, llvm::ArrayRef<HlocOutcome> outcomes) { judge(trials[i], outcomes); });
    return report();
  }

private:
  /// That the text says it is to be compiled with.
  static std::vector<std::string> optionsOf(const std::string &hlo) {
    std::string error;
    const std::string text = readFile(hlo, error).value_or("");
    llvm::StringRef line = llvm::StringRef(text).split('\n').first;
    std::vector<std::string> words;
    if (line.consume_front("// compiled with "))
      for (llvm::StringRef word : llvm::split(line, ' '))
        words.push_back(word.str());
    return words;
  }

  void addKernel(const std::string &hlo, bool ofCorpus) {
    Kernel kernel;
    std::string base = llvm::StringRef(hlo).drop_back(4).str();
    kernel.name = llvm::sys::path::stem(hlo).str(), kernel.hlo = hlo, kernel.ptx = base + ".ptx";
    kernel.mutants = ofCorpus ? options.perCorpusKernel : options.perKernel;
    if (llvm::sys::fs::exists(base + ".ptx")) {
      kernel.launch = "--launch=" + base + ".json";
      kernel.module = parsePtx(kernel.ptx);
      std::optional<LaunchDescription> launch = launchOf(base + ".json");
      if (ofCorpus && (!launch || !kernel.module || !isUsable(*launch, *kernel.module, options.largest)))
        return;
    } else {
      kernel.ptx = folder.file(kernel.name + ".ptx");
      kernel.launch = "--manifest=" + folder.file(kernel.name + ".json");
      kernel.compile = {"hloc", hlo, "-o", kernel.ptx, kernel.launch};
      llvm::append_range(kernel.compile, optionsOf(hlo));
    }
    kernels.push_back(std::move(kernel));
  }

  /// Every mutation gets its turn before any gets a second one; within a mutation, spread over the kernel.
  std::vector<Mutant> choose(const Kernel &kernel, std::vector<Mutant> all) const {
    if (options.explained)
      llvm::erase_if(all, [&](const Mutant &mutant) { return !explained.count(keyOf({&kernel, mutant, ""})); });
    size_t limit = kernel.mutants;
    if (options.explained || all.size() <= limit)
      return all;
    std::map<std::string, std::vector<Mutant>> byMutation;
    for (Mutant &mutant : all)
      byMutation[mutant.mutation].push_back(std::move(mutant));
    std::vector<Mutant> chosen;
    size_t each = std::max<size_t>(1, limit / byMutation.size());
    for (auto &[mutation, mutants] : byMutation)
      for (size_t i = 0, n = std::min(each, mutants.size()); i < n; ++i)
        chosen.push_back(mutants[i * mutants.size() / n]);
    return chosen;
  }

  /// For --keep: `NAME.ptx` as it is, and a mutant as `NAME-LINE-MUTATION.ptx`, its row of equivalent.txt in front.
  void keep(const Trial &trial, const std::string &text) {
    if (options.keep.empty())
      return;
    std::string base = options.keep + "/" + trial.kernel->name, error, whole;
    llvm::raw_string_ostream os(whole);
    ptx::print(*trial.kernel->module, os);
    bad |= !createFolders(options.keep, error) || !writeFile(base + ".ptx", whole, error) ||
           !writeFile(fmt::format("{}-{}-{}.ptx", base, trial.mutant.line, trial.mutant.mutation),
                      "// " + keyOf(trial) + "\n" + text, error);
    if (!error.empty())
      llvm::errs() << base << ": " << error << "\n";
  }

  /// `%r17` as `%r`.
  static std::string withoutRegisterNumbers(llvm::StringRef text) {
    std::string result;
    bool inRegister = false;
    for (char c : text) {
      inRegister = c == '%' || (inRegister && llvm::isAlnum(c));
      if (!inRegister || !llvm::isDigit(c))
        result += c;
    }
    return result;
  }

  /// `kernel:mutation | instruction`, without what is only the kernel's layout: its line, and the numbers of registers
  /// that hloc's next version gives otherwise.
  static std::string keyOf(const Trial &trial) {
    const Mutant &mutant = trial.mutant;
    const ptx::Statement &was = trial.kernel->module->functions[mutant.function].body[mutant.statement];
    ptx::Module one;
    ptx::Function function;
    function.body.push_back(was);
    if (mutant.replacement)
      function.body.front().instruction = *mutant.replacement;
    one.functions.push_back(std::move(function));
    std::string text;
    llvm::raw_string_ostream os(text);
    ptx::print(one, os);
    auto [head, body] = llvm::StringRef(text).split("{\n");
    std::string words;
    for (llvm::StringRef word : llvm::split(body.split(';').first, ' '))
      if (!word.trim().empty())
        words += (words.empty() ? "" : " ") + word.trim().str();
    std::replace(words.begin(), words.end(), '\t', ' ');
    if (!trial.kernel->compile.empty())
      words = withoutRegisterNumbers(words);
    return fmt::format("{}:{} | {}", trial.kernel->name, mutant.mutation, words);
  }

  void judge(const Trial &trial, llvm::ArrayRef<HlocOutcome> outcomes) {
    const HlocOutcome *odd = llvm::find_if(outcomes, [](auto &outcome) { return outcome.exitCode != 0; });
    std::string symptom = odd == outcomes.end() ? "" : symptomOf(*odd);
    if (symptom.starts_with("exit code 1") || symptom.starts_with("exit code 3")) {
      ++numNotPtx;
      return;
    }
    std::string key = keyOf(trial);
    Count &count = counts[trial.mutant.mutation];
    ++count.all;
    bool slow = symptom == "time-limit" && explained.count(key); // of a machine that does other work besides
    if (!symptom.empty() && !symptom.starts_with("exit code") && !slow && explains(trial.mutant.mutation, symptom)) {
      ++count.killed;
      ++symptoms[symptom];
      killed.insert(std::move(key));
      return;
    }
    if (explained.count(key)) {
      ++count.explained;
      survived.insert(std::move(key));
    } else
      survivors.push_back(fmt::format("{} | line {}, {}", key, trial.mutant.line,
                                      symptom.empty() ? "unnoticed" : "wrong symptom " + symptom));
  }

  /// Prints the table; true if the score is reached and the explanations are true.
  bool report() {
    Count sum;
    for (const auto &[mutation, count] : counts) {
      llvm::outs() << fmt::format("{:<18} {:>4} mutants {:>4} killed {:>3} explained\n", mutation, count.all,
                                  count.killed, count.explained);
      sum.all += count.all, sum.killed += count.killed, sum.explained += count.explained;
    }
    for (const auto &[symptom, times] : symptoms)
      llvm::outs() << fmt::format("  by {:<20} {:>4}\n", symptom, times);
    for (const std::string &survivor : survivors)
      llvm::outs() << "survived: " << survivor << "\n";
    for (const std::string &key : explained)
      if (((killed.count(key) && !survived.count(key)) || !existing.count(key)) &&
          hasKernel(llvm::StringRef(key).split(':').first))
        llvm::outs() << "explained, but killed or gone: " << key << "\n", bad = true;
    double score = double(sum.killed) / double(std::max(1u, sum.all - sum.explained));
    llvm::outs() << fmt::format(
        "{} kernels, {} mutants ({} more are not PTX): {} killed, {} explained: {:.1f} % of the "
        "rest\n",
        kernels.size(), sum.all, numNotPtx, sum.killed, sum.explained, 100 * score);
    return (options.explained || (score >= wantedScore && sum.all >= 200)) && !bad;
  }

  bool hasKernel(llvm::StringRef name) const {
    return llvm::any_of(kernels, [&](const Kernel &kernel) { return kernel.name == name; });
  }

  const Options &options;
  const TemporaryFolder &folder;
  std::vector<Kernel> kernels;
  std::map<std::string, Count> counts;
  std::map<std::string, unsigned> symptoms;
  std::vector<std::string> survivors;
  std::set<std::string> explained, killed, survived, existing; ///< keys; `survived` of explained ones
  unsigned numNotPtx = 0;
  bool bad = false;
};

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!options.parse("mutation-test", argc, argv))
    return 2;
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("mutants", error);
  if (!folder) {
    llvm::errs() << error << "\n";
    return 1;
  }
  Campaign campaign(options, *folder);
  bool fine = campaign.readExplanations(options.paths.front() + "/equivalent.txt");
  for (const std::string &path : options.paths)
    campaign.add(path, false);
  const char *corpus = std::getenv("HLOC_CORPUS");
  for (const char *part : {"/xla-ptx", "/triton-ptx"})
    if (options.corpus && corpus)
      campaign.add(corpus + std::string(part), true);
  return fine && campaign.prepare() && campaign.run() ? 0 : 1;
}
