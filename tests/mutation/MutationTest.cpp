// Breaks kernels on purpose and demands that running them fails: mutation-test KERNELS_FOLDER EQUIVALENT_FILE [per
// kernel]
//
// The score is killed / (all - explained); it must reach 95 %. EQUIVALENT_FILE explains survivors, one a line:
//   kernel:line:mutation   reason
// A row whose mutant is killed or no longer exists fails the test, so the file stays true.

#include "Mutators.h"
#include "Subject.h"

#include "hloc/support/Files.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>
#include <set>

using namespace hloc;
using namespace hloc::mutation;

namespace {

constexpr unsigned numSeeds = 3;
constexpr double wantedScore = 0.95;

struct Count {
  unsigned all = 0, killed = 0, explained = 0;
};

class Campaign {
public:
  explicit Campaign(size_t perKernel) : perKernel(perKernel) {}

  bool readExplanations(const std::string &file) {
    std::string error;
    std::optional<std::string> text = readFile(file, error);
    if (!text) {
      llvm::errs() << file << ": " << error << "\n";
      return false;
    }
    for (llvm::StringRef line : llvm::split(llvm::StringRef(*text), '\n')) {
      auto [key, reason] = line.trim().split(' ');
      if (!key.empty() && !key.starts_with("#") && !reason.trim().empty())
        explained.insert(key.str());
    }
    return true;
  }

  bool run(const std::string &hloFile) {
    std::unique_ptr<Subject> subject = Subject::open(hloFile, numSeeds);
    if (!subject)
      return false;
    for (const Mutant &mutant : choose(mutantsOf(subject->ptx())))
      judge(*subject, mutant);
    return true;
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
      if (!surviving.count(key))
        llvm::outs() << "explained, but killed or absent: " << key << "\n", stale = true;
    double score = double(sum.killed) / double(std::max(1u, sum.all - sum.explained));
    llvm::outs() << fmt::format("{} of {} mutants killed, {} explained: {:.1f} % of the rest\n", sum.killed, sum.all,
                                sum.explained, 100 * score);
    return score >= wantedScore && sum.all >= 200 && !stale;
  }

private:
  /// Every mutation gets its turn before any gets a second one; within a mutation, spread over the kernel.
  std::vector<Mutant> choose(std::vector<Mutant> all) const {
    if (all.size() <= perKernel)
      return all;
    std::map<std::string, std::vector<Mutant>> byMutation;
    for (Mutant &mutant : all)
      byMutation[mutant.mutation].push_back(std::move(mutant));
    std::vector<Mutant> chosen;
    size_t each = std::max<size_t>(1, perKernel / byMutation.size());
    for (auto &[mutation, mutants] : byMutation)
      for (size_t i = 0, n = std::min(each, mutants.size()); i < n; ++i)
        chosen.push_back(mutants[i * mutants.size() / n]);
    return chosen;
  }

  void judge(Subject &subject, const Mutant &mutant) {
    std::string symptom = subject.symptomOf(mutant.apply(subject.ptx()));
    std::string key = fmt::format("{}:{}:{}", subject.name(), mutant.line, mutant.mutation);
    Count &count = counts[mutant.mutation];
    ++count.all;
    if (!symptom.empty() && explains(mutant.mutation, symptom)) {
      ++count.killed;
      ++symptoms[symptom];
      return;
    }
    surviving.insert(key);
    if (explained.count(key))
      ++count.explained;
    else
      survivors.push_back(key + " " + (symptom.empty() ? "unnoticed" : "wrong symptom " + symptom) + ": " +
                          (mutant.replacement ? mutant.replacement->opcode() : "left out"));
  }

  size_t perKernel;
  std::map<std::string, Count> counts;
  std::map<std::string, unsigned> symptoms;
  std::vector<std::string> survivors;
  std::set<std::string> explained, surviving;
  bool stale = false;
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    llvm::errs() << "usage: mutation-test KERNELS_FOLDER EQUIVALENT_FILE [mutants per kernel]\n";
    return 2;
  }
  unsigned perKernel = 48;
  if (argc > 3 && llvm::StringRef(argv[3]).getAsInteger(10, perKernel))
    return 2;
  std::vector<std::string> files;
  std::error_code failed;
  for (llvm::sys::fs::directory_iterator it(argv[1], failed), end; it != end && !failed; it.increment(failed))
    if (llvm::StringRef(it->path()).ends_with(".hlo"))
      files.push_back(it->path());
  std::sort(files.begin(), files.end());
  Campaign campaign(perKernel);
  bool fine = campaign.readExplanations(argv[2]) && !files.empty();
  for (const std::string &file : files)
    fine &= campaign.run(file);
  return campaign.report() && fine ? 0 : 1;
}
