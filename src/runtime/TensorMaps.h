#pragma once
// Tensor maps by the driver's encoding.

#include "CudaDriver.h"

#include "hloc/kernel/TensorMapRecipe.h"

#include <array>
#include <map>
#include <vector>

namespace hloc::cuda {

inline constexpr size_t tensorMapBytes = 128;

/// Maps that the driver has made: a kernel that is launched again, in a loop or to be timed, has them ready. What is in
/// a map depends on its recipe and its address alone, so none is ever out of date.
class TensorMaps {
public:
  /// The map of the tensor at `address` of the device to `to`. False, with `error`, if the driver refuses it or is too
  /// old for tensor maps.
  bool encode(Driver &driver, const TensorMapRecipe &recipe, DevicePointer address, uint8_t *to, std::string &error);
  /// Forgets those of memory that is freed, for them not to become ever more.
  void clear() { made.clear(); }

private:
  struct Made {
    TensorMapRecipe recipe;
    std::array<uint8_t, tensorMapBytes> bytes;
  };
  std::map<DevicePointer, std::vector<Made>> made; ///< few of one address
};

} // namespace hloc::cuda
