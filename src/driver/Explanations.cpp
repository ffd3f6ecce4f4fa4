#include "Explanations.h"

#include "fmt/format.h"

namespace hloc {
namespace {

std::string savings(const FusionDecision &decision) {
  if (decision.seconds == 0 && decision.bytes == 0)
    return "";
  const double mebibytes = decision.bytes / (1 << 20), microseconds = decision.seconds * 1e6;
  auto amount = [](double value, const char *unit) { return fmt::format("{:.2f} {}", value, unit); };
  if (decision.fused)
    return fmt::format("; saves {}, {}", amount(mebibytes, "MiB"), amount(microseconds, "us"));
  return microseconds < 0 ? fmt::format("; would take {} more", amount(-microseconds, "us"))
                          : fmt::format("; would save {}", amount(microseconds, "us"));
}

} // namespace

std::string printExplanation(const FusionExplanation &explanation, llvm::StringRef name) {
  if (explanation.decisions.empty() && explanation.kernels.empty())
    return "nothing was decided: there are fusions already, which --fusion=redo makes anew, or nothing to fuse\n";
  name.consume_front("%");
  std::string text;
  for (const FusionDecision &decision : explanation.decisions)
    if (name == "." || name == decision.producer || name == decision.user)
      text += fmt::format("{} -> {}  {}{}{}{}\n", decision.producer, decision.user, decision.fused ? "fused" : "stored",
                          decision.reason.empty() ? "" : "  ", decision.reason, savings(decision));
  for (const FormedKernel &kernel : explanation.kernels)
    if (name == "." || name == kernel.fusion)
      text += fmt::format("kernel {}  {}, {:.2f} us, {:.2f} MiB\n", kernel.fusion, kernel.hero.str(),
                          kernel.seconds * 1e6, kernel.bytes / (1 << 20));
  return text.empty() ? fmt::format("nothing was decided about `{}`\n", name.str()) : text;
}

} // namespace hloc
