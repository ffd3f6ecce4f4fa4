#pragma once
// How a wrong element comes about by the reference: the values that led to it, as data.
//
//   x[3, 5] = 2          parameter
//   half[] = 0.5         constant
//   mean[3] = 1.5        reduce, of 128 terms the largest: x[3, 7] 9, x[3, 2] -4, x[3, 1] 1
//   y[3, 5] = 0.5        subtract of x[3, 5] and mean[3]

#include <cstdint>
#include <string>
#include <vector>

namespace hloc {

/// An element of what an instruction is by the reference.
struct ChainValue {
  std::string name, opcode, type; ///< of the instruction; "f32[8,16]"
  std::vector<int64_t> index;
  std::string value;
  uint32_t line = 0;              ///< of the HLO; 0: unknown
  std::vector<unsigned> operands; ///< values before this one that it is made of
  int64_t numTerms = 0;           ///< of a reduction or product: how many elements, or products, are put together
  std::vector<std::string> terms; ///< the few that matter most; the first is followed
  std::string end;                ///< why what it is made of is not shown, or not all of it
};

struct ValueChain {
  std::string step;           ///< the fusion that is wrong; empty: the module was compared as a whole
  std::vector<int64_t> leaf;  ///< of the result that is wrong: tuple index
  std::vector<int64_t> index; ///< the first element that is
  std::string expected, actual, admissible;
  std::vector<ChainValue> values; ///< operands before users; the last is the element itself
  std::string missing;            ///< why there are no values
};

} // namespace hloc
