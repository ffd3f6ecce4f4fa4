#include "hloc/fusion/PlanContext.h"

#include "fmt/format.h"

#include "mlir/IR/MLIRContext.h"

namespace hloc {

static constexpr llvm::StringLiteral suffixes[] = {"", "-groups", "-ring", "-ring2"};

std::string TileSizes::toString() const {
  return fmt::format("{}x{}x{}/{}{}", rows, columns, depth, stages, suffixes[unsigned(by)].str());
}

std::string TileSizes::list(llvm::ArrayRef<TileSizes> tiles) {
  std::string text;
  for (const TileSizes &tile : tiles)
    text += (text.empty() ? "" : ", ") + tile.toString();
  return text;
}

std::optional<TileSizes> TileSizes::parse(llvm::StringRef text) {
  TileSizes choice;
  for (By by : {By::Groups, By::Ring, By::RingOfTwo})
    if (text.ends_with(suffixes[unsigned(by)]))
      choice.by = by;
  text.consume_back(suffixes[unsigned(choice.by)]);
  auto [sizes, stages] = text.split('/');
  auto [rows, rest] = sizes.split('x');
  auto [columns, depth] = rest.split('x');
  auto isNumber = [](llvm::StringRef part, int64_t &number) {
    constexpr int64_t most = 1 << 20;
    return !part.getAsInteger(10, number) && number > 0 && number <= most;
  };
  if (!isNumber(rows, choice.rows) || !isNumber(columns, choice.columns) || !isNumber(depth, choice.depth) ||
      !isNumber(stages, choice.stages))
    return std::nullopt;
  return choice;
}

PlanContext::PlanContext(mlir::MLIRContext *given) : context(given) {}

PlanContext::~PlanContext() = default;

mlir::MLIRContext *PlanContext::mlir() {
  if (!context) {
    own = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    context = own.get();
  }
  return context;
}

} // namespace hloc
