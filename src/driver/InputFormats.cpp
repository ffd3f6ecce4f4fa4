#include "InputFormats.h"

namespace hloc {

const char *nameOf(IrKind kind) {
  switch (kind) {
  case IrKind::Hlo:
    return "HLO";
  case IrKind::Mlir:
    return "MLIR";
  case IrKind::Llvm:
    return "LLVM IR";
  case IrKind::Ptx:
    return "PTX";
  }
  return "";
}

Stage stageOf(IrKind kind) {
  return kind == IrKind::Mlir ? Stage::Emit : kind == IrKind::Llvm ? Stage::Mlir : Stage::Ptx;
}

IrKind formatOf(const CompileOptions &options, llvm::StringRef input) {
  if (options.inputFormat)
    return *options.inputFormat;
  return input.ends_with(".mlir")  ? IrKind::Mlir
         : input.ends_with(".ll")  ? IrKind::Llvm
         : input.ends_with(".ptx") ? IrKind::Ptx
                                   : IrKind::Hlo;
}

} // namespace hloc
