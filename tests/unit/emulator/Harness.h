#pragma once
// Runs one kernel given as the body of a PTX function.

#include "hloc/emulator/Emulator.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace hloc::emulator::testing {

/// Parameters are pointers p0, p1, ...; registers are %p<9>, %h<9>, %r<40>, %f<20>, %d<40> (64 bits, %d1 = p0, ...).
/// The linear thread id of the block is in %r1, that of the grid in %r2, four times that in %d0.
struct Harness {
  EmulatorOptions options;
  Dim3 grid{1, 1, 1}, block{32, 1, 1};
  uint32_t dynamicShared = 0;
  std::optional<Dim3> cluster;
  bool programmatic = false;
  std::unique_ptr<Emulator> emulator;
  DiagnosticEngine diagnostics;
  std::vector<LaunchArgument> arguments;
  bool succeeded = false;

  static std::string kernel(const std::string &body, unsigned numParameters, const std::string &variables = "") {
    std::string text = ".version 9.0\n.target sm_100a\n.address_size 64\n" + variables + "\n.visible .entry k(";
    for (unsigned i = 0; i < numParameters; ++i)
      text += (i ? ", .param .u64 p" : ".param .u64 p") + std::to_string(i);
    text += ") {\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .f32 %f<20>;\n.reg .b64 %d<40>;\n";
    for (unsigned i = 0; i < numParameters; ++i)
      text += "ld.param.u64 %d" + std::to_string(i + 1) + ", [p" + std::to_string(i) + "];\n";
    text += "mov.u32 %r1, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r2, %r3, %r4, %r1;\n"
            "mul.wide.u32 %d0, %r2, 4;\n";
    return text + body + "\nret;\n}\n";
  }

  /// Loads the text; then buffers can be made.
  void load(std::string text) {
    diagnostics.setFile(std::make_shared<SourceFile>("test.ptx", std::move(text)));
    options.hostCode = HostCode::Shared; // which these short kernels would not get by themselves
    emulator = Emulator::load(diagnostics, options);
    INFO(messages());
    REQUIRE(emulator);
  }

  template <typename T> BufferId input(const std::string &name, const std::vector<T> &values, bool written = false) {
    uint64_t bytes = values.size() * sizeof(T);
    BufferId id = emulator->allocate(name, bytes, Emulator::Contents::Written);
    std::memcpy(emulator->bytes(id).data(), values.data(), bytes);
    arguments.push_back(BufferArgument{id, 0, bytes, written});
    return id;
  }
  BufferId output(const std::string &name, uint64_t bytes) {
    BufferId id = emulator->allocate(name, bytes, Emulator::Contents::Unwritten);
    arguments.push_back(BufferArgument{id, 0, bytes, true});
    return id;
  }

  Harness &launch() {
    succeeded = llvm::succeeded(
        emulator->launch({"k", grid, block, dynamicShared, arguments, cluster, {}, programmatic}, diagnostics));
    return *this;
  }

  template <typename T> std::vector<T> read(BufferId id) {
    auto bytes = emulator->bytes(id);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }

  std::string messages() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    diagnostics.print(os, false);
    if (emulator)
      for (const Finding &f : emulator->findings())
        os << findingName(f.kind) << " line " << f.line << " x" << f.count << ": " << f.message << "\n";
    return text;
  }

  /// Runs `body` on one buffer of 64 words each of zeros (p0, writable), of 1, 2, 3, ... (p1, read only), and one that
  /// nobody has written (p2, writable).
  Harness &runOnThree(const std::string &body, const std::string &variables = "") {
    load(kernel(body, 3, variables));
    std::vector<uint32_t> counting(64);
    for (uint32_t i = 0; i < 64; ++i)
      counting[i] = i + 1;
    input("zeros", std::vector<uint32_t>(64), true);
    input("counting", counting);
    output("fresh", 256);
    return launch();
  }

  bool silent() const { return succeeded && emulator->findings().empty(); }
  /// The first finding of this kind, if any.
  const Finding *find(FindingKind kind) const {
    for (const Finding &f : emulator->findings())
      if (f.kind == kind && !succeeded)
        return &f;
    return nullptr;
  }
  /// The finding, if it is the only one and of this kind.
  const Finding *only(FindingKind kind) const {
    auto findings = emulator->findings();
    return findings.size() == 1 && findings[0].kind == kind && !succeeded ? &findings[0] : nullptr;
  }
};

} // namespace hloc::emulator::testing
