// Random fusions, each compiled and run on the emulator against the interpreter, in forked children:
//
//   random-fusions FIRST COUNT [--jobs=N] [--seconds=S] [--only=REGEX] [--max-elements=N] [--keep=DIR]
//                  [--targets=SM[,SM...]] [--demand=HERO:N[,HERO:N...]] [--most-refused=N] [--programs]
//
// Seeds FIRST, FIRST + 1, ...; a seed decides about the program, its arguments, the target and the order of threads.
// --programs: whole modules (ProgramGenerator.h) instead of fusions; each HLO pass is verified, and of every other one
// each step is compared. --only: aims that match. --keep: programs that fail, and their command lines. --demand: at
// least N programs must have been run in whose kernels the hero is (`every`: each hero that there is). Prints what
// failed and the counts by aim and by hero; refusals, exit code 3, are counted by reason, and programs of which the
// reference knows too little apart. Exit code 1 if any program failed, a demand is not met, or more than
// --most-refused programs are refused.

#include "fuzz/FusionGenerator.h"
#include "fuzz/ProgramGenerator.h"
#include "mutation/HlocRuns.h"

#include "hloc/emitters/KernelEmitter.h"
#include "hloc/hlo/Printer.h"
#include "hloc/planner/ExecutionPlan.h"
#include "hloc/support/Files.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

using namespace hloc;
using namespace hloc::mutation;

namespace {

/// Programs of one child: a crash costs the others of it nothing, and what the first had to load serves all.
constexpr size_t programsPerJob = 16;
/// Programs whose files exist at a time.
constexpr uint64_t programsPerRound = 512;

struct Options {
  uint64_t first = 0, count = 0;
  HlocLimits limits{std::max(1u, std::thread::hardware_concurrency()), 20};
  FusionOptions fusions;
  std::string only, keep;
  /// Those of small devices have vectors and long loops on small arrays.
  std::vector<std::string> targets{"sm_90", "sm_72", "sm_80", "sm_101", "sm_100", "sm_87"};
  std::map<std::string, unsigned> demands; ///< by hero
  unsigned mostRefused = ~0u;
  bool programs = false;

  bool parse(int argc, char **argv) {
    std::vector<llvm::StringRef> numbers;
    bool fine = true;
    for (llvm::StringRef word : llvm::ArrayRef(argv, size_t(argc)).drop_front())
      if (word.starts_with("--"))
        fine &= read(word);
      else
        numbers.push_back(word);
    return fine && numbers.size() == 2 && !numbers[0].getAsInteger(10, first) && !numbers[1].getAsInteger(10, count) &&
           limits.jobs > 0;
  }

private:
  bool read(llvm::StringRef word) {
    auto [name, value] = word.split('=');
    if (word == "--programs")
      return programs = true;
    if (name == "--jobs")
      return !value.getAsInteger(10, limits.jobs);
    if (name == "--seconds")
      return !value.getAsDouble(limits.secondsPerRun);
    if (name == "--max-elements")
      return !value.getAsInteger(10, fusions.maxElements);
    if (name == "--most-refused")
      return !value.getAsInteger(10, mostRefused);
    if (name == "--only")
      return only = value.str(), llvm::Regex(only).isValid();
    if (name == "--keep")
      return keep = value.str(), !keep.empty();
    if (name == "--targets") {
      targets.clear();
      for (llvm::StringRef target : llvm::split(value, ','))
        targets.push_back(target.str());
      return llvm::all_of(targets, [](const std::string &target) { return findTarget(target).has_value(); });
    }
    return name == "--demand" && readDemands(value);
  }

  bool readDemands(llvm::StringRef text) {
    for (llvm::StringRef demand : llvm::split(text, ',')) {
      auto [hero, number] = demand.split(':');
      unsigned least = 0;
      if (number.getAsInteger(10, least))
        return false;
      for (Hero known : {
#define HLOC_HERO(name, ...) Hero::name,
#include "hloc/fusion/Heroes.def"
           })
        if (hero == "every" || hero == hloc::text(known))
          demands[hloc::text(known).str()] = least;
    }
    return true;
  }
};

struct Program {
  uint64_t seed;
  GeneratedFusion fusion;
  std::string target;
  CommandLine command;
};

class Campaign {
public:
  Campaign(const Options &options, const TemporaryFolder &folder) : options(options), folder(folder) {}

