#pragma once
// What readers of custom calls have in common: the first thing that does not fit is said, and nothing is asked after
// it.

#include "hloc/hlo/HloInstruction.h"

#include <optional>
#include <string>

namespace hloc {

class CallReader {
protected:
  /// `why`: empty; what is wrong in the end.
  CallReader(const HloInstruction &call, std::string &why) : call(call), why(why) { why.clear(); }

  std::nullopt_t failed(const std::string &reason) {
    if (why.empty())
      why = reason;
    return std::nullopt;
  }

  void fit(const Shape &given, const Shape &wanted, const std::string &what) {
    if (!given.isArray() || given.elementType() != wanted.elementType() || !given.sameDims(wanted))
      failed(what + " is " + given.toString(false) + ", where " + wanted.toString(false) + " is expected");
  }

  const HloInstruction &call;
  std::string &why;
};

} // namespace hloc
