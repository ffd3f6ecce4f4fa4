// What passes must leave none of.
#include "hloc/codegen/Pipeline.h"

#include "hloc/support/Check.h"

#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace hloc {
namespace {

struct Row {
  StringLiteral pass;
  bool only;           ///< `names` are all that may be left, not what must be gone
  StringLiteral names; ///< ops, and dialects with a dot at the end
};
constexpr Row rows[] = {
    {"hloc-lower-xla-gpu-to-scf", false,
     "xla_gpu.loop xla_gpu.predicated_insert xla_gpu.predicated_extract xla_gpu.shuffle_reduce "
     "xla_gpu.multiply_fragments"},
    {"hloc-vectorize-loads-stores", false, "xla_gpu.loop"},
    {"hloc-convert-pure-call", false, "xla_gpu.pure_call"},
    {"hloc-lower-tensors", false,
     "tensor. xla_gpu.atomic_rmw xla_gpu.allocate_shared xla_gpu.sync_threads xla_gpu.load_fragments "
     "xla_gpu.copy_async xla_gpu.commit_copies xla_gpu.await_copies xla_gpu.yield"},
    {"hloc-lower-index", false, "xla_gpu. tensor."},
    {"convert-scf-to-cf", false, "scf. xla_gpu. tensor."},
    {"hloc-lower-to-llvm", true, "llvm. nvvm. builtin.module"},
};

bool isNamed(StringRef op, StringRef names) {
  while (!names.empty()) {
    auto [name, rest] = names.split(' ');
    if (name.ends_with(".") ? op.starts_with(name) : op == name)
      return true;
    names = rest;
  }
  return false;
}

class PhaseChecks : public PassInstrumentation {
public:
  explicit PhaseChecks(std::function<void(llvm::StringRef)> report) : report(std::move(report)) {}

  void runAfterPass(Pass *pass, Operation *root) override {
    for (const Row &row : rows)
      if (pass->getArgument() == row.pass)
        root->walk([&](Operation *op) {
          StringRef name = op->getName().getStringRef();
          if (isNamed(name, row.names) == row.only)
            return WalkResult::advance();
          report(("pass `" + row.pass + "` left `" + name + "`").str());
          return WalkResult::interrupt();
        });
  }

private:
  std::function<void(llvm::StringRef)> report;
};

} // namespace

void addPhaseChecks(PassManager &manager, std::function<void(llvm::StringRef)> report) {
  manager.addInstrumentation(std::make_unique<PhaseChecks>(std::move(report)));
}

void addPhaseChecks(PassManager &manager) {
  addPhaseChecks(manager, [](llvm::StringRef what) { HLOC_CHECK(false, what.str().c_str()); });
}

} // namespace hloc
