// How fast a kernel runs on the emulator: translation and execution apart, checks on and off.
//
//   hloc-emulator-bench gelu.ptx jit_gelu 12288 128 25165824 25165824     (grid, block, bytes of each buffer)
#include "hloc/emulator/Emulator.h"
#include "hloc/support/Diagnostics.h"
#include "hloc/support/Files.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

using namespace hloc;
using namespace hloc::emulator;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// bf16 or f32 values of ordinary size whatever the type: 16-bit words near 1.
static void fill(llvm::MutableArrayRef<uint8_t> bytes) {
  uint32_t state = 1;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    state = state * 1664525 + 1013904223;
    uint16_t word = uint16_t((state >> 16 & 0x81ff) | 0x3e00);
    std::memcpy(&bytes[i], &word, 2);
  }
}

static bool measure(const std::string &text, int argc, char **argv, bool checks) {
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>(argv[1], text));
  EmulatorOptions options;
  options.checkBounds = options.checkUninit = options.checkRaces = options.checkDivergence = checks;
  double start = now();
  auto emulator = Emulator::load(diagnostics, options);
  double loaded = now() - start;
  LaunchRequest request{argv[2], {1, 1, 1}, {uint32_t(std::atoll(argv[4])), 1, 1}, 0, {}};
  for (int i = 5; emulator && i < argc; ++i) {
    uint64_t bytes = uint64_t(std::atoll(argv[i]));
    BufferId id = emulator->allocate("b" + std::to_string(i - 5), bytes, Emulator::Contents::Written);
    fill(emulator->bytes(id));
    request.arguments.push_back(BufferArgument{id, 0, bytes, true});
  }
  double first = 0, best = 1e9;
  for (int repeat = 0; emulator && repeat < 6; ++repeat) {
    start = now();
    bool ok = llvm::succeeded(emulator->launch(request, diagnostics));
    double seconds = now() - start;
    if (!ok)
      break;
    (repeat ? best : first) = repeat ? std::min(best, seconds) : seconds;
    request.grid.x = uint32_t(std::atoll(argv[3]));
  }
  diagnostics.print(llvm::errs(), false);
  if (!emulator)
    return false;
  llvm::outs() << "checks " << (checks ? "on " : "off") << ": load " << llvm::format("%.1f", loaded * 1e3)
               << " ms, first block with translation " << llvm::format("%.1f", first * 1e3) << " ms, grid "
               << llvm::format("%.1f", best * 1e3) << " ms\n";
  return !diagnostics.hasErrors();
}

int main(int argc, char **argv) {
  if (argc < 6) {
    llvm::errs() << "usage: hloc-emulator-bench FILE.ptx KERNEL GRID BLOCK BYTES...\n";
    return 2;
  }
  std::string error;
  auto text = readFile(argv[1], error);
  if (!text) {
    llvm::errs() << error << "\n";
    return 1;
  }
  return measure(*text, argc, argv, false) && measure(*text, argc, argv, true) ? 0 : 1;
}
