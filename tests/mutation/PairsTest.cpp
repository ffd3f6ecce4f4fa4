// Wrong programs must be rejected, right ones accepted:
//
//   pairs-test FOLDER... [--seeds=N] [--jobs=N] [--only=REGEX]
//   pairs-test --false-alarms PATH... [--seeds=N] [--jobs=N]
//
// A pair is a folder with `right.hlo` and `wrong*.hlo` (compiled, then run against right.hlo), or `wrong*.ptx` with
// `wrong*.json` or `right.json` beside it. Pairs that cannot be told apart are named in `undecided.txt` of FOLDER.

#include "HlocRuns.h"
#include "TestOptions.h"

#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>
#include <set>

using namespace hloc;
using namespace hloc::mutation;

namespace {

std::vector<std::string> entriesOf(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (llvm::sys::fs::directory_iterator it(folder, failed), end; it != end && !failed; it.increment(failed))
    names.push_back(it->path());
  std::sort(names.begin(), names.end());
  return names;
}

void addPrograms(const std::string &path, std::vector<std::string> &programs) {
  if (llvm::sys::fs::is_directory(path))
    for (const std::string &entry : entriesOf(path))
      addPrograms(entry, programs);
  else if (llvm::StringRef(path).ends_with(".hlo"))
    programs.push_back(path);
}

bool exists(const std::string &path) { return llvm::sys::fs::exists(path); }

/// The path without its suffix.
std::string baseOf(const std::string &file) {
  return file.substr(0, file.size() - llvm::sys::path::extension(file).size());
}

/// Which outcomes came for which seeds: "0 1 2", "all".
std::string seedsWith(llvm::ArrayRef<HlocOutcome> runs, int exitCode) {
  std::vector<std::string> seeds;
  for (size_t seed = 0; seed < runs.size(); ++seed)
    if (runs[seed].exitCode == exitCode)
      seeds.push_back(std::to_string(seed));
  return seeds.size() == runs.size() ? "all seeds" : "seeds " + llvm::join(seeds, " ");
}

struct Score {
  unsigned all = 0, rejected = 0, undecided = 0;
};

class Pairs {
public:
  explicit Pairs(const TestOptions &options) : options(options) {}

  bool read(const std::string &folder) {
    if (std::string error; std::optional<std::string> text = readFile(folder + "/undecided.txt", error))
      for (llvm::StringRef line : llvm::split(*text, '\n')) {
        auto [name, reason] = line.trim().split(' ');
        if (!name.empty() && !name.starts_with("#") && !reason.trim().empty())
          undecided.insert(name.str());
      }
    for (const std::string &pair : entriesOf(folder))
      if (exists(pair + "/right.hlo") && options.wants(llvm::sys::path::filename(pair)))
        addPair(pair);
    return !trials.empty();
  }

  /// Runs everything and prints the table; true if what must be rejected is and what must agree does.
  bool run() {
    std::string error;
    std::optional<TemporaryFolder> made = TemporaryFolder::create("pairs", error);
    if (!made) {
      llvm::errs() << error << "\n";
      return false;
    }
    folder = &*made;
    std::vector<HlocJob> jobs;
    for (size_t i = 0; i < trials.size(); ++i)
      jobs.push_back(jobOf(i));
    runHloc(jobs, options.limits, [&](size_t i, llvm::ArrayRef<HlocOutcome> outcomes) { judge(i, outcomes); });
    return report();
  }

private:
  struct Program {
    std::string name, pair, file;
    bool right = false;
  };

  void addPair(const std::string &pair) {
    std::string name = llvm::sys::path::filename(pair).str();
    bool ofPtx = exists(pair + "/right.ptx");
    trials.push_back({name + "/right", pair, pair + (ofPtx ? "/right.ptx" : "/right.hlo"), true});
    for (const std::string &file : entriesOf(pair)) {
      llvm::StringRef entry = llvm::sys::path::filename(file);
      if (entry.starts_with("wrong") && (entry.ends_with(".hlo") || entry.ends_with(".ptx")))
        trials.push_back({name + "/" + llvm::sys::path::stem(file).str(), pair, file, false});
    }
  }

