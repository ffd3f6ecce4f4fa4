#include "passes/ValueTable.h"

#include "mlir/IR/OperationSupport.h"

using namespace hloc;
using namespace mlir;

static uint64_t mix(uint64_t hash) {
  hash *= 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

static uint64_t mix(const void *pointer) { return mix(uint64_t(reinterpret_cast<uintptr_t>(pointer))); }

/// Operands in any order have one hash, so that nobody has to know which ops are commutative. Regions do not count: few
/// ops that have some are looked up.
uint64_t ValueTable::hashOf(Operation *op) {
  uint64_t hash = mix(op->getName().getAsOpaquePointer());
  for (Value operand : op->getOperands())
    hash += mix(operand.getAsOpaquePointer());
  if (op->getNumResults() != 0)
    hash += 3 * mix(op->getResult(0).getType().getAsOpaquePointer());
  hash += 5 * mix(op->getRawDictionaryAttrs().getAsOpaquePointer());
  if (op->getPropertiesStorageSize() != 0)
    hash += 7 * mix(uint64_t(size_t(op->hashProperties())));
  return mix(hash);
}

Operation *ValueTable::lookup(Operation *op, uint64_t hash) const {
  if (buckets.empty())
    return nullptr;
  for (uint32_t i = buckets[hash & (buckets.size() - 1)]; i != 0; i = entries[i - 1].next) {
    const Entry &entry = entries[i - 1];
    if (entry.hash == hash && (entry.op == op || OperationEquivalence::isEquivalentTo(
                                                     entry.op, op, OperationEquivalence::Flags::IgnoreLocations)))
      return entry.op;
  }
  return nullptr;
}

void ValueTable::insert(Operation *op, uint64_t hash) {
  if (entries.size() >= buckets.size())
    grow();
  uint32_t &bucket = bucketOf(hash);
  entries.push_back({op, hash, bucket});
  bucket = uint32_t(entries.size());
}

Operation *ValueTable::lookupOrInsert(Operation *op) {
  const uint64_t hash = hashOf(op);
  Operation *known = lookup(op, hash);
  if (!known)
    insert(op, hash);
  return known;
}

void ValueTable::shrink(size_t size) {
  while (entries.size() > size) {
    bucketOf(entries.back().hash) = entries.back().next;
    entries.pop_back();
  }
}

void ValueTable::grow() {
  buckets.assign(std::max<size_t>(256, 2 * buckets.size()), 0);
  for (auto [i, entry] : llvm::enumerate(entries)) {
    uint32_t &bucket = bucketOf(entry.hash);
    entry.next = bucket;
    bucket = uint32_t(i + 1);
  }
}
