// Shuffles, votes, reductions across lanes; matrix fragments.
#include "Collective.h"

#include "hloc/support/Check.h"

#include "fmt/format.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hloc::emulator {

namespace {

const uint32_t *words(const void *vector) { return static_cast<const uint32_t *>(vector); }
uint32_t *words(void *vector) { return static_cast<uint32_t *>(vector); }

template <typename Visit> void forEachLane(uint32_t mask, Visit visit) {
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    visit(unsigned(llvm::countr_zero(rest)));
}

/// PTX ISA, shfl.sync: c holds the clamp in bits 0-4 and the segment mask in bits 8-12.
void shuffle(Warp &warp, const Decoded &at, uint32_t mask, const void *const *operands, void *const *results) {
  const uint32_t *a = words(operands[0]), *b = words(operands[1]), *c = words(operands[2]);
  uint32_t value[warpLanes];
  std::copy(a, a + warpLanes, value);
  bool pair = at.operands[0].kind == Source::Kind::Vector;
  ++warp.core->counters.shuffles;
  forEachLane(mask, [&](unsigned lane) {
    int source = int(b[lane] & 31), clamp = int(c[lane] & 31), segment = int(c[lane] >> 8 & 31), self = int(lane);
    int highest = (self & segment) | (clamp & ~segment), lowest = self & segment, from = 0;
    bool inside = false;
    switch (at.mode) {
    case Mode::Up:
      from = self - source;
      inside = from >= highest;
      break;
    case Mode::Down:
      from = self + source;
      inside = from <= highest;
      break;
    case Mode::Bfly:
      from = self ^ source;
      inside = from <= highest;
      break;
    default:
      from = lowest | (source & ~segment);
      inside = from <= highest;
      break;
    }
    if (!inside)
      from = self;
    if (inside && !(mask >> from & 1) && warp.core->launch.options.checkDivergence)
      reportFinding(warp, at, lane, FindingKind::InactiveShuffle,
                    fmt::format("shuffles from lane {}, which does not take part", from));
    words(results[0])[lane] = value[from];
    if (pair)
      words(results[0])[warpLanes + lane] = inside;
  });
}

void vote(const Decoded &at, uint32_t mask, const void *const *operands, void *const *results) {
  const uint32_t *predicate = words(operands[0]);
  uint32_t votes = 0;
  forEachLane(mask, [&](unsigned lane) { votes |= uint32_t(predicate[lane] != 0) << lane; });
  uint32_t result = at.mode == Mode::Ballot ? votes
                    : at.mode == Mode::Any  ? votes != 0
                    : at.mode == Mode::All  ? votes == mask
                                            : votes == mask || votes == 0;
  forEachLane(mask, [&](unsigned lane) { words(results[0])[lane] = result; });
}

void reduce(const Decoded &at, uint32_t mask, const void *const *operands, void *const *results) {
  const uint32_t *a = words(operands[0]);
  uint32_t result = 0;
  bool first = true, isSigned = at.type.isSigned();
  forEachLane(mask, [&](unsigned lane) {
    uint32_t v = a[lane];
    if (first)
      result = v;
    else if (at.mode == Mode::Add)
      result += v;
    else if (at.mode == Mode::And)
      result &= v;
    else if (at.mode == Mode::Or)
      result |= v;
    else if (at.mode == Mode::Xor)
      result ^= v;
    else {
      bool less = isSigned ? int32_t(v) < int32_t(result) : v < result;
      result = less == (at.mode == Mode::Min) ? v : result;
    }
    first = false;
  });
  forEachLane(mask, [&](unsigned lane) { words(results[0])[lane] = result; });
}

/// Lanes 8k .. 8k+7 hold the addresses of the rows of matrix k; thread i gets elements 2i and 2i+1 of each matrix of
/// eight rows of eight 16-bit elements.
void loadMatrix(Warp &warp, const Decoded &at, uint32_t mask, const void *const *operands, void *const *results) {
  bool narrow = at.operands[1].kind == Source::Kind::Register && at.operands[1].bits == 32;
  for (unsigned m = 0; m < at.count; ++m) {
    uint16_t rows[8][8] = {};
    for (unsigned r = 0; r < 8; ++r) {
      unsigned lane = m * 8 + r;
      uint64_t address = narrow ? words(operands[0])[lane] : static_cast<const uint64_t *>(operands[0])[lane];
      Place place = accessLane(warp, at, Space::Shared, lane, address, 16, Access::Read);
      if (place.data)
        std::memcpy(rows[r], place.data, 16);
    }
    forEachLane(mask, [&](unsigned lane) {
      unsigned row = lane / 4, column = lane % 4 * 2;
      uint32_t low = at.transposed ? rows[column][row] : rows[row][column];
      uint32_t high = at.transposed ? rows[column + 1][row] : rows[row][column + 1];
      words(results[0])[m * warpLanes + lane] = low | high << 16;
    });
  }
}

/// m16n8k16 of f16 or bf16 with f32 accumulation. Products are exact; their sum is formed in f64 and rounded once.
void multiplyMatrices(const Decoded &at, uint32_t mask, const void *const *operands, void *const *results) {
  SmallFormat format = at.from.kind == TypeClass::Bfloat ? bfloat : half;
  double a[16][16], b[16][8], c[16][8];
  const uint32_t *fragmentA = words(operands[0]), *fragmentB = words(operands[1]);
  const float *fragmentC = static_cast<const float *>(operands[2]);
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    unsigned group = lane / 4, inGroup = lane % 4;
    for (unsigned i = 0; i < 8; ++i) {
      unsigned row = group + (i / 2 % 2) * 8, column = inGroup * 2 + i % 2 + i / 4 * 8;
      a[row][column] = decode(fragmentA[i / 2 * warpLanes + lane] >> (16 * (i % 2)) & 0xffff, format);
    }
    for (unsigned i = 0; i < 4; ++i)
      b[inGroup * 2 + i % 2 + i / 2 * 8][group] =
          decode(fragmentB[i / 2 * warpLanes + lane] >> (16 * (i % 2)) & 0xffff, format);
    for (unsigned i = 0; i < 4; ++i)
      c[group + i / 2 * 8][inGroup * 2 + i % 2] = fragmentC[i * warpLanes + lane];
  }
  forEachLane(mask, [&](unsigned lane) {
    unsigned group = lane / 4, inGroup = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = group + i / 2 * 8, column = inGroup * 2 + i % 2;
      double sum = c[row][column];
      for (unsigned k = 0; k < 16; ++k)
        sum += a[row][k] * b[k][column];
      static_cast<float *>(results[0])[i * warpLanes + lane] = float(sum);
    }
  });
}

} // namespace

void runCollective(Warp &warp, const Decoded &at, uint32_t mask, const void *const *operands, void *const *results) {
  if (!mask)
    return;
  switch (at.opcode) {
  case Opcode::Shfl:
    machineWarpSync(&warp, &at, mask, words(operands[3]));
    return shuffle(warp, at, mask, operands, results);
  case Opcode::Vote:
    machineWarpSync(&warp, &at, mask, words(operands[1]));
    return vote(at, mask, operands, results);
  case Opcode::Redux:
    machineWarpSync(&warp, &at, mask, words(operands[1]));
    return reduce(at, mask, operands, results);
  case Opcode::Activemask:
    return forEachLane(mask, [&](unsigned lane) { words(results[0])[lane] = mask; });
  case Opcode::Ldmatrix:
    ++warp.epoch;
    return loadMatrix(warp, at, mask, operands, results);
  case Opcode::Mma:
    return multiplyMatrices(at, mask, operands, results);
  default:
    HLOC_UNREACHABLE("a collective without meaning");
  }
}

} // namespace hloc::emulator
