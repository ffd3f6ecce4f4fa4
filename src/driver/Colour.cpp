#include "Colour.h"

#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

namespace hloc {

static bool isForbidden() {
  const char *value = std::getenv("NO_COLOR");
  return value && *value;
}

bool useColour(ColourChoice choice) {
  if (choice == ColourChoice::Auto)
    return !isForbidden() && llvm::errs().has_colors();
  return choice == ColourChoice::Always;
}

void setLlvmColours() {
  if (isForbidden())
    llvm::WithColor::setAutoDetectFunction([](const llvm::raw_ostream &) { return false; });
}

} // namespace hloc
