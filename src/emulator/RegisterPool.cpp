// setmaxnreg: warps of a block give registers back, and others take them.
#include "CollectiveParts.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc::emulator {

uint32_t registersPerThread(const Kernel &kernel) {
  constexpr uint64_t registersOfBlock = 65536, most = 256, unit = 8;
  if (llvm::none_of(kernel.code, [](const Decoded &d) { return d.opcode == Opcode::Setmaxnreg; }))
    return 0;
  if (kernel.maxRegisters)
    return uint32_t((kernel.maxRegisters + unit - 1) / unit * unit);
  // Without both bounds ptxas ignores the instruction (C7508).
  const std::array<uint32_t, 3> &bound = kernel.required[0] ? kernel.required : kernel.maximum;
  const uint64_t threads = uint64_t(bound[0]) * bound[1] * bound[2] * kernel.minBlocks;
  return threads ? uint32_t(std::min(registersOfBlock / threads / unit * unit, most)) : 0;
}

namespace {

void reportDivergence(Warp &warp, const Decoded &at, llvm::function_ref<std::string()> message) {
  if (warp.core->launch.options.checkDivergence)
    reportFinding(warp, at, 0, FindingKind::DivergentWarpgroup, message);
}

/// All warps of a warpgroup execute the same ones.
void enter(Warp &warp, const Decoded &at) {
  Core &core = *warp.core;
  std::vector<const Decoded *> &settings = core.warpgroups[warp.warp / warpsOfGroup].settings;
  const uint64_t number = warp.numSettings++;
  if (number == settings.size())
    settings.push_back(&at);
  else if (settings[number] != &at)
    reportDivergence(warp, at, [&] {
      return fmt::format("is setmaxnreg {} of its warp, where another of its warpgroup executes that in line {}",
                         number + 1, settings[number]->line);
    });
  const size_t first = warp.warp / warpsOfGroup * warpsOfGroup;
  for (size_t w = first; w < std::min<size_t>(first + warpsOfGroup, core.warps.size()); ++w)
    if (core.warps[w].state == WarpState::Done && core.warps[w].numSettings <= number)
      reportDivergence(warp, at, [&] { return fmt::format("is not executed by warp {}, which has ended", w); });
}

} // namespace

void checkSettings(Warp &warp) {
  const auto &settings = warp.core->warpgroups[warp.warp / warpsOfGroup].settings;
  if (warp.numSettings < settings.size() && !warp.core->launch.stop)
    reportDivergence(warp, *settings[warp.numSettings],
                     [&] { return fmt::format("is not executed by warp {}, which has ended", warp.warp); });
}

void runRegisterCount(const CollectiveCall &call) {
  Warp &warp = call.warp;
  Core &core = *warp.core;
  enter(warp, call.at);
  if (!warp.registers)
    return;
  const auto wanted = uint32_t(call.source(0).value);
  if (const RegisterPressure needed = core.launch.pressure.lookup(&call.at); needed.registers > wanted)
    reportFinding(warp, call.at, 0, FindingKind::RegisterLimit, [&] {
      return fmt::format("leaves {} registers a thread to code that needs {} in line {}", wanted, needed.registers,
                         needed.line);
    });
  const bool takes = call.at.mode == Mode::Inc;
  if (takes ? wanted < warp.registers : wanted > warp.registers) {
    reportFinding(warp, call.at, 0, FindingKind::RegisterLimit, [&] {
      return fmt::format("{} {} registers a thread, where it has {}",
                         takes ? "takes more, up to" : "gives back all but", wanted, warp.registers);
    });
    return;
  }
  if (core.launch.together)
    ++core.launch.progress;
  uint64_t &free = core.freeRegisters[warp.warp % core.freeRegisters.size()];
  if (!takes) {
    free += uint64_t(warp.registers - wanted) * warpLanes;
    warp.registers = wanted;
    return release(core);
  }
  const uint64_t more = uint64_t(wanted - warp.registers) * warpLanes;
  holdUntil(warp,
            {&call.at, FindingKind::Deadlock, fmt::format("waits for {} registers that no warp ever gives back", more)},
            [&] { return free >= more; });
  free -= more;
  warp.registers = wanted;
}

} // namespace hloc::emulator
