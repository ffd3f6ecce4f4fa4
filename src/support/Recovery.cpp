#include "hloc/support/Recovery.h"

#include <csetjmp>
#include <utility>

namespace hloc {

namespace {

struct Place {
  std::jmp_buf jump;
  GivenUp why;
  Place *outer;
};

thread_local Place *innermost = nullptr;

} // namespace

std::optional<GivenUp> runRecoverably(llvm::function_ref<void()> work) {
  Place place{{}, {}, innermost};
  if (setjmp(place.jump) == 0) {
    innermost = &place;
    work();
    innermost = place.outer;
    return std::nullopt;
  }
  innermost = place.outer;
  return std::move(place.why);
}

bool isRecoverable() { return innermost != nullptr; }

void giveUp(GivenUp why) {
  if (!innermost)
    return;
  innermost->why = std::move(why);
  std::longjmp(innermost->jump, 1);
}

} // namespace hloc
