#pragma once
// How elements of tensors lie behind a pointer, and the loads and stores that reach them.
//
// Elements lie one after another in whole bytes (pred is i8; 6-bit floats take a byte each; complex is real,
// imaginary), except 4, 2 and 1 bit types, which are packed from the low bits: element k of i4 is nibble k % 2 of byte
// k / 2.

#include "hloc/dialect/AppliedMap.h"

#include "mlir/IR/Builders.h"

namespace hloc {

/// Element type as the program sees it and as memory holds it.
struct ElementStorage {
  explicit ElementStorage(mlir::Type element);

  bool isPacked() const { return bits < 8; }
  int64_t elementsPerByte() const { return 8 / bits; }

  mlir::Type element;
  mlir::Type memory; ///< integer, float or vector<2xfloat> of whole bytes; the packed integer for packed types
  unsigned bits;     ///< one element in memory
};

/// What is known about the memory behind a pointer.
struct BufferFacts {
  int64_t alignment = 0; ///< bytes; 0: only that of an element
  bool invariant = false;
};
BufferFacts factsOf(mlir::Value pointer);

/// `index` with the ops that compute it, simplified; its single result is the index.
xla_gpu::AppliedMap traceIndex(mlir::Value index);

/// Remembers what was traced, while no op that computes an index is erased.
class IndexTraces {
public:
  xla_gpu::AppliedMap of(mlir::Value index);

private:
  llvm::DenseMap<mlir::Value, xla_gpu::AppliedMap> known;
};

/// Emits accesses at the insertion point of `builder`. `index` counts elements.
class MemoryBuilder {
public:
  /// `traces` is what is known of other accesses in the same function.
  MemoryBuilder(mlir::OpBuilder &builder, mlir::Location loc, int64_t maxVectorBytes, IndexTraces *traces = nullptr)
      : builder(builder), loc(loc), maxVectorBytes(maxVectorBytes), traces(traces) {}

  mlir::Value load(mlir::Value pointer, mlir::Value index, mlir::Type element);
  /// Packed elements: an atomic update of the word around it, since another thread may own the rest of the byte.
  void store(mlir::Value value, mlir::Value pointer, mlir::Value index);

  /// As few accesses as `maxVectorBytes` and the alignment that is known of `pointer` and `index` allow.
  mlir::Value loadVector(mlir::Value pointer, mlir::Value index, mlir::VectorType type);
  void storeVector(mlir::Value vector, mlir::Value pointer, mlir::Value index);

  /// `pointer + index` for elements in whole bytes.
  mlir::Value address(mlir::Value pointer, mlir::Value index, mlir::Type memory);
  /// The same in steps, in a loop: what does not change in it first, constants last. The first leaves the loop, and
  /// addresses that differ by constants have all others in common. (For memory with addresses in registers alone.)
  mlir::Value addressInLoop(mlir::Value pointer, mlir::Value index, mlir::Type memory);
  /// So many times `bytes` behind it: one instruction where numbers are made wide when they are multiplied.
  mlir::Value addressOfMultiple(mlir::Value pointer, mlir::Value number, int64_t bytes);
  /// The word that holds packed element `index`, and where in it the element starts.
  std::pair<mlir::Value, mlir::Value> packedWord(mlir::Value pointer, mlir::Value index, const ElementStorage &storage,
                                                 unsigned wordBits = 32);

  /// Parts of `size` elements from `index` on that are aligned to their size: offset and size, at most `together`.
  llvm::SmallVector<std::pair<int64_t, int64_t>> alignedParts(mlir::Value pointer, const xla_gpu::AppliedMap &index,
                                                              int64_t size, mlir::Type element, int64_t together) const;
  /// `index + offset`.
  mlir::Value offsetIndex(const xla_gpu::AppliedMap &index, int64_t offset);

  /// Value of the program as it lies in memory, and back. Bits are kept.
  mlir::Value toMemory(mlir::Value value, const ElementStorage &storage);
  mlir::Value fromMemory(mlir::Value value, const ElementStorage &storage);

  /// Largest power of two that divides the byte address of element `index + offset`.
  int64_t alignmentOf(mlir::Value pointer, const xla_gpu::AppliedMap &index, int64_t offset,
                      const ElementStorage &storage) const;

private:
  struct Chunk {
    int64_t offset, size, alignment; ///< elements, elements, bytes
  };
  llvm::SmallVector<Chunk> split(mlir::Value pointer, const xla_gpu::AppliedMap &index, int64_t size,
                                 const ElementStorage &storage) const;
  llvm::SmallVector<mlir::Value> loadChunk(mlir::Value pointer, mlir::Value index, const Chunk &chunk,
                                           const ElementStorage &storage);
  void storeChunk(llvm::ArrayRef<mlir::Value> elements, mlir::Value pointer, mlir::Value index, const Chunk &chunk,
                  const ElementStorage &storage);

  xla_gpu::AppliedMap trace(mlir::Value index) const { return traces ? traces->of(index) : traceIndex(index); }
  int64_t alignmentOf(mlir::Value pointer, int64_t divisor, const ElementStorage &storage) const;

  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t maxVectorBytes;
  IndexTraces *traces;
};

} // namespace hloc
