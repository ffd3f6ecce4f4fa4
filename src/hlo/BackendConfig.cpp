#include "BackendConfig.h"

namespace hloc {

llvm::json::Object readBackendConfig(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {};
  }
  llvm::json::Object *object = parsed->getAsObject();
  return object ? std::move(*object) : llvm::json::Object();
}

} // namespace hloc
