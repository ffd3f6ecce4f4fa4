#pragma once
// What no kernel of one device does: exchange with other devices and with the host, and code that only a name is known
// of. It stays between kernels as a step that whoever runs the module has to supply.
//
//   %g = f32[8] all-gather(%x), replica_groups={{0,1,2,3}}, dimensions={0}    external, function `all-gather`
//   %c = f32[8] custom-call(%x), custom_call_target="mine"                    external, function `mine`
//   %r = f32[8] all-reduce(%x), replica_groups={{0}}, to_apply=%add           external, but isAlone: it is %x

#include "hloc/hlo/HloModule.h"

namespace hloc {

/// Is it none of what kernels, copies and control flow do? Passes may have a meaning for it all the same: what is left
/// when they are through is a step. The number of this device is one where there are several.
bool isExternal(const HloInstruction &instr);

/// `all-gather`, or the target of a custom call.
std::string externalFunction(const HloInstruction &instr);
/// Is the target a Python function on the host, as jax.pure_callback and its kin print them?
bool isHostPython(llvm::StringRef target);
/// What the user may do instead of asking for it, a sentence each; see also --allow-external.
std::vector<std::string> waysAround(const HloInstruction &external);
/// All else the function has to know: the instruction without its metadata, and what it calls, as HLO text.
std::string externalConfiguration(const HloInstruction &instr);

/// Of a collective, starts of asynchronous ones included: is each device the only one of its group, so that it receives
/// what it sends? Groups are of replicas, partitions or both (`mode`, `channel_id`, `use_global_device_ids`).
bool isAlone(const HloInstruction &collective);

/// A collective-permute of an array in which no device sends anything: all receive zeros.
bool isSilent(const HloInstruction &instr);

/// `replica_count` or `num_partitions` of the module: 1 where the header does not say.
int64_t headerCount(const HloModule &module, AttributeKey key);

} // namespace hloc