  HlocJob jobOf(size_t index) const {
    const Program &program = trials[index];
    HlocJob job;
    CommandLine run{"hloc", "run", program.pair + "/right.hlo"};
    if (llvm::StringRef(program.file).ends_with(".ptx")) {
      std::string launch = baseOf(program.file) + ".json";
      run.push_back("--ptx=" + program.file);
      run.push_back("--launch=" + (exists(launch) ? launch : program.pair + "/right.json"));
    } else if (!program.right) {
      std::string ptx = folder->file(std::to_string(index) + ".ptx"), manifest = ptx + ".json";
      job.commands.push_back({"hloc", program.file, "-o", ptx, "--manifest=" + manifest});
      job.mustWork = 1;
      run.push_back("--ptx=" + ptx);
      run.push_back("--manifest=" + manifest);
    }
    for (unsigned seed = 0; seed < options.seeds; ++seed) {
      job.commands.push_back(run);
      job.commands.back().push_back("--seed=" + std::to_string(seed));
    }
    return job;
  }

  /// The first word of the pair's name, `rounding` of `rounding-bf16-ties`; the folder of pairs where there is no
  /// other.
  static std::string categoryOf(const Program &program) {
    auto [first, rest] = llvm::sys::path::filename(program.pair).split('-');
    return (rest.empty() ? llvm::sys::path::filename(llvm::sys::path::parent_path(program.pair)) : first).str();
  }

  void judge(size_t index, llvm::ArrayRef<HlocOutcome> outcomes) {
    const Program &program = trials[index];
    llvm::ArrayRef<HlocOutcome> runs = outcomes.take_back(options.seeds);
    for (const HlocOutcome &outcome : outcomes) {
      bool compiles = outcomes.size() > runs.size() && &outcome == outcomes.begin();
      if (outcome.exitCode == 0 || (outcome.exitCode == 4 && !compiles))
        continue;
      complain(program.name, fmt::format("exit code {}: {}", outcome.exitCode, outcome.firstError));
      return;
    }
    const HlocOutcome *odd = llvm::find_if(runs, [&](auto &run) { return run.exitCode == (program.right ? 4 : 0); });
    if (program.right) {
      ++numRight;
      if (odd != runs.end())
        complain(program.name, fmt::format("is right, but rejected for {}: {}", seedsWith(runs, 4), odd->firstError));
      return;
    }
    Score &score = scores[categoryOf(program)];
    ++score.all;
    score.rejected += odd == runs.end();
    if (odd == runs.end() && undecided.count(program.name))
      complain(program.name, "is listed as undecided, but rejected for every seed");
    if (odd == runs.end())
      return;
    llvm::outs() << fmt::format("accepted: {} for {}\n", program.name, seedsWith(runs, 0));
    score.undecided += undecided.count(program.name);
    failed |= !undecided.count(program.name);
  }

  void complain(const std::string &name, const std::string &what) {
    llvm::outs() << "FAIL " << name << ": " << what << "\n";
    failed = true;
  }

  bool report() {
    Score sum;
    for (const auto &[category, score] : scores) {
      llvm::outs() << fmt::format("{:<14} {:>4} wrong {:>4} rejected {:>3} undecided\n", category, score.all,
                                  score.rejected, score.undecided);
      sum.all += score.all, sum.rejected += score.rejected, sum.undecided += score.undecided;
    }
    if (options.only.empty())
      for (const std::string &name : undecided)
        if (llvm::none_of(trials, [&](const Program &program) { return program.name == name; }))
          complain(name, "is listed as undecided, but does not exist");
    llvm::outs() << fmt::format("{} right programs; {} of {} wrong ones rejected for all of {} seeds ({:.1f} %), {} "
                                "cannot be told apart\n",
                                numRight, sum.rejected, sum.all, options.seeds,
                                100.0 * sum.rejected / std::max(1u, sum.all), sum.undecided);
    return !failed && sum.all > 0;
  }

