#include "passes/PassDetail.h"

namespace hloc {
#define GEN_PASS_DEF_EXPANDFLOATS
#include "passes/Passes.h.inc"
} // namespace hloc

using namespace mlir;
using namespace hloc;

namespace {

struct ExpandFloatsPass : hloc::impl::ExpandFloatsBase<ExpandFloatsPass> {
  using Base::Base;
  void runOnOperation() override {}
};

} // namespace
