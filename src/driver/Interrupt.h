#pragma once
// SIGINT as a wish to come to an end: what was found so far is worth having.

#include <csignal>

namespace hloc {

/// As long as it lives, the first SIGINT is noted, and the second ends the process as usual.
class InterruptScope {
public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

private:
  struct sigaction previous;
};

bool wasInterrupted();

} // namespace hloc
