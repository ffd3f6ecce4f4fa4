#include "SolverConfig.h"

#include "BackendConfig.h"

namespace hloc {

namespace {

SolverConfig readJson(const llvm::json::Object &object) {
  SolverConfig config;
  for (const auto &[key, value] : object)
    if (std::optional<llvm::StringRef> text = value.getAsString())
      config[key.str()] = text->str();
    else if (std::optional<bool> flag = value.getAsBoolean())
      config[key.str()] = *flag ? "true" : "false";
    else if (std::optional<int64_t> number = value.getAsInteger())
      config[key.str()] = std::to_string(*number);
  return config;
}

} // namespace

SolverConfig readSolverConfig(llvm::StringRef text) {
  const llvm::json::Object object = readBackendConfig(text);
  if (!object.empty())
    return readJson(object);
  SolverConfig config;
  llvm::StringRef rest = text.trim();
  if (!rest.consume_front("{") || !rest.consume_back("}"))
    return config;
  while (!rest.empty()) {
    auto [pair, others] = rest.split(',');
    rest = others;
    auto [key, value] = pair.split('=');
    value = value.split(':').first.trim();
    value.consume_front("\"");
    value.consume_back("\"");
    if (!key.trim().empty())
      config[key.trim().str()] = value.str();
  }
  return config;
}

} // namespace hloc
