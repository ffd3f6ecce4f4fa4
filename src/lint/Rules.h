#pragma once
// The rules over one kernel's code, by what they are about. Each adds to `findings`, in any order.

#include "hloc/lint/Lint.h"
#include "lint/KernelCode.h"

namespace hloc::lint {

struct KernelContext {
  const KernelCode &code;
  const KernelFacts &facts;
  const TargetInfo &target;
  std::vector<Finding> &findings;

  /// At an instruction.
  void report(Rule rule, const CodeInstr &at, std::string message) const;
  /// Where the kernel is defined.
  void report(Rule rule, std::string message) const;
};

void findCasLoops(const KernelContext &context);
void findScalarAccesses(const KernelContext &context);
void findLocalMemory(const KernelContext &context);
void findAccidentalDoubles(const KernelContext &context);
void findSlowDivisions(const KernelContext &context);
void findSystemScopes(const KernelContext &context);
/// Spills, registers, grid: of the kernel as a whole.
void checkResources(const KernelContext &context);

} // namespace hloc::lint
