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

/// Results come in the order of `leaves`, the tuple indices of the entry's result. Nothing, with `error`, if a
/// parameter or a result is missing.
std::optional<DeviceProgram> deviceProgram(const Manifest &manifest, const InputNumbering &inputs,
                                           llvm::ArrayRef<std::vector<uint32_t>> leaves, std::string &error);
/// `subByte`: the program has types of less than a byte, whose last word may reach beyond the end of an array. Results
/// may be larger than their array, which then lies at the start.
std::optional<DeviceProgram> deviceProgram(const LaunchDescription &description, bool subByte,
                                           const InputNumbering &inputs, llvm::ArrayRef<std::vector<uint32_t>> leaves,
                                           std::string &error);

} // namespace hloc
