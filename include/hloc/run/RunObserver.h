#pragma once
// Who wants to know how far a run is, and what it has found so far. An observer changes nothing. All calls come from
// the thread that runs.

#include "hloc/run/RunReport.h"
#include "hloc/support/WorkProgress.h"

namespace hloc {

class RunProgress {
public:
  virtual ~RunProgress() = default;
  virtual void beginStage(std::string name) {}
  /// What holds for the stages to come: "regime special (3 of 4)".
  virtual void setCircumstances(std::string text) {}
  /// To be counted by the stage that runs; null: nobody asks.
  virtual WorkProgress *work() { return nullptr; }
};

/// What RunReport will have, as it comes.
class RunObserver : public RunProgress {
public:
  virtual void shrunk(const std::map<int64_t, int64_t> &sizes) {}
  /// Every HLO pass has kept the results on so many sets of arguments.
  virtual void passesVerified(size_t numSets) {}
  virtual void noted(const std::string &note) {}
  /// Results have not been compared yet.
  virtual void executed(const ProgramRun &run) {}
};

} // namespace hloc
