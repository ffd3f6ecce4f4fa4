// Kernels whose threads must be in order (tests/emulator/order_*.cu): those that are right are silent and give the same
// results in every schedule; each way to break them is found, by a check or because results depend on the schedule.
#include "hloc/emulator/Emulator.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>
#include <cstring>

using namespace hloc;
using namespace hloc::emulator;

namespace {

enum class Result { Out, Work };

struct Row {
  const char *file, *kernel;
  unsigned broken; ///< variants 1 to this one
  uint32_t grid, block;
  Result result = Result::Out;
};

constexpr Row rows[] = {
    {"order_block", "exchange", 1, 1, 128},
    {"order_block", "reuse", 1, 1, 128},
    {"order_block", "double_buffer", 1, 1, 128},
    {"order_block", "histogram", 3, 1, 128},
    {"order_block", "tree", 2, 1, 128},
    {"order_block", "scan_in_place", 1, 1, 128},
    {"order_block", "branch_barrier", 2, 1, 128},
    {"order_block", "broadcast", 2, 1, 128},
    {"order_block", "named", 2, 1, 128},
    {"order_block", "producer", 2, 1, 128},
    {"order_block", "warp_sums", 1, 1, 128},
    {"order_block", "shared_flag", 3, 1, 128},
    {"order_block", "async_copy", 3, 1, 128},
    {"order_block", "push", 2, 1, 128},
    {"order_block", "maximum", 1, 1, 128},
    {"order_block", "global_shift", 1, 1, 128},
    {"order_block", "tile", 1, 1, 128},
    {"order_block", "volatile_exchange", 1, 1, 128},
    {"order_warp", "lanes", 6, 1, 32},
    {"order_warp", "members", 2, 1, 32},
    {"order_warp", "small_tiles", 1, 1, 32},
    {"order_warp", "lanes_reuse", 1, 1, 32},
    {"order_warp", "warp_tree", 2, 1, 32},
    {"order_warp", "sort", 1, 1, 32},
    {"order_warp", "half_shuffle", 1, 1, 32},
    {"order_warp", "lanes_global", 1, 1, 32},
    {"order_warp", "matrix", 1, 1, 32},
    {"order_warp", "leader", 1, 1, 32},
    {"order_warp", "other_warp", 1, 1, 64},
    {"order_warp", "lane_sum", 1, 1, 32},
    {"order_grid", "last_block", 6, 12, 64},
    {"order_grid", "last_block_wide", 2, 12, 64},
    {"order_grid", "message", 6, 2, 64},
    {"order_grid", "fenced_message", 3, 2, 64},
    {"order_grid", "warp_message", 2, 2, 32},
    {"order_grid", "grid_barrier", 4, 16, 96},
    {"order_grid", "lock", 5, 9, 64, Result::Work},
    {"order_grid", "lane_lock", 1, 2, 48, Result::Work},
    {"order_grid", "block_scope", 1, 5, 64, Result::Work},
    {"order_grid", "chained_scan", 2, 8, 64},
    {"order_grid", "look_back", 1, 12, 1024},
    {"order_grid", "wait_for_nobody", 2, 2, 32},
    {"order_grid", "compare_and_swap", 3, 4, 32, Result::Work},
    {"order_grid", "work_queue", 1, 6, 64},
    {"order_grid", "tiles", 1, 6, 64},
    {"order_grid", "stencil", 1, 6, 64},
    {"order_grid", "global_histogram", 2, 6, 64, Result::Work},
    {"order_tiles", "last_warp", 6, 1, 64},
    {"order_tiles", "tell_ballot", 2, 1, 64},
    {"order_tiles", "tell_any", 2, 1, 64},
    {"order_tiles", "tell_sum", 2, 1, 64},
    {"order_tiles", "tell_match", 2, 1, 64},
    {"order_tiles", "tell_in_turn", 1, 1, 64},
    {"order_tiles", "tell_on", 1, 1, 96},
    {"order_tiles", "reuse", 5, 1, 32},
    {"order_cluster", "ring", 3, 8, 64},
    {"order_cluster", "rounds", 2, 8, 64},
    {"order_cluster", "sum", 3, 8, 64},
    {"order_cluster", "histogram", 4, 8, 64},
    {"order_cluster", "split", 3, 8, 64},
    {"order_cluster", "broadcast", 3, 8, 64},
    {"order_cluster", "chain", 5, 8, 64},
    {"order_cluster", "scope", 2, 8, 64},
    {"order_primitives", "block_scan_of_warps", 0, 1, 128},
    {"order_primitives", "warp_scan_shared", 0, 1, 128},
    {"order_primitives", "raking_reduce", 0, 1, 128},
    {"order_primitives", "radix_sort", 0, 1, 128},
    {"order_primitives", "aggregated_atomics", 0, 6, 128},
    {"order_primitives", "tiled_sums", 0, 1, 128},
    {"order_primitives", "grid_sync", 0, 6, 64},
};

/// One kernel of the file, and what comes before the first.
std::string textOf(const std::string &file, const std::string &kernel) {
  auto buffer = llvm::MemoryBuffer::getFile(std::string(HLOC_SOURCE_DIR) + "/tests/emulator/" + file + ".ptx");
  REQUIRE(buffer);
  const std::string text = (*buffer)->getBuffer().str(), entry = ".visible .entry ";
  const size_t begin = text.find(entry + kernel + "("), end = text.find("\n}\n", begin);
  REQUIRE(end != std::string::npos);
  return text.substr(0, text.find(entry)) + text.substr(begin, end + 3 - begin);
}

struct Outcome {
  bool clean = false; ///< it ran to its end with nothing found
  std::string messages;
  std::vector<uint32_t> result;
};

Outcome run(const Row &row, unsigned variant, const Schedule &schedule) {
  constexpr size_t words = 4096;
  const std::string kernel = std::string(row.kernel) + "_" + std::to_string(variant);
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>("order.ptx", textOf(row.file, kernel)));
  EmulatorOptions options;
  options.schedule = schedule;
  options.timeLimitSeconds = 100;
  options.multiprocessors = 4; // 8 blocks of 1024 threads
  auto emulator = Emulator::load(diagnostics, options);
  REQUIRE(emulator);
  std::vector<LaunchArgument> arguments;
  for (const char *name : {"in", "out", "work"}) {
    BufferId id = emulator->allocate(name, words * 4, Emulator::Contents::Written);
    std::memset(emulator->bytes(id).data(), 0, words * 4);
    arguments.push_back(BufferArgument{id, 0, words * 4, std::strcmp(name, "in") != 0});
  }
  for (uint32_t i = 0; i < words; ++i) {
    uint32_t value = i * 7 + 3;
    std::memcpy(&emulator->bytes(0)[4 * i], &value, 4);
  }
  Outcome outcome;
  outcome.clean = succeeded(emulator->launch({kernel, {row.grid, 1, 1}, {row.block, 1, 1}, 0, arguments}, diagnostics));
  llvm::raw_string_ostream os(outcome.messages);
  diagnostics.print(os, false);
  for (const Finding &f : emulator->findings())
    os << findingName(f.kind) << " line " << f.line << " x" << f.count << ": " << f.message << "\n";
  outcome.result.resize(words);
  std::memcpy(outcome.result.data(), emulator->bytes(row.result == Result::Out ? 1 : 2).data(), words * 4);
  return outcome;
}

const Schedule schedules[] = {{Schedule::Order::Ascending, 0},
                              {Schedule::Order::Reversed, 0},
                              {Schedule::Order::Shuffled, 1},
                              {Schedule::Order::Shuffled, 2}};

} // namespace

TEST_CASE("order: kernels that are right are silent and do not depend on the schedule") {
  for (const Row &row : rows) {
    Outcome first;
    for (const Schedule &schedule : schedules) {
      Outcome outcome = run(row, 0, schedule);
      INFO(row.kernel << ", " << schedule.name() << "\n" << outcome.messages);
      CHECK(outcome.clean);
      if (first.result.empty())
        first = outcome;
      const bool same = outcome.result == first.result;
      CHECK(same);
    }
  }
}

TEST_CASE("order: kernels that lack something are found") {
  for (const Row &row : rows) {
    Outcome right = run(row, 0, {});
    for (unsigned variant = 1; variant <= row.broken; ++variant) {
      bool found = false;
      for (const Schedule &schedule : schedules) {
        Outcome outcome = run(row, variant, schedule);
        found = !outcome.clean || outcome.result != right.result;
        if (found)
          break;
      }
      INFO(row.kernel << "_" << variant);
      CHECK(found);
    }
  }
}