  bool run() {
    auto begin = std::chrono::steady_clock::now();
    for (uint64_t seed = options.first; seed < options.first + options.count; seed += programsPerRound)
      if (!runRound(seed, std::min(seed + programsPerRound, options.first + options.count)))
        return false;
    report(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return failures == 0 && meetsDemands();
  }

private:
  bool runRound(uint64_t first, uint64_t last) {
    programs.clear();
    for (uint64_t seed = first; seed < last; ++seed)
      if (!addProgram(seed))
        return false;
    std::vector<HlocJob> jobs;
    for (size_t i = 0; i < programs.size(); ++i) {
      if (i % programsPerJob == 0)
        jobs.emplace_back();
      jobs.back().commands.push_back(programs[i].command);
    }
    runHloc(jobs, options.limits, [&](size_t job, llvm::ArrayRef<HlocOutcome> outcomes) {
      for (size_t i = 0; i < outcomes.size(); ++i)
        judge(programs[job * programsPerJob + i], outcomes[i]);
    });
    return true;
  }

  bool addProgram(uint64_t seed) {
    GeneratedFusion fusion = options.programs ? GeneratedFusion{generateProgram(seed), "program"}
                                              : generateFusionModule(seed, options.fusions);
    if (!options.only.empty() && !llvm::Regex(options.only).match(fusion.aim))
      return true;
    std::string file = folder.file(std::to_string(programs.size()) + ".hlo"), error;
    if (!writeFile(file, hloText(*fusion.module), error)) {
      llvm::errs() << file << ": " << error << "\n";
      return false;
    }
    const std::string &target = options.targets[seed % options.targets.size()];
    CommandLine command{"hloc", "run", file, "--target=" + target, "--seed=" + std::to_string(seed)};
    if (seed % 4 == 0) // else all orders that may matter
      command.push_back("--schedule=shuffled:" + std::to_string(seed));
    if (options.programs)
      command.push_back("--verify-each-pass");
    if (options.programs && seed % 2)
      command.push_back("--compare-steps");
    programs.push_back({seed, std::move(fusion), target, std::move(command)});
    return true;
  }

  void judge(const Program &program, const HlocOutcome &outcome) {
    std::string aim = program.fusion.aim.str();
    ++aims[aim];
    if (outcome.exitCode == 3) {
      ++refusals[reasonOf(outcome.firstError)];
      return;
    }
    if (outcome.exitCode == 5) { // the reference cannot tell
      ++undecided;
      return;
    }
    if (outcome.exitCode != 0)
      return fail(program, outcome);
    ++agree;
    for (llvm::StringRef hero : heroesOf(program))
      ++heroes[hero.str()];
  }

  /// Of its kernels; that it can be planned is known.
  static std::set<llvm::StringRef> heroesOf(const Program &program) {
    std::set<llvm::StringRef> found;
    std::unique_ptr<HloModule> fused = cloneModule(*program.fusion.module);
    DiagnosticEngine diagnostics;
    HloPassContext context(diagnostics);
    if (runPasses(*fused, hloPipeline(), context) == PassResult::Failed)
      return found;
    if (std::optional<ExecutionPlan> plan = planModule(*fused, *findTarget(program.target), diagnostics))
      for (const PlannedKernel &kernel : plan->kernels)
        found.insert(text(kernel.plan().hero()));
    return found;
  }

  void fail(const Program &program, const HlocOutcome &outcome) {
    ++failures;
    llvm::outs() << fmt::format("FAIL seed {} ({}, {}): exit code {}: {}\n", program.seed, program.fusion.aim.str(),
                                program.target, outcome.exitCode, outcome.firstError);
    llvm::outs().flush();
    std::string error;
    if (options.keep.empty() || !createFolders(options.keep, error))
      return;
    CommandLine command = program.command;
    std::string name = options.keep + "/" + std::to_string(program.seed);
    command[2] = name + ".hlo";
    writeFile(command[2], hloText(*program.fusion.module), error);
    writeFile(name + ".txt", llvm::join(command, " ") + "\n" + outcome.firstError + "\n", error);
  }

  /// The text of an error without its place and dimensions.
  static std::string reasonOf(llvm::StringRef error) {
    std::string reason = error.split("error: ").second.str();
    static const llvm::Regex dimensions("\\[[0-9,<=]+\\](\\{[0-9,]*\\})?");
    for (llvm::SmallVector<llvm::StringRef> found; dimensions.match(reason, &found);)
      reason = dimensions.sub("[]", reason);
    return reason;
  }

  static void printCounts(const char *title, const std::map<std::string, unsigned> &counts) {
    llvm::outs() << title << "\n";
    for (const auto &[what, count] : counts)
      llvm::outs() << fmt::format("{:6} {}\n", count, what);
  }

  unsigned refused() const {
    unsigned sum = 0;
    for (const auto &[reason, count] : refusals)
      sum += count;
    return sum;
  }

  void report(double seconds) const {
    printCounts("by aim:", aims);
    printCounts("agreed, by hero:", heroes);
    printCounts("refused:", refusals);
    llvm::outs() << fmt::format(
        "{} programs agree, {} depend on the order of threads, {} are refused, {} fail; {:.1f} a second\n", agree,
        undecided, refused(), failures, (agree + undecided + refused() + failures) / std::max(seconds, 1e-3));
  }

  bool meetsDemands() const {
    bool fine = true;
    for (const auto &[hero, least] : options.demands) {
      auto found = heroes.find(hero);
      unsigned count = found == heroes.end() ? 0 : found->second;
      if (count < least)
        llvm::outs() << fmt::format("FAIL {} programs have the hero {}, not {}\n", count, hero, least);
      fine &= count >= least;
    }
    if (refused() > options.mostRefused)
      llvm::outs() << fmt::format("FAIL more than {} programs are refused\n", options.mostRefused);
    return fine && refused() <= options.mostRefused;
  }

  const Options &options;
  const TemporaryFolder &folder;
  std::vector<Program> programs; ///< of the round
  std::map<std::string, unsigned> aims, heroes, refusals;
  unsigned agree = 0, undecided = 0, failures = 0;
};

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!options.parse(argc, argv)) {
    llvm::errs() << "usage: random-fusions FIRST COUNT [--jobs=N] [--seconds=S] [--only=REGEX] [--max-elements=N]\n"
                    "       [--keep=DIR] [--targets=SM[,SM...]] [--demand=HERO:N[,HERO:N...]] [--most-refused=N]\n"
                    "       [--programs]\n";
    return 2;
  }
  std::string error;
  std::optional<TemporaryFolder> folder = TemporaryFolder::create("random-fusions", error);
  if (!folder) {
    llvm::errs() << error << "\n";
    return 2;
  }
  return Campaign(options, *folder).run() ? 0 : 1;
}
