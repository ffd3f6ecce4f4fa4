#include "CollectiveRules.h"

#include "ReplicaGroups.h"
#include "hloc/hlo/External.h"

#include "llvm/Support/MathExtras.h"

namespace hloc {

namespace {

std::optional<ReplicaGroups> groupsOf(const InferenceContext &c, std::string &why) {
  const auto *text = c.get<llvm::StringRef>(AttributeKey::ReplicaGroups);
  return readReplicaGroups(text ? *text : "{}", why);
}

/// How many devices exchange data with each other: XLA's "subgroup size". Nothing if the module does not say, as those
/// do not that are made for any number.
std::optional<int64_t> participants(const InferenceContext &c) {
  std::string ignored;
  std::optional<ReplicaGroups> groups = groupsOf(c, ignored);
  if (!groups || c.numOperands() == 0 || (!groups->none && !groups->size))
    return std::nullopt;
  const HloModule &module = c.operandInstr(0).parent()->module();
  auto replicas = uint64_t(headerCount(module, AttributeKey::ReplicaCount));
  auto partitions = uint64_t(headerCount(module, AttributeKey::NumPartitions));
  bool channel = c.has(AttributeKey::ChannelId);
  // Ops that have no use_global_device_ids take a channel to mean partitions.
  bool amongPartitions = channel && c.opcode() == Opcode::AllToAll;
  bool flattened = c.flag(AttributeKey::UseGlobalDeviceIds, false);
  uint64_t size = !groups->none ? uint64_t(*groups->size) : amongPartitions ? partitions : replicas;
  if (channel && !amongPartitions && !flattened)
    size = llvm::SaturatingMultiply(size, partitions);
  if (groups->none && size == 1)
    return std::nullopt;
  return int64_t(std::min<uint64_t>(size, INT64_MAX));
}

} // namespace

bool checkGroups(InferenceContext &c) {
  std::string why;
  std::optional<ReplicaGroups> groups = groupsOf(c, why);
  if (groups && groups->none && c.flag(AttributeKey::UseGlobalDeviceIds, false)) {
    c.fail(VerifierRule::collective_c5, "use_global_device_ids=true needs replica_groups that are not empty");
    return false;
  }
  bool anySizes = c.opcode() == Opcode::AllReduce || c.opcode() == Opcode::AllReduceStart;
  if (groups && !anySizes && groups->differInSize)
    why = "groups differ in size";
  if (why.empty())
    return true;
  c.fail(VerifierRule::collective_c6, "replica_groups: " + why);
  return false;
}

bool checkShards(InferenceContext &c, int64_t whole, int64_t part) {
  std::optional<int64_t> devices = participants(c);
  // A group of one is taken for one whose size is not known yet, as XLA does.
  if (!devices || *devices == 1 || (part != 0 ? whole / part == *devices : whole == 0))
    return true;
  c.fail(VerifierRule::collective_c7, "a dimension of " + llvm::Twine(whole) + " is not " + llvm::Twine(*devices) +
                                          " shares of " + llvm::Twine(part));
  return false;
}

bool checkSplit(InferenceContext &c) {
  std::optional<int64_t> devices = participants(c);
  Dims dims = c.ints(AttributeKey::Dimensions);
  if (!devices || (dims.empty() ? c.numOperands() == *devices : c.operand(0).dim(dims[0]) % *devices == 0))
    return true;
  c.fail(VerifierRule::collective_c8, dims.empty() ? "there are " + llvm::Twine(c.numOperands()) + " operands for " +
                                                         llvm::Twine(*devices) + " devices"
                                                   : "a dimension of " + llvm::Twine(c.operand(0).dim(dims[0])) +
                                                         " is split among " + llvm::Twine(*devices) + " devices");
  return false;
}

} // namespace hloc
