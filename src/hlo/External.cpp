#include "hloc/hlo/External.h"

#include "ReplicaGroups.h"
#include "hloc/hlo/AttentionCall.h"
#include "hloc/hlo/Printer.h"
#include "hloc/hlo/SolverCall.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

bool takes(Opcode opcode, AttributeKey key) {
  return llvm::any_of(attributeSpecs(opcode), [&](const AttributeSpec &spec) { return spec.key == key; });
}

/// Does a group consist of replicas, of partitions, of pairs of both, or of devices numbered through both?
CollectiveMode modeOf(const HloInstruction &collective) {
  if (collective.has(AttributeKey::Mode))
    return collective.enumOr(AttributeKey::Mode, CollectiveMode::CrossReplica);
  if (!collective.has(AttributeKey::ChannelId))
    return CollectiveMode::CrossReplica;
  if (collective.flag(AttributeKey::UseGlobalDeviceIds))
    return CollectiveMode::FlattenedId;
  // Of those that have no use_global_device_ids a channel means partitions.
  return takes(collective.opcode(), AttributeKey::UseGlobalDeviceIds) ? CollectiveMode::CrossReplicaAndPartition
                                                                      : CollectiveMode::CrossPartition;
}

/// What begins the names of calls that jax makes where it compiles for a CPU alone.
constexpr llvm::StringLiteral cpuLibraries[] = {"lapack_", "blas_", "cpu_", "ducc_", "__onednn$", "__ynn$"};

/// Every device sends to itself.
bool sendsToItself(const HloInstruction &permute, int64_t numDevices) {
  const auto *pairs = permute.find(AttributeKey::SourceTargetPairs);
  const auto *lists = pairs ? std::get_if<llvm::ArrayRef<llvm::ArrayRef<int64_t>>>(pairs) : nullptr;
  return lists && int64_t(lists->size()) == numDevices &&
         llvm::all_of(*lists, [](llvm::ArrayRef<int64_t> pair) { return pair.size() == 2 && pair[0] == pair[1]; });
}

} // namespace

int64_t headerCount(const HloModule &module, AttributeKey key) {
  const AttributeValue *value = module.find(key);
  return value ? std::max<int64_t>(1, std::get<int64_t>(*value)) : 1;
}

bool isAlone(const HloInstruction &collective) {
  const HloModule &module = collective.parent()->module();
  const int64_t replicas = headerCount(module, AttributeKey::ReplicaCount);
  const int64_t partitions = headerCount(module, AttributeKey::NumPartitions);
  const CollectiveMode mode = modeOf(collective);
  if (takes(collective.opcode(), AttributeKey::SourceTargetPairs))
    return collective.numOperands() == 1 &&
           sendsToItself(collective, mode == CollectiveMode::CrossReplica ? replicas : partitions);
  if (!takes(collective.opcode(), AttributeKey::ReplicaGroups) || collective.opcode() == Opcode::RaggedAllToAll)
    return false;
  std::string why;
  llvm::StringRef text = collective.string(AttributeKey::ReplicaGroups);
  std::optional<ReplicaGroups> groups = readReplicaGroups(text.empty() ? "{}" : text, why);
  if (!groups || (!groups->none && groups->size != 1))
    return false;
  switch (mode) {
  case CollectiveMode::CrossReplica:
    return !groups->none || replicas == 1;
  case CollectiveMode::CrossPartition:
    return !groups->none || partitions == 1;
  case CollectiveMode::CrossReplicaAndPartition: // groups of replicas, each with all partitions
    return (!groups->none || replicas == 1) && partitions == 1;
  case CollectiveMode::FlattenedId:
    return !groups->none || (replicas == 1 && partitions == 1);
  }
  return false;
}

bool isSilent(const HloInstruction &instr) {
  return instr.opcode() == Opcode::CollectivePermute && instr.numOperands() == 1 && instr.shape().isArray() &&
         instr.get<llvm::ArrayRef<llvm::ArrayRef<int64_t>>>(AttributeKey::SourceTargetPairs).empty();
}

bool isExternal(const HloInstruction &instr) {
  const Opcode opcode = instr.opcode();
  if (opcode == Opcode::ReplicaId)
    return headerCount(instr.parent()->module(), AttributeKey::ReplicaCount) != 1;
  if (opcode == Opcode::PartitionId)
    return headerCount(instr.parent()->module(), AttributeKey::NumPartitions) != 1;
  const bool isOutside =
      llvm::is_contained({OpcodeFamily::Host, OpcodeFamily::Collective, OpcodeFamily::Async}, family(opcode));
  return opcode == Opcode::CustomCall || (isOutside && opcode != Opcode::AfterAll);
}

std::string externalFunction(const HloInstruction &instr) {
  llvm::StringRef target = instr.string(AttributeKey::CustomCallTarget);
  return target.empty() ? text(instr.opcode()).str() : target.str();
}

bool isHostPython(llvm::StringRef target) { return target.contains("python") && target.contains("callback"); }

std::vector<std::string> waysAround(const HloInstruction &external) {
  const llvm::StringRef target = external.string(AttributeKey::CustomCallTarget);
  std::vector<std::string> ways;
  if (std::string why; !SolverCall::of(external, why) && !why.empty())
    ways.push_back("`" + target.str() + "` becomes loops where what it is given fits it: " + why);
  else if (!AttentionCall::of(external, why) && !why.empty())
    ways.push_back("`" + target.str() + "` becomes dots and a softmax where what it is given fits it: " + why);
  else if (isHostPython(target))
    ways.push_back("what it returns can be an argument of the function that is lowered instead");
  else if (llvm::any_of(cpuLibraries, [&](llvm::StringRef prefix) { return target.starts_with(prefix); }))
    ways.push_back("`" + target.str() +
                   "` is a library's for CPUs; what jax calls on a GPU may be known here: "
                   "`jax.jit(f).trace(*a).lower(lowering_platforms=(\"cuda\",)).as_text(\"hlo\")`");
  return ways;
}

std::string externalConfiguration(const HloInstruction &instr) {
  std::string configuration;
  llvm::raw_string_ostream os(configuration);
  PrintOptions options;
  options.full = false;
  printHlo(instr, os, options);
  for (const HloComputation *callee : instr.calledComputations()) {
    os << "\n" << callee->name() << " {\n";
    for (const HloInstruction *inner : callee->instructions()) {
      os << (inner == callee->root() ? "  ROOT " : "  ");
      printHlo(*inner, os, options);
      os << "\n";
    }
    os << "}";
  }
  return configuration;
}

} // namespace hloc
