#pragma once
// The judge of `hloc reduce`: candidates are run as children, several at a time, each for as long as the input lets
// expect.

#include "Options.h"
#include "While.h"

#include "hloc/reduce/Reduce.h"
#include "hloc/support/Files.h"

namespace hloc {

class CandidateJudge : public ReduceJudge {
public:
  CandidateJudge(const ReduceOptions &options, const TemporaryFolder &folder);

  /// What candidates have to do, if nobody has said so: what the input does. False if that is nothing, and `refusal`
  /// says so.
  bool begin(const std::string &text, std::string &refusal);
  /// Why not even the input does it.
  std::string refusal(const std::string &text) const;

  size_t width() const override { return numAtOnce; }
  bool isOver() const override;
  std::optional<size_t> firstOf(llvm::ArrayRef<std::string> texts) override;

  /// Of a module that takes for ever: does it, given as much time as the input was?
  bool stillHangs(const std::string &text) const;
  /// From now on every candidate is given that.
  void beSlow() { bytesOfInput = 0; }

  /// What candidates do, as --while says it.
  std::string description() const;
  /// Seconds that a candidate may take.
  double timeLimit() const { return limit; }

private:
  void tighten(const Ending &ending);
  bool needsProgram() const;
  double secondsLeft(double seconds) const;
  double limitFor(const std::string &text) const;
  std::string write(const std::string &text, size_t number) const;
  Ending runProgram(const std::string &file, double seconds) const;
  bool holds(const Ending &ending, const std::string &file) const;

  const ReduceOptions &options;
  const TemporaryFolder &folder;
  const unsigned numAtOnce;
  Children children;
  std::vector<WhileCondition> conditions;
  double limit, deadline = 0;
  size_t bytesOfInput = 0; ///< of one that takes for ever; 0: all candidates have the same time
};

} // namespace hloc
