#pragma once
// A manifest or a launch description as a program that a Device carries out.

#include "hloc/kernel/Device.h"
#include "hloc/kernel/LaunchDescription.h"
#include "hloc/kernel/Manifest.h"

#include "llvm/ADT/ArrayRef.h"

namespace hloc {

/// Number of an entry parameter's leaf counted over all parameters in order, as DeviceBuffer::input wants it; nothing
/// if the program has no such leaf. Leaf indices are empty for parameters that are arrays.
using InputNumbering = std::function<std::optional<uint32_t>(uint32_t parameter, llvm::ArrayRef<uint32_t> leafIndex)>;

/// Which arrays have elements of less than a byte. Kernels store those by atomics on 32-bit words, of which the last
/// may reach beyond the end of the array.
struct SubByteArrays {
  std::vector<bool> inputs;  ///< by their number
  std::vector<bool> results; ///< in the order of the entry's leaves
};

/// Results come in the order of `leaves`, the tuple indices of the entry's result. Nothing, with `error`, if a
/// parameter or a result is missing.
std::optional<DeviceProgram> deviceProgram(const Manifest &manifest, const InputNumbering &inputs,
                                           llvm::ArrayRef<std::vector<uint32_t>> leaves, std::string &error);
/// Buffers of which nobody knows the type are taken to have elements of less than a byte if any array has. Results may
/// be larger than their array, which then lies at the start.
std::optional<DeviceProgram> deviceProgram(const LaunchDescription &description, const SubByteArrays &subByte,
                                           const InputNumbering &inputs, llvm::ArrayRef<std::vector<uint32_t>> leaves,
                                           std::string &error);

} // namespace hloc