  const TestOptions &options;
  const TemporaryFolder *folder = nullptr; ///< of what is compiled
  std::vector<Program> trials;
  std::set<std::string> undecided;
  std::map<std::string, Score> scores;
  unsigned numRight = 0;
  bool failed = false;
};

/// Programs that are right, run as they are: whatever does not agree or is not refused is a false alarm, or a bug.
class FalseAlarms {
public:
  explicit FalseAlarms(const TestOptions &options) : options(options) {
    for (const std::string &path : options.paths)
      addPrograms(path, programs);
  }

  bool run() {
    std::vector<HlocJob> jobs;
    for (const std::string &program : programs)
      jobs.push_back(jobOf(program));
    runHloc(jobs, options.limits,
            [&](size_t i, llvm::ArrayRef<HlocOutcome> runs) { judge(programs[i], jobs[i], runs); });
    llvm::outs() << fmt::format("{} programs, {} runs: {} agree, {} are refused, {} of {} programs raise an alarm\n",
                                programs.size(), numRuns, numAgreed, numRefused, numAlarms, programs.size());
    return numAlarms == 0 && numAgreed > 0;
  }

private:
  HlocJob jobOf(const std::string &program) const {
    CommandLine run{"hloc", "run", program};
    std::string base = baseOf(program);
    if (exists(base + ".ptx") && exists(base + ".json")) {
      run.push_back("--ptx=" + base + ".ptx");
      run.push_back("--launch=" + base + ".json");
    }
    HlocJob job;
    for (unsigned seed = 0; seed < options.seeds; ++seed) {
      job.commands.push_back(run);
      job.commands.back().push_back("--seed=" + std::to_string(seed));
    }
    std::string inputs = (llvm::sys::path::parent_path(program) + "/inputs.npz").str();
    if (exists(inputs)) {
      job.commands.push_back(run);
      job.commands.back().push_back("--inputs=" + inputs);
    }
    return job;
  }

  /// Some examples show an error: `// RUN-EXPECT: N`.
  static int expectedCode(const std::string &program) {
    std::string error;
    std::optional<std::string> text = readFile(program, error);
    int code = 0;
    llvm::StringRef rest = text ? llvm::StringRef(*text).split("// RUN-EXPECT: ").second : "";
    rest.consumeInteger(10, code);
    return code;
  }

  void judge(const std::string &program, const HlocJob &job, llvm::ArrayRef<HlocOutcome> runs) {
    bool alarm = false;
    int wanted = expectedCode(program);
    for (auto [command, run] : llvm::zip_equal(job.commands, runs)) {
      ++numRuns;
      numAgreed += run.exitCode == wanted;
      numRefused += run.exitCode == 3 && wanted != 3;
      if (run.exitCode == wanted || run.exitCode == 3)
        continue;
      alarm = true;
      llvm::outs() << fmt::format("ALARM {} {}: exit code {}: {}\n", program, command.back(), run.exitCode,
                                  run.firstError);
    }
    numAlarms += alarm;
  }

  const TestOptions &options;
  std::vector<std::string> programs;
  size_t numRuns = 0, numAgreed = 0, numRefused = 0, numAlarms = 0;
};

} // namespace

int main(int argc, char **argv) {
  TestOptions options(/*seeds=*/10, /*secondsPerRun=*/120);
  bool falseAlarms = false;
  options.addFlag("--false-alarms", falseAlarms);
  if (!options.parse("pairs-test", argc, argv))
    return 2;
  if (falseAlarms)
    return FalseAlarms(options).run() ? 0 : 1;
  Pairs pairs(options);
  for (const std::string &folder : options.paths)
    if (!pairs.read(folder)) {
      llvm::errs() << folder << ": no pairs\n";
      return 1;
    }
  return pairs.run() ? 0 : 1;
}
