#pragma once
// ValueTable: ops by what they compute (kind, attributes, operands, regions), in scopes as blocks nest.
//
//   ValueTable::Scope scope(table);        // what is inserted from here on is forgotten with `scope`
//   table.lookup(op), table.insert(op)     // the op that computes the same, the one of the innermost scope first

#include "mlir/IR/Operation.h"

#include <vector>

namespace hloc {

/// MLIR's own (OperationEquivalence in a ScopedHashTable) hashes an op four times, each time with its types, and each
/// hash takes two thousand instructions: a twelfth of the time that attention takes to compile.
class ValueTable {
public:
  class Scope {
  public:
    explicit Scope(ValueTable &table) : table(table), size(table.entries.size()) {}
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope() { table.shrink(size); }

  private:
    ValueTable &table;
    size_t size;
  };

  mlir::Operation *lookup(mlir::Operation *op) const { return lookup(op, hashOf(op)); }
  void insert(mlir::Operation *op) { insert(op, hashOf(op)); }
  /// The op that computes the same; null and `op` is inserted if there is none.
  mlir::Operation *lookupOrInsert(mlir::Operation *op);

private:
  struct Entry {
    mlir::Operation *op;
    uint64_t hash;
    uint32_t next; ///< one more than the index of the entry before it in the same bucket; 0: none
  };

  static uint64_t hashOf(mlir::Operation *op);
  mlir::Operation *lookup(mlir::Operation *op, uint64_t hash) const;
  void insert(mlir::Operation *op, uint64_t hash);
  void shrink(size_t size);
  void grow();
  uint32_t &bucketOf(uint64_t hash) { return buckets[hash & (buckets.size() - 1)]; }

  std::vector<Entry> entries;    ///< in order: the last of a bucket is its first
  std::vector<uint32_t> buckets; ///< one more than the index of the first entry; a power of two many
};

} // namespace hloc
