#include "hloc/compiler/StageLine.h"

namespace hloc {

static constexpr llvm::StringLiteral mark = " hloc stage: after ", forTarget = ", for ";

std::string printStageLine(const StageLine &line, llvm::StringRef comment) {
  return (comment + mark + line.after + forTarget + line.target + "\n").str();
}

std::optional<StageLine> parseStageLine(llvm::StringRef text, llvm::StringRef comment) {
  llvm::StringRef line = text.split('\n').first.rtrim('\r');
  if (!line.consume_front(comment) || !line.consume_front(mark))
    return std::nullopt;
  auto [after, target] = line.split(forTarget);
  return StageLine{after.str(), target.str()};
}

} // namespace hloc
