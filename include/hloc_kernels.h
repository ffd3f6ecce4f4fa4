#pragma once
// What the functions that hloc_add_kernels makes (lib/cmake/hloc/HlocKernels.cmake) have in common: types of elements,
// and a module that is part of the program, for several architectures.

#include "hloc_launch.h"

#include <complex>

namespace hloc_launch {

// Elements for which C++ has no type: their bits. Arrays of a toolkit's own types (__nv_bfloat16) are passed with a
// reinterpret_cast.
struct bfloat16 {
  uint16_t bits;
};
struct float16 {
  uint16_t bits;
};
/// Any float of 8 or 6 bits; which, the shape says.
struct float8 {
  uint8_t bits;
};
/// A byte with several elements of 1, 2 or 4 bits, low bits first.
struct packed {
  uint8_t bits;
};

template <typename Element> DevicePointer addressOf(Element *array) {
  return static_cast<DevicePointer>(reinterpret_cast<uintptr_t>(array));
}

/// A module as it was compiled for one architecture.
struct Variant {
  enum class Reach {
    Later,      ///< PTX: that architecture and all later ones
    SameMajor,  ///< machine code: those of the same major version that are not older
    ItselfAlone ///< sm_90a and its like
  };
  int architecture; ///< 90 of sm_90
  Reach reach;
  std::string_view manifest;
  Image image;

  bool fits(int device) const {
    return reach == Reach::ItselfAlone
               ? device == architecture
               : device >= architecture && (reach == Reach::Later || device / 10 == architecture / 10);
  }
};

/// A module that is part of the program. It is loaded when it is first called in a context, and has memory for each
/// stream that it is called on. Any thread may call it.
class EmbeddedModule {
public:
  template <size_t size> explicit EmbeddedModule(const Variant (&of)[size]) : variants(of), numVariants(size) {}

  /// Enqueues the module's work on `stream`, which belongs to the current context (that of device 0, if none is
  /// current). Errors: as those of Module::load and Execution::run, and a device for which it was not compiled.
  Status run(const std::vector<DevicePointer> &inputs, const std::vector<DevicePointer> &results, Stream stream) {
    Place *place = nullptr;
    if (Status status = find(stream, place); !status.ok())
      return status;
    // Calls on one stream use the same memory, one after the other: their steps must not mix.
    std::lock_guard<std::mutex> lock(place->mutex);
    if (!place->isReady)
      if (Status status = Execution::create(place->module, place->execution); !status.ok())
        return status;
    place->isReady = true;
    return place->execution.run(inputs, results, stream);
  }

private:
  struct Place {
    std::mutex mutex;
    Module module;
    Execution execution;
    bool isReady = false;
  };

  Status find(Stream stream, Place *&place) {
    const Driver *driver = nullptr;
    Context context = nullptr;
    Status status = Driver::open(driver);
    if (status.ok())
      status = driver->check(driver->contextGetCurrent(&context), "looking for a context (cuCtxGetCurrent)");
    if (!status.ok())
      return status;
    std::lock_guard<std::mutex> lock(mutex);
    Module &module = modules[context];
    if (!module.isLoaded())
      status = load(*driver, context, module);
    if (!status.ok())
      return status;
    std::unique_ptr<Place> &found = places[{context, stream}];
    if (!found) {
      found = std::make_unique<Place>();
      found->module = module;
    }
    place = found.get();
    return status;
  }

  Status load(const Driver &driver, Context context, Module &module) {
    int device = 0, major = 0, minor = 0;
    Status status;
    if (context)
      status = driver.check(driver.contextGetDevice(&device), "asking for the device (cuCtxGetDevice)");
    if (status.ok()) // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
      status = driver.check(driver.deviceGetAttribute(&major, 75, device), "asking for the device's architecture");
    if (status.ok())
      status = driver.check(driver.deviceGetAttribute(&minor, 76, device), "asking for the device's architecture");
    if (!status.ok())
      return status;
    const Variant *best = nullptr;
    for (const Variant *variant = variants; variant != variants + numVariants; ++variant)
      if (variant->fits(major * 10 + minor) &&
          (!best || variant->architecture > best->architecture ||
           (variant->architecture == best->architecture && variant->reach == Variant::Reach::ItselfAlone)))
        best = variant;
    if (!best)
      return Status::failure("the device is sm_" + std::to_string(major * 10 + minor) +
                             ", for which the program has no kernels");
    return Module::load(best->manifest, best->image, {}, module);
  }

  const Variant *variants;
  size_t numVariants;
  std::mutex mutex; ///< of the two maps
  std::map<Context, Module> modules;
  std::map<std::pair<Context, Stream>, std::unique_ptr<Place>> places;
};

} // namespace hloc_launch
