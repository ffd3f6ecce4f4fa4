#pragma once
// Literal: the value of an array or tuple, on the host.
//
// Elements lie densely in logical row-major order whatever the layout, little-endian, each in hostBytes(type) bytes:
// pred and sub-byte types take one byte (s4 -3 is 0xFD, u4 13 is 0x0D, f4 patterns in the low bits), bf16/f8 their bit
// pattern, complex numbers (real, imaginary). Example: s32[2,3]{0,1} {{1,2,3},{4,5,6}} is the bytes of 1,2,3,4,5,6.

#include "hloc/hlo/Shape.h"

#include "llvm/ADT/ArrayRef.h"

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hloc {

class Literal {
public:
  Literal() = default; ///< the empty tuple
  /// Zero-filled. `shape` may be a tuple.
  explicit Literal(Shape shape);
  static Literal tuple(std::vector<Literal> elements);
  /// `{...}`: an array whose elements are not in the text. They read as zeros and take no memory, whatever the shape.
  static Literal elided(Shape shape);

  const Shape &shape() const { return literalShape; }
  bool isTuple() const { return literalShape.isTuple(); }
  int64_t numElements() const { return literalShape.numElements(); }

  /// Empty if the literal is elided.
  llvm::ArrayRef<uint8_t> bytes() const { return storage; }
  llvm::MutableArrayRef<uint8_t> mutableBytes() { return storage; }
  /// Typed view; T must have hostBytes(elementType) bytes.
  template <typename T> llvm::ArrayRef<T> data() const {
    return llvm::ArrayRef(reinterpret_cast<const T *>(storage.data()), storage.size() / sizeof(T));
  }
  template <typename T> llvm::MutableArrayRef<T> mutableData() {
    return llvm::MutableArrayRef(reinterpret_cast<T *>(storage.data()), storage.size() / sizeof(T));
  }

  llvm::ArrayRef<Literal> elements() const { return tupleElements; }
  llvm::MutableArrayRef<Literal> mutableElements() { return tupleElements; }
  const Literal &element(unsigned i) const { return tupleElements[i]; }

  bool isElided() const { return valuesUnknown; }

  // Element access by linear row-major index; slow paths for printing, tests and small loops.
  int64_t getInt(int64_t index) const;   ///< pred, signed (sign-extended), unsigned (zero-extended; u64 wraps)
  double getDouble(int64_t index) const; ///< any real type, exact except 64-bit integers
  std::complex<double> getComplex(int64_t index) const;
  uint64_t getBits(int64_t index) const;       ///< raw pattern of a real element
  void setInt(int64_t index, int64_t value);   ///< truncates to the width; pred: non-zero
  void setDouble(int64_t index, double value); ///< floats: rounds to nearest even
  void setComplex(int64_t index, std::complex<double> value);
  void setBits(int64_t index, uint64_t pattern);

  /// True if all elements have one bit pattern.
  bool isSplat() const;
  /// Same shape (layouts ignored) and bytes.
  bool operator==(const Literal &other) const;

private:
  Shape literalShape;
  std::vector<uint8_t> storage;
  std::vector<Literal> tupleElements;
  bool valuesUnknown = false;
};

/// Whether the bytes of a literal of this array shape are the bytes in device memory: default layout, whole bytes.
bool isDeviceOrder(const Shape &shape);
/// Bytes as in device memory: physical order by the shape's layout, sub-byte types packed low bits first. Arrays only.
std::vector<uint8_t> toDeviceBytes(const Literal &literal);
/// The same of an array of this shape, whose layout may be another.
std::vector<uint8_t> toDeviceBytes(const Literal &literal, const Shape &shape);
/// Inverse: `bytes` holds shape.byteSize() bytes.
Literal fromDeviceBytes(const Shape &shape, llvm::ArrayRef<uint8_t> bytes);

} // namespace hloc
