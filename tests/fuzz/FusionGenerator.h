#pragma once
// Random fusions, each aimed at one emitter and at the sizes where that changes: beside tiles, vectors, warps, blocks.
// The same seed and options always give the same module. What a fusion is aimed at is not always what takes it: plans
// may refuse it for good reasons, which is part of the test.
//
//   GeneratedFusion made = generateFusionModule(7);
//   // aimed at "transpose": fused { x0 = bf16[33,129] parameter(0)  transpose.1 = ...  ROOT tanh.2 = ... }
//   //                       ENTRY entry { ROOT f = fusion(p0), kind=kInput, calls=fused }

#include "hloc/hlo/HloModule.h"

#include <memory>

namespace hloc {

struct FusionOptions {
  int64_t maxElements = 1 << 17; ///< of an array; most have far fewer
};

struct GeneratedFusion {
  std::unique_ptr<HloModule> module;
  llvm::StringRef aim;
};

/// Verified by construction, as far as shapes go: they come from inferShape.
GeneratedFusion generateFusionModule(uint64_t seed, const FusionOptions &options = {});

} // namespace hloc
