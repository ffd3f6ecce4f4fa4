#pragma once
// PTX for the tests of rules: bodies of kernels with some declared registers and three pointer parameters.

#include "hloc/emulator/Ptx.h"
#include "hloc/lint/Lint.h"
#include "hloc/support/Diagnostics.h"

#include "catch2/catch.hpp"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>

namespace hloc::lint {

/// A kernel `k(a, b, c)` of pointers aligned to 16 bytes, in %rd1, %rd2 and %rd3.
inline std::string kernelText(const std::string &body, const std::string &target = "sm_90") {
  return ".version 8.8\n.target " + target + R"(
.address_size 64
.visible .entry k(.param .u64 .ptr .align 16 a, .param .u64 .ptr .align 16 b, .param .u64 .ptr .align 16 c)
{
  .reg .pred %p<9>;
  .reg .b16 %rs<99>;
  .reg .b32 %r<99>;
  .reg .b32 %f<99>;
  .reg .b64 %rd<99>;
  .reg .b64 %d<99>;
  .shared .align 16 .b8 tile[4096];
  ld.param.b64 %rd1, [a];
  ld.param.b64 %rd2, [b];
  ld.param.b64 %rd3, [c];
  mov.u32 %r1, %tid.x;
)" + body +
         "\n  ret;\n}\n";
}

inline ptx::Module parsed(const std::string &text) {
  DiagnosticEngine diagnostics;
  diagnostics.setFile(std::make_shared<SourceFile>("k.ptx", text));
  std::optional<ptx::Module> module = ptx::parse(diagnostics);
  std::string errors;
  llvm::raw_string_ostream os(errors);
  diagnostics.print(os, false);
  INFO(errors);
  REQUIRE(module);
  return std::move(*module);
}

inline std::vector<Finding> findingsOf(const std::string &text, const KernelFacts &facts = {}) {
  ptx::Module module = parsed(text);
  LintOptions options;
  options.target = *findTarget(module.target);
  return lint(module, {{"k", facts}}, options);
}

/// The rules that find something in a body, each as often as it does: `cas-loop scalar-access`.
inline std::string found(const std::string &body, const std::string &target = "sm_90", const KernelFacts &facts = {}) {
  std::string names;
  for (const Finding &finding : findingsOf(kernelText(body, target), facts))
    names += (names.empty() ? "" : " ") + row(finding.rule).name.str();
  return names;
}

} // namespace hloc::lint
