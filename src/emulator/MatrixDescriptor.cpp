#include "MatrixDescriptor.h"

#include "fmt/format.h"

#include <algorithm>

namespace hloc::emulator {

MatrixDescriptor MatrixDescriptor::decode(uint64_t bits, bool alongRows) {
  constexpr uint64_t known = 0xc00e'3fff'3fff'3fff;
  constexpr uint32_t spans[] = {0, 128, 64, 32};
  auto bytesAt = [&](unsigned bit) { return uint32_t(bits >> bit & 0x3fff) * chunkBytes; };
  return {.start = bytesAt(0),
          .leading = bytesAt(16),
          .stride = bytesAt(32),
          .base = uint32_t(bits >> 49 & 7),
          .span = spans[bits >> 62],
          .alongRows = alongRows,
          .hasUnknownBits = (bits & ~known) != 0};
}

std::string MatrixDescriptor::problem(unsigned extent) const {
  if (hasUnknownBits)
    return "has bits set that mean nothing";
  // What one step of each distance goes over, and whether it is taken at all.
  const uint32_t atom = rowsOfAtom * (span ? span : chunkBytes);
  const unsigned ofSpan = span / chunkBytes, eights = extent / rowsOfAtom;
  const bool usesStride = alongRows ? span || eights > 1 : eights > 1,
             usesLeading = !span || (alongRows && eights > ofSpan);
  for (auto [name, bytes, isUsed] : {std::tuple("leading", leading, usesLeading), {"stride", stride, usesStride}}) {
    if (isUsed && bytes < atom)
      return fmt::format("has a {} byte offset of {}, where atoms of {} bytes lie", name, bytes, atom);
    if (isUsed && span && bytes % atom)
      return fmt::format("has a {} byte offset of {}, no multiple of the {} bytes after which the swizzle repeats",
                         name, bytes, atom);
  }
  if (!span)
    return base ? "has a base offset, but no swizzle" : "";
  const uint32_t inAtom = (start - base * 128) % atom;
  if (inAtom >= span)
    return fmt::format(
        "starts {} bytes behind where the swizzle of {} bytes begins to repeat, which its base offset {} "
        "does not say",
        inAtom, span, base);
  const uint32_t run = alongRows ? std::min(eights * chunkBytes, span) : depthBytes;
  if (inAtom + run > span)
    return fmt::format("starts {} bytes into rows of {}, of which it needs {}", inAtom, span, run);
  return "";
}

} // namespace hloc::emulator
