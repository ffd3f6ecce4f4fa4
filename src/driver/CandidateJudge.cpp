#include "CandidateJudge.h"

#include "Interrupt.h"
#include "Timeout.h"

#include "hloc/support/Parallel.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// How long the input itself may take, and, of one that takes for ever, a candidate.
constexpr double secondsOfInput = 600, secondsOfHang = 15;

bool isTimeLimit(const WhileCondition &condition) { return condition.kind() == WhileCondition::Kind::TimeLimit; }

} // namespace

CandidateJudge::CandidateJudge(const ReduceOptions &options, const TemporaryFolder &folder)
    : options(options), folder(folder), numAtOnce(numWorkers(options.jobs)), limit(secondsOfInput) {
  for (const std::string &text : options.conditions)
    conditions.push_back(WhileCondition::parse(text));
  if (options.timeLimit > 0)
    deadline = steadySeconds() + options.timeLimit;
}

bool CandidateJudge::begin(const std::string &text, std::string &refusal) {
  bool hangs = llvm::any_of(conditions, isTimeLimit);
  limit = options.timeout > 0 ? options.timeout : hangs ? secondsOfHang : secondsOfInput;
  if (conditions.empty()) {
    Ending ending = runProgram(write(text, 0), limit);
    if (ending.exited(0) || ending.kind == Ending::Kind::NotStarted) {
      refusal = "nothing is wrong with the input: `hloc run` of it " + ending.describe();
      return false;
    }
    conditions.push_back(WhileCondition::of(ending));
    hangs = ending.kind == Ending::Kind::TimeLimit;
    tighten(ending);
  }
  if (hangs)
    bytesOfInput = text.size();
  return true;
}

std::string CandidateJudge::refusal(const std::string &text) const {
  if (!needsProgram())
    return "the input does not do it: " + description();
  return "the input does not do it (" + description() + "): `hloc run` of it " +
         runProgram(write(text, 0), secondsOfInput).describe();
}

bool CandidateJudge::isOver() const { return wasInterrupted() || (deadline > 0 && steadySeconds() > deadline); }

std::optional<size_t> CandidateJudge::firstOf(llvm::ArrayRef<std::string> texts) {
  std::vector<char> does(texts.size(), false);
  std::vector<Ending> endings(texts.size());
  runInParallel(texts.size(), numAtOnce, [&](size_t i) {
    const std::string file = write(texts[i], i);
    if (needsProgram())
      endings[i] = runProgram(file, limitFor(texts[i]));
    does[i] = holds(endings[i], file);
  });
  auto first = llvm::find(does, true);
  // What was killed with us, or for us, has not done it by itself.
  if (first == does.end() || isOver())
    return std::nullopt;
  tighten(endings[size_t(first - does.begin())]);
  return size_t(first - does.begin());
}

bool CandidateJudge::stillHangs(const std::string &text) const {
  return !bytesOfInput || wasInterrupted() || holds(runProgram(write(text, 0), limit), write(text, 0));
}

std::string CandidateJudge::description() const {
  std::string all;
  for (const WhileCondition &condition : conditions)
    all += (all.empty() ? "" : ", ") + condition.text();
  return all;
}

/// Smaller ones take less. One that does not is no better than one that does something else.
void CandidateJudge::tighten(const Ending &ending) {
  if (options.timeout <= 0 && !bytesOfInput && ending.kind != Ending::Kind::TimeLimit &&
      ending.kind != Ending::Kind::NotStarted)
    limit = std::min(limit, 10 + 5 * ending.seconds);
}

/// No candidate outlives the search.
double CandidateJudge::secondsLeft(double seconds) const {
  constexpr double least = 0.1;
  return deadline > 0 ? std::max(least, std::min(seconds, deadline - steadySeconds())) : seconds;
}

bool CandidateJudge::needsProgram() const {
  return llvm::any_of(
      conditions, [](const WhileCondition &condition) { return condition.kind() != WhileCondition::Kind::Command; });
}

/// Most of the time that a hang is waited for is lost: a module of few instructions is soon known to hang.
double CandidateJudge::limitFor(const std::string &text) const {
  constexpr double least = 2;
  if (!bytesOfInput || limit < least)
    return limit;
  return least + (limit - least) * std::min(1.0, double(text.size()) / double(bytesOfInput));
}

std::string CandidateJudge::write(const std::string &text, size_t number) const {
  std::string error, file = folder.file(fmt::format("candidate-{}{}", number, options.isPtx ? ".ptx" : ".hlo"));
  (void)writeFile(file, text, error); // one that is not there does nothing
  return file;
}

Ending CandidateJudge::runProgram(const std::string &file, double seconds) const {
  std::vector<std::string> arguments = {"run"};
  if (options.isPtx)
    arguments.insert(arguments.end(), {options.input, "--ptx=" + file});
  else
    arguments.push_back(file);
  if (numAtOnce > 1 && llvm::none_of(options.arguments, [](llvm::StringRef one) {
        return one.starts_with("-j") || one.starts_with("--jobs");
      }))
    arguments.push_back("-j1");
  llvm::append_range(arguments, options.arguments);
  return children.run(arguments, secondsLeft(seconds));
}

bool CandidateJudge::holds(const Ending &ending, const std::string &file) const {
  return llvm::all_of(conditions, [&](const WhileCondition &condition) {
    if (condition.kind() != WhileCondition::Kind::Command)
      return condition.holds(ending);
    return Children::runCommand(condition.commandFor(file), secondsLeft(limit)).exited(0);
  });
}

} // namespace hloc
