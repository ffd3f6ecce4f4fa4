#pragma once
// The text of input_output_alias and buffer_donor.

#include "hloc/hlo/HloModule.h"

#include "llvm/ADT/StringRef.h"

namespace hloc {

/// A part of an entry parameter: `(1, {0})`.
struct ParameterPart {
  int64_t number = 0;
  llvm::SmallVector<int64_t, 2> path;
};

/// Reads the text of input_output_alias and buffer_donor.
class AliasReader {
public:
  explicit AliasReader(llvm::StringRef text) : rest(text) {}

  bool eat(llvm::StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  bool integer(int64_t &value) {
    rest = rest.ltrim();
    return !rest.consumeInteger(10, value);
  }
  /// `{0,1}`
  bool path(llvm::SmallVectorImpl<int64_t> &out) {
    if (!eat("{"))
      return false;
    while (!eat("}")) {
      int64_t value = 0;
      if ((!out.empty() && !eat(",")) || !integer(value))
        return false;
      out.push_back(value);
    }
    return true;
  }
  /// `(1, {0})`, `(1, {0}, may-alias)`
  bool parameterPart(ParameterPart &out) {
    if (!eat("(") || !integer(out.number))
      return false;
    if (eat(",") && !path(out.path))
      return false;
    if (eat(",") && !eat("may-alias") && !eat("must-alias"))
      return false;
    return eat(")");
  }

private:
  llvm::StringRef rest;
};

} // namespace hloc
