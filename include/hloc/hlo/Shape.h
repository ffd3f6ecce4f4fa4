#pragma once
// Shape: the type of an HLO value. An immutable value that is cheap to copy (one counted pointer).
//
//   f32[2,3]{0,1}             array: element type, dimensions, layout (minor to major; default is descending)
//   (f32[8], (s32[], pred[])) tuple
//   token[]                   ordering only
//   f32[<=8,?]                bounded and unbounded dynamic dimensions (parsed and verified; ops on them are
//   unsupported)

#include "hloc/hlo/ElementType.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hloc {

/// Physical order of an array's dimensions, plus what a dump may say beyond it.
struct Layout {
  llvm::SmallVector<int64_t, 6> minorToMajor;
  /// The text after `:` that has no meaning for a GPU (tiles, sparse types, ...), verbatim, e.g. `T(8,128)`.
  std::string extras;
  unsigned elementSizeBits = 0; ///< `E(4)`; 0 if absent
  unsigned memorySpace = 0;     ///< `S(5)`; 0 is device memory
  bool operator==(const Layout &) const = default;
};

class Shape {
public:
  /// Size of an unbounded dynamic dimension (`?`).
  static constexpr int64_t unbounded = -1;

  Shape();                                                            ///< the empty tuple
  static Shape array(ElementType type, llvm::ArrayRef<int64_t> dims); ///< default layout
  static Shape array(ElementType type, llvm::ArrayRef<int64_t> dims, Layout layout, llvm::ArrayRef<bool> dynamic = {},
                     bool layoutGiven = true);
  static Shape scalar(ElementType type) { return array(type, {}); }
  static Shape tuple(llvm::ArrayRef<Shape> elements);
  static Shape token();
  static Shape opaque();
  /// `b(f32[4])`: an array that is a buffer. Parsed and printed, otherwise unsupported.
  static Shape buffer(const Shape &of);

  bool isTuple() const { return storage->kind == Kind::Tuple; }
  bool isArray() const { return storage->kind == Kind::Array; }
  bool isToken() const { return storage->kind == Kind::Token; }
  bool isOpaque() const { return storage->kind == Kind::Opaque; }
  bool isBuffer() const { return storage->kind == Kind::Buffer; }

  // Arrays (and the array inside a buffer).
  ElementType elementType() const { return storage->type; }
  llvm::ArrayRef<int64_t> dims() const { return storage->dims; }
  int64_t dim(unsigned i) const { return storage->dims[i]; }
  unsigned rank() const { return storage->dims.size(); }
  bool isScalar() const { return isArray() && storage->dims.empty(); }
  /// Product of the dimensions (bounds for bounded dynamic ones); 1 for scalars. The parser refuses shapes whose
  /// element count or byte size overflows int64.
  int64_t numElements() const { return storage->elements; }
  const Layout &layout() const { return storage->layout; }
  llvm::ArrayRef<int64_t> minorToMajor() const { return storage->layout.minorToMajor; }
  bool hasDefaultLayout() const;                            ///< minor-to-major is descending
  bool layoutGiven() const { return storage->layoutGiven; } ///< was written in the text
  bool isDynamic(unsigned i) const { return !storage->dynamic.empty() && storage->dynamic[i]; }
  bool hasDynamicDims() const { return storage->anyDynamic; }     ///< anywhere, tuples included
  bool hasUnboundedDims() const { return storage->anyUnbounded; } ///< likewise
  bool hasBuffer() const { return storage->anyBuffer; }           ///< likewise
  /// Bytes in device memory, sub-byte types packed; tuples: 0.
  int64_t byteSize() const;

  // Tuples.
  llvm::ArrayRef<Shape> elements() const { return storage->elementShapes; }
  const Shape &element(unsigned i) const { return storage->elementShapes[i]; }

  Shape withElementType(ElementType type) const;
  Shape withDims(llvm::ArrayRef<int64_t> dims) const; ///< default layout
  Shape withLayout(llvm::ArrayRef<int64_t> minorToMajor) const;
  Shape withDefaultLayout() const; ///< recursive

  /// Same tree, element types, dimensions and bounds; layouts and dynamic marks ignored.
  bool compatible(const Shape &other) const;
  /// compatible, but float element types may differ in precision.
  bool compatibleIgnoringFloatPrecision(const Shape &other) const;
  /// Same dimensions (arrays only), element types ignored.
  bool sameDims(const Shape &other) const { return dims() == other.dims(); }
  /// Everything, layouts included.
  bool operator==(const Shape &other) const;

  /// `f32[2,3]{1,0}`; layouts omitted for scalars, and everywhere if `withLayout` is false.
  std::string toString(bool withLayout = true) const;

  /// The non-tuple leaves in order with their tuple index path; an array is its own single leaf with an empty path.
  struct Leaf;
  llvm::SmallVector<Leaf, 4> leaves() const;

  const void *identity() const { return storage.get(); } ///< equal pointers: equal shapes

private:
  enum class Kind : uint8_t { Array, Tuple, Token, Opaque, Buffer };
  struct Storage : llvm::ThreadSafeRefCountedBase<Storage> {
    Kind kind = Kind::Tuple;
    ElementType type = ElementType::Token;
    bool layoutGiven = false;
    bool anyDynamic = false, anyUnbounded = false, anyBuffer = false;
    int64_t elements = 0;
    llvm::SmallVector<int64_t, 6> dims;
    llvm::SmallVector<bool, 0> dynamic;
    Layout layout;
    std::vector<Shape> elementShapes;
  };
  explicit Shape(llvm::IntrusiveRefCntPtr<const Storage> storage) : storage(std::move(storage)) {}
  llvm::IntrusiveRefCntPtr<const Storage> storage;
};

struct Shape::Leaf {
  llvm::SmallVector<int64_t, 2> index;
  Shape shape;
};

/// Descending: the row-major layout of a rank.
llvm::SmallVector<int64_t, 6> defaultMinorToMajor(unsigned rank);

} // namespace hloc
