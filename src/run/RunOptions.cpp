#include "hloc/run/RunOptions.h"

namespace hloc {

using emulator::Schedule;

std::optional<Schedule> parseSchedule(llvm::StringRef text) {
  if (text == "ascending")
    return Schedule{Schedule::Order::Ascending};
  if (text == "reversed")
    return Schedule{Schedule::Order::Reversed};
  Schedule shuffled{Schedule::Order::Shuffled, 1};
  if (!text.consume_front("shuffled") ||
      (!text.empty() && (!text.consume_front(":") || text.getAsInteger(10, shuffled.seed))))
    return std::nullopt;
  return shuffled;
}

} // namespace hloc
