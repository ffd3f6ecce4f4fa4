#pragma once
// Rules over PTX text, anybody's: what a kernel does that makes it slow and that shows without running it. The rules
// are rows of LintRules.def; each can be left out.
//
//   $L: add.f32 %f3, %f2, %f1;                             lint(module, {options, {}})
//       atom.global.cas.b32 %r3, [%rd1], %f2, %f3;           -> {CasLoop, kernel "histogram", line 17,
//       ...                                                       "... `atom.add.f32` does it in one ..."}
//
// What a text does not say (grid, bytes, registers) comes as KernelFacts; rules about what is not known say nothing.

#include "hloc/kernel/KernelSpec.h"
#include "hloc/kernel/TargetInfo.h"
#include "hloc/support/SourceFile.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace hloc::ptx {
struct Module;
}

namespace hloc::lint {

enum class Rule : uint8_t {
#define HLOC_LINT_RULE(name, text, severity, summary) name,
#include "hloc/lint/LintRules.def"
};
enum class Severity : uint8_t { Error, Warning };

struct RuleRow {
  Rule rule;
  llvm::StringRef name;
  Severity severity;
  llvm::StringRef summary;
};
/// All rules, by Rule.
llvm::ArrayRef<RuleRow> rules();
const RuleRow &row(Rule rule);
std::optional<Rule> findRule(llvm::StringRef name);

/// What is known of a kernel besides its text.
struct KernelFacts {
  std::optional<Dim3> grid, block;          ///< of the launch that moves most
  uint64_t bytesMoved = 0;                  ///< least global traffic of that launch; 0: unknown
  std::optional<KernelResources> resources; ///< what ptxas said
  uint32_t registerLimit = 64;              ///< a thread
  bool wantsDouble = false;                 ///< the program it was made of computes in f64
  bool wantsIntegerDivision = false;        ///< ... divides integers
};

struct LintOptions {
  std::vector<Rule> disabled;
  TargetInfo target; ///< whose vectors, atomics and multiprocessors count
};

struct Finding {
  Rule rule = Rule::CasLoop;
  std::string kernel;
  SourceRange where;   ///< in the PTX text
  std::string message; ///< what is there, and what could be
  std::string source;  ///< `f.hlo:12` where a `.loc` directive says so; else empty
};

/// Findings of all functions with bodies, in the order of the text. `facts` by kernel name.
std::vector<Finding> lint(const ptx::Module &module, const std::map<std::string, KernelFacts> &facts,
                          const LintOptions &options);

/// `{"findings": [{"rule": ..., "severity": ..., "kernel": ..., "line": ..., "message": ..., ...}]}`, in order.
std::string printJson(llvm::ArrayRef<Finding> findings, const SourceFile &ptx);

} // namespace hloc::lint
