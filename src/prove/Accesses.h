#pragma once
// What a kernel does to memory, read off the dialect: every access with its index as an expression over threads, blocks
// and rounds of loops, and with the conditions on its way.
//
//   xla_gpu.loop (%th, %bl)[%i] -> (%x) in #(th, bl)[s0] -> (bl * 512 + th * 4 + s0) ... { tensor.insert .. into %o[%x]
//   }
//
// is one access: write of `o` at bl * 512 + th * 4 + s, round s in [0, 3]. Functions are walked where they are called.
// A loop with a barrier is walked for its first rounds, and then for as many in a row from any round on: accesses
// further apart have barriers between them.

#include "prove/Variables.h"

#include "hloc/kernel/KernelSpec.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace hloc::prove {

struct Buffer {
  std::string name;
  llvm::SmallVector<int64_t, 4> sizes;      ///< in the order of memory, major to minor
  llvm::SmallVector<unsigned, 4> dimension; ///< of the tensor, by position in `sizes`
  unsigned bits = 0;                        ///< of an element
  bool shared = false;
  std::optional<unsigned> argument; ///< of the entry
  std::optional<unsigned> sameAs;   ///< the buffer before it that is the same memory
  int64_t elements() const;
};

enum class AccessKind : uint8_t { Read, Write, Atomic };

struct Access {
  AccessKind kind;
  unsigned buffer;                                ///< one whose memory is no other's before it
  unsigned named;                                 ///< the same as the kernel calls it
  llvm::SmallVector<mlir::AffineExpr, 4> indices; ///< in the order of memory
  int64_t width = 1;                              ///< neighbours in memory, from there on
  llvm::SmallVector<Constraint, 4> constraints;
  llvm::SmallVector<unsigned, 4> rounds; ///< variables of the loops around it
  /// Between barriers so many: those it may happen in.
  unsigned firstPhase = 0, lastPhase = 0;
  mlir::Operation *op;
  /// Writes: so many neighbouring lanes have the same value, as a shuffle leaves it; 0: they need not.
  unsigned lanesAlike = 0;
  bool mayBeAlike = false; ///< it comes out of a shuffle
};

/// What all threads of a block, or of a warp, have to come to together.
struct Meeting {
  bool ofWarp;
  llvm::SmallVector<Constraint, 4> constraints;
  mlir::Operation *op;
};

/// What the code says that an index is in; lowering takes its word for it.
struct Claim {
  mlir::AffineExpr expression;
  Interval interval;
  llvm::SmallVector<Constraint, 4> constraints;
  mlir::Operation *op;
};

struct KernelAccesses {
  explicit KernelAccesses(mlir::MLIRContext *context) : variables(context) {}
  Variables variables;
  unsigned thread = 0, block = 1; ///< variables
  std::vector<Buffer> buffers;
  std::vector<Access> accesses;
  std::vector<Meeting> meetings;
  std::vector<Claim> claims;
  /// Sums and products that are `index` but no maps.
  std::vector<Claim> arithmetic;
  llvm::SmallVector<unsigned> returned; ///< buffers
  std::string unknown;                  ///< what was not understood; nothing is known then
  std::string unknownOrder;             ///< why phases are not known
};

KernelAccesses accessesOf(mlir::ModuleOp module, const KernelSpec &spec);

/// The place in memory of an access's first element.
mlir::AffineExpr linearIndex(const Access &access, const Buffer &buffer);

} // namespace hloc::prove
