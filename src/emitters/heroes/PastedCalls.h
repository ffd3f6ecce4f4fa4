#pragma once
// Calls of functions of the fusion that straight code has hundreds of: bodies are pasted where they are called.

#include "emitters/KernelBuilder.h"

#include "mlir/IR/IRMapping.h"

namespace hloc {

/// Does a function of one block read any of the `rank` indices at which it is called?
inline bool readsIndices(KernelBuilder &kernel, mlir::func::FuncOp function, int64_t rank) {
  auto indices = function.getArguments().slice(kernel.graph().parameters().size(), size_t(rank));
  return !function.getBody().hasOneBlock() ||
         llvm::any_of(indices, [](mlir::BlockArgument index) { return !index.use_empty(); });
}

/// The only result of a call.
inline mlir::Value pastedCall(KernelBuilder &kernel, mlir::func::FuncOp function, mlir::ValueRange indices,
                              mlir::ValueRange injected) {
  if (!function.getBody().hasOneBlock())
    return kernel.call(function, indices, injected).front();
  llvm::SmallVector<mlir::Value> arguments;
  for (unsigned i = 0; i < kernel.graph().parameters().size(); ++i)
    arguments.push_back(kernel.parameter(i));
  llvm::append_range(arguments, indices);
  llvm::append_range(arguments, injected);
  mlir::Block &body = function.getBody().front();
  mlir::IRMapping values;
  values.map(body.getArguments(), arguments);
  for (mlir::Operation &op : body.without_terminator())
    kernel.code().clone(op, values);
  return values.lookup(body.getTerminator()->getOperand(0));
}

} // namespace hloc
