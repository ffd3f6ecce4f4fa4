#pragma once
// Runs a few PTX instructions on many inputs, one a lane, through the whole emulator.
//
//   LaneProgram program("add.s32 %r0, %a, %b;", 32);
//   program.run({{1, 2, 0}, {3, 4, 0}})        // {3, 7}
//
// Inputs are there as 64-bit %la %lb %lc, 32-bit %a %b %c, 16-bit %ha %hb %hc. Results are read from %l0, %r0 or %h0 by
// the width given; %l1-%l7, %r1-%r7, %h1-%h7, %p0-%p7 are free.

#include "hloc/emulator/Emulator.h"
#include "hloc/support/Diagnostics.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

namespace hloc::emulator::test {

using Inputs = std::vector<std::array<uint64_t, 3>>;

inline std::string laneKernel(const std::string &body, unsigned width) {
  std::string result = width == 64 ? "" : width == 32 ? "cvt.u64.u32 %l0, %r0;\n" : "cvt.u64.u16 %l0, %h0;\n";
  return R"(.version 8.5
.target sm_100a
.address_size 64
.visible .entry f(.param .u64 in, .param .u64 out, .param .u32 count) {
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b16 %ha, %hb, %hc;
.reg .b32 %r<9>;
.reg .b32 %a, %b, %c, %tid, %index, %size, %count;
.reg .b64 %l<9>;
.reg .b64 %la, %lb, %lc, %in, %out, %at;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
ld.param.u32 %count, [count];
mov.u32 %tid, %tid.x;
mov.u32 %index, %ctaid.x;
mov.u32 %size, %ntid.x;
mad.lo.u32 %index, %index, %size, %tid;
setp.ge.u32 %p8, %index, %count;
@%p8 bra DONE;
mul.wide.u32 %at, %index, 24;
add.s64 %at, %at, %in;
ld.global.u64 %la, [%at];
ld.global.u64 %lb, [%at+8];
ld.global.u64 %lc, [%at+16];
cvt.u32.u64 %a, %la;
cvt.u32.u64 %b, %lb;
cvt.u32.u64 %c, %lc;
cvt.u16.u64 %ha, %la;
cvt.u16.u64 %hb, %lb;
cvt.u16.u64 %hc, %lc;
)" + body +
         "\n" + result + R"(mul.wide.u32 %at, %index, 8;
add.s64 %at, %at, %out;
st.global.u64 [%at], %l0;
DONE: ret;
}
)";
}

inline std::vector<uint64_t> runLanesAs(HostCode hostCode, const std::string &body, unsigned width,
                                        const Inputs &inputs, EmulatorOptions options) {
  INFO(body);
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", laneKernel(body, width)));
  options.hostCode = hostCode;
  auto emulator = Emulator::load(diagnostics, options);
  for (const Diagnostic &d : diagnostics.diagnostics())
    UNSCOPED_INFO(d.message);
  REQUIRE(emulator);
  uint64_t inBytes = inputs.size() * 24, outBytes = inputs.size() * 8;
  BufferId in = emulator->allocate("in", inBytes, Emulator::Contents::Written);
  BufferId out = emulator->allocate("out", outBytes, Emulator::Contents::Unwritten);
  std::memcpy(emulator->bytes(in).data(), inputs.data(), inBytes);
  LaunchRequest request{"f",
                        {uint32_t(inputs.size() + 95) / 96, 1, 1},
                        {96, 1, 1},
                        0,
                        {BufferArgument{in, 0, inBytes, false}, BufferArgument{out, 0, outBytes, true},
                         ScalarArgument{inputs.size(), 4}}};
  bool ran = llvm::succeeded(emulator->launch(request, diagnostics));
  for (const Diagnostic &d : diagnostics.diagnostics())
    UNSCOPED_INFO(d.message);
  for (const Finding &finding : emulator->findings())
    UNSCOPED_INFO(finding.message);
  REQUIRE(ran);
  std::vector<uint64_t> results(inputs.size());
  std::memcpy(results.data(), emulator->bytes(out).data(), outBytes);
  return results;
}

/// In both ways in which instructions become code for the host.
inline std::vector<uint64_t> runLanes(const std::string &body, unsigned width, const Inputs &inputs,
                                      const EmulatorOptions &options = {}) {
  std::vector<uint64_t> results = runLanesAs(HostCode::Optimized, body, width, inputs, options);
  CHECK(runLanesAs(HostCode::Shared, body, width, inputs, options) == results);
  return results;
}

/// Every combination of three of the values.
inline Inputs triples(const std::vector<uint64_t> &a, const std::vector<uint64_t> &b = {0},
                      const std::vector<uint64_t> &c = {0}) {
  Inputs inputs;
  for (uint64_t x : a)
    for (uint64_t y : b)
      for (uint64_t z : c)
        inputs.push_back({x, y, z});
  return inputs;
}

/// Compares every lane with a scalar function of the inputs; reports the first few that differ.
template <typename Expected>
void checkLanes(const std::string &body, unsigned width, const Inputs &inputs, Expected expected) {
  std::vector<uint64_t> results = runLanes(body, width, inputs);
  uint64_t all = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
  unsigned shown = 0;
  for (size_t i = 0; i < inputs.size() && shown < 4; ++i) {
    uint64_t want = uint64_t(expected(inputs[i][0], inputs[i][1], inputs[i][2])) & all;
    if (results[i] == want)
      continue;
    ++shown;
    INFO(body << " of " << std::hex << inputs[i][0] << ", " << inputs[i][1] << ", " << inputs[i][2]);
    CHECK(results[i] == want);
  }
  CHECK(shown == 0);
}

} // namespace hloc::emulator::test
