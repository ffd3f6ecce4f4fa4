#include "TensorMaps.h"

#include <algorithm>
#include <cstring>

namespace hloc::cuda {

static bool encodeTensorMap(Driver &driver, const TensorMapRecipe &recipe, DevicePointer address, uint8_t *to,
                            std::string &error) {
  const bool ofPixels = recipe.im2col.has_value();
  const std::string function = ofPixels ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
  if (ofPixels ? !driver.cuTensorMapEncodeIm2col : !driver.cuTensorMapEncodeTiled) {
    error = "the CUDA driver `" + driver.name() + "` is too old for tensor maps: it lacks " + function;
    return false;
  }
  alignas(64) uint8_t map[tensorMapBytes];
  const unsigned rank = unsigned(recipe.dims.size());
  // Enumerators of a recipe are in the driver's order.
  const int type = int(recipe.type), interleave = int(recipe.interleave), swizzle = int(recipe.swizzle),
            l2 = int(recipe.l2), fill = int(recipe.fill);
  std::vector<uint32_t> steps = recipe.elementStrides;
  steps.resize(rank, 1);
  std::vector<uint64_t> strides = recipe.strides;
  strides.push_back(16); // one more than it reads: for one dimension it reads none, but takes no null pointer
  void *tensor = reinterpret_cast<void *>(address);
  const int result =
      ofPixels ? driver.cuTensorMapEncodeIm2col(map, type, rank, tensor, recipe.dims.data(), strides.data(),
                                                recipe.im2col->lower.data(), recipe.im2col->upper.data(),
                                                recipe.im2col->channels, recipe.im2col->pixels, steps.data(),
                                                interleave, swizzle, l2, fill)
               : driver.cuTensorMapEncodeTiled(map, type, rank, tensor, recipe.dims.data(), strides.data(),
                                               recipe.box.data(), steps.data(), interleave, swizzle, l2, fill);
  if (!driver.check(result, "making a tensor map (" + function + ")", error))
    return false;
  std::memcpy(to, map, sizeof map);
  return true;
}

bool TensorMaps::encode(Driver &driver, const TensorMapRecipe &recipe, DevicePointer address, uint8_t *to,
                        std::string &error) {
  std::vector<Made> &known = made[address];
  auto found = std::find_if(known.begin(), known.end(), [&](const Made &one) { return one.recipe == recipe; });
  if (found == known.end()) {
    Made one{recipe, {}};
    if (!encodeTensorMap(driver, recipe, address, one.bytes.data(), error))
      return false;
    found = known.insert(known.end(), std::move(one));
  }
  std::memcpy(to, found->bytes.data(), tensorMapBytes);
  return true;
}

} // namespace hloc::cuda
