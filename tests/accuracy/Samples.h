#pragma once
// Operands to measure at, chunk by chunk: all there are, or a dense sample with what is known to be hard.

#include "Kernel.h"

namespace hloc::accuracy {

enum class Effort {
  Quick, ///< for a test
  Dense,
  All ///< every operand of unary functions of f32
};

class Samples {
public:
  Samples(const Instruction &instruction, Effort effort);

  uint64_t numChunks() const { return chunks; }
  /// Elements of each chunk that are worth judging: the others repeat some, or there is no time.
  size_t used() const { return usedOfChunk; }
  std::vector<Patterns> operands(uint64_t index) const;
  /// One sentence for the table.
  std::string describe() const;

private:
  uint64_t unary(uint64_t i) const;
  void binary(uint64_t i, uint64_t &x, uint64_t &y) const;
  void complexPair(uint64_t i, Patterns &x, Patterns &y) const;
  uint64_t nearSpecial(uint64_t i) const;
  uint64_t unaryDouble(uint64_t i) const;
  uint64_t nearTie(uint64_t i) const;
  uint64_t integer(uint64_t i) const;
  uint64_t encode(double value) const;

  Instruction instruction;
  Effort effort;
  FloatFormat format = {};
  unsigned bits = 0;
  uint64_t chunks = 1, specialChunks = 0;
  size_t usedOfChunk = chunk;
};

} // namespace hloc::accuracy
