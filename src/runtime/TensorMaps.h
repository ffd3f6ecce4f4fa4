#pragma once
// Tensor maps by the driver's encoding.

#include "CudaDriver.h"

#include "hloc/kernel/TensorMapRecipe.h"

namespace hloc::cuda {

inline constexpr size_t tensorMapBytes = 128;

/// The map of the tensor at `address` of the device to `to`. False, with `error`, if the driver refuses it or is too
/// old for tensor maps.
bool encodeTensorMap(Driver &driver, const TensorMapRecipe &recipe, DevicePointer address, uint8_t *to,
                     std::string &error);

} // namespace hloc::cuda
