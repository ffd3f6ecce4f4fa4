// The libFuzzer program of one target, which FUZZ_TARGET names.
#include "fuzz/Targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const hloc::FuzzTarget *target = hloc::findFuzzTarget(FUZZ_TARGET);
  target->run(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  return 0;
}
