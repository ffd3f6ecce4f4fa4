#pragma once
// Tensor maps in JSON, in launch descriptions and manifests:
//
//   {"tensor_map": {"buffer": 0, "offset": 0, "bytes": 1048576, "type": "bf16", "dims": [1024, 512], "strides": [2048],
//                   "box": [64, 128], "swizzle": "128B"}}

#include "ManifestReader.h"

#include "hloc/kernel/Steps.h"

namespace hloc::manifest_text {

/// What stands under `tensor_map`. The map is one that a driver takes.
bool readTensorMap(const Reader &reader, TensorMapSlice &map);
/// The whole member.
void printTensorMap(llvm::json::OStream &json, const TensorMapSlice &map);

} // namespace hloc::manifest_text
