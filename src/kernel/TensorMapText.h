#pragma once
// Tensor maps in JSON. Kernels of manifests have parameters of which they say all but the memory, which launches name;
// launch descriptions say the memory, too:
//
//   "tensor_map": {"type": "bf16", "dims": [1024, 512], "strides": [2048], "box": [64, 128], "swizzle": "128B"}
//   "tensor_map": {"buffer": 0, "offset": 0, "bytes": 1048576, "type": "bf16", "dims": [1024, 512], ...}

#include "ManifestReader.h"

#include "hloc/kernel/Steps.h"

namespace hloc::manifest_text {

/// What stands under `tensor_map` of a parameter. Whether a driver takes the map is not looked at.
bool readTensorMap(const Reader &reader, TensorMapRecipe &recipe);
/// What stands under `tensor_map` of a launch description. The map is one that a driver takes.
bool readTensorMap(const Reader &reader, TensorMapSlice &map);
/// The whole member, of a parameter.
void printTensorMap(llvm::json::OStream &json, const TensorMapRecipe &recipe);

} // namespace hloc::manifest_text
