#include "hloc/hlo/ControlFlow.h"

#include "BackendConfig.h"

#include "llvm/Support/raw_ostream.h"

namespace hloc {

std::vector<HloComputation *> controlComputations(const HloModule &module) {
  return reachableComputations(module, isControlFlow);
}

std::optional<uint64_t> knownTripCount(const HloInstruction &loop) {
  const llvm::json::Object config = readBackendConfig(loop.string(AttributeKey::BackendConfig));
  const llvm::json::Object *known = config.getObject("known_trip_count");
  std::optional<llvm::StringRef> text = known ? known->getString("n") : std::nullopt;
  uint64_t count = 0;
  return text && !text->getAsInteger(10, count) ? std::optional(count) : std::nullopt;
}

std::string withTripCount(const HloInstruction &loop, uint64_t count) {
  llvm::json::Object config = readBackendConfig(loop.string(AttributeKey::BackendConfig));
  config["known_trip_count"] = llvm::json::Object{{"n", std::to_string(count)}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(config));
  return text;
}

} // namespace hloc
