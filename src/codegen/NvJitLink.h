#pragma once
// NVIDIA's library nvJitLink: ptxas and the linker of cubins inside this process, loaded at run time where it is found.
//
// What it gives for PTX is what `ptxas -c` and nvlink give. One call at a time assembles, whatever the number of
// threads; linking costs 0.1 ms.

#include "hloc/support/Subprocess.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace hloc {

/// One PTX text, or one object of `ptxas -c`.
struct NvJitLinkInput {
  enum Kind { Ptx = 2, Object = 10 }; ///< NVJITLINK_INPUT_PTX, NVJITLINK_INPUT_OBJECT
  Kind kind;
  llvm::StringRef bytes;
};

class NvJitLink {
public:
  /// Null, and why, if the file cannot be loaded or lacks a function. Loaded once a process, and kept.
  static const NvJitLink *load(const std::string &path, std::string &error);

  /// Assembles and links. `cubin` is filled if the result succeeded; `errors` and `output` are what ptxas would print.
  ProcessResult run(llvm::ArrayRef<NvJitLinkInput> inputs, llvm::ArrayRef<std::string> options,
                    std::string &cubin) const;

  /// `13.0`; empty if it does not say.
  std::string version() const;

private:
  NvJitLink() = default;

  using Handle = void *;
  int (*create)(Handle *, uint32_t, const char **) = nullptr;
  int (*destroy)(Handle *) = nullptr;
  int (*addData)(Handle, int, const void *, size_t, const char *) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubinSize)(Handle, size_t *) = nullptr;
  int (*cubinBytes)(Handle, void *) = nullptr;
  int (*errorLogSize)(Handle, size_t *) = nullptr;
  int (*errorLog)(Handle, char *) = nullptr;
  int (*infoLogSize)(Handle, size_t *) = nullptr;
  int (*infoLog)(Handle, char *) = nullptr;
  int (*versionOf)(unsigned *, unsigned *) = nullptr;
};

} // namespace hloc
