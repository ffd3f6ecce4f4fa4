#include "Interrupt.h"

#include <atomic>

namespace hloc {

static std::atomic<bool> interrupted = false;

InterruptScope::InterruptScope() {
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous);
}

InterruptScope::~InterruptScope() { sigaction(SIGINT, &previous, nullptr); }

bool wasInterrupted() { return interrupted; }

} // namespace hloc
