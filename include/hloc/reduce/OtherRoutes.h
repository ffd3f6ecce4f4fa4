#pragma once
// A small module on which kernels and the reference differ, made ready for a third opinion: an op of it expressed by
// others (transforms/OtherWays.h). Both modules give their arguments as results, so that values of the one can be held
// against those of the other only if they were computed of the same arguments.
//
//   p = parameter(0)  ROOT y = reverse(p)      asked:      ROOT t = tuple(reverse(p), p)
//                                              otherwise:  ROOT t = tuple(gather(p, {...}), p)

#include "hloc/hlo/Opcode.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace hloc {

struct OtherRoute {
  Opcode opcode = Opcode::Parameter;
  std::string asked, otherwise; ///< texts of the modules
};

struct OtherRoutes {
  std::vector<OtherRoute> routes; ///< one for each opcode that can be expressed by others
  size_t numOps = 0;              ///< instructions that compute something, in all computations
  bool isOneOp() const { return numOps == 1; }
};

/// Of HLO that the verifier takes.
OtherRoutes otherRoutes(llvm::StringRef text);

} // namespace hloc
