#pragma once
// How far a result is from the exact value, in units of the last place (ULPs) of its type: distances of neighbours in
// the binade of the exact value, smallest subnormals below the smallest normal number. 0.5 is correctly rounded; half a
// unit in the wrong direction, to the odd one of two numbers, is a little more.
//
// What rounds beyond the largest number counts as the next power of two (or the next number, for types that go on
// above theirs), so an overflow one unit too early is one unit wrong, and types that saturate have a last number.

#include "Functions.h"

#include "hloc/hlo/ElementType.h"

#include <vector>

namespace hloc::accuracy {

struct Verdict {
  enum class Kind {
    Normal,
    Subnormal, ///< the exact value is below the smallest normal number
    Special,   ///< NaN or infinity where there should be none, or the other way round
    ZeroSign,  ///< the exact value is a zero of the other sign
  };
  Kind kind = Kind::Normal;
  double ulps = 0;
};

class Judge {
public:
  /// Of a real type; for complex numbers that of their parts.
  explicit Judge(ElementType type);

  double decode(uint64_t pattern) const { return values.empty() ? slowDecode(pattern) : values[pattern]; }
  /// `exact` is right to a small fraction of a unit: for types of at most 32 bits.
  Verdict judge(double exact, uint64_t pattern) const;
  Verdict judge(const Real &exact, uint64_t pattern) const;
  /// Units of the larger part.
  Verdict judge(const ComplexReal &exact, uint64_t re, uint64_t im) const;

private:
  double slowDecode(uint64_t pattern) const;
  bool isRoundedToEven(double exact, double actual) const;
  template <typename T> Verdict judgeReal(const T &exact, uint64_t pattern) const;

  FloatFormat format;
  int smallestExponent, largestExponent;
  double largest, beyond; ///< finite; what stands for infinity
  std::vector<double> values;
};

} // namespace hloc::accuracy
