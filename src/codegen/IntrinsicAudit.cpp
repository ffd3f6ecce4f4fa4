// LLVM 22's NVPTX back end ends the process on math intrinsics it has no instruction for. These are found before.

#include "LlvmStageParts.h"

#include "fmt/format.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Operator.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace hloc {

namespace {

/// What an intrinsic needs to be selectable. Found by compiling each intrinsic for each type with LLVM 22.1.8.
enum class Need {
  Never,           ///< no instruction, and no library to call
  ApproximateF32,  ///< only with `afn`, and not f64
  ApproximateSm75, ///< the same, from sm_75 on
  NotF64,
  NotBf16OrVector,
};

struct IntrinsicNeed {
  const char *name; ///< without `llvm.` and type suffixes
  Need need;
};

constexpr IntrinsicNeed needs[] = {
    {"acos", Need::Never},         {"asin", Need::Never},
    {"atan", Need::Never},         {"atan2", Need::Never},
    {"cosh", Need::Never},         {"sinh", Need::Never},
    {"tan", Need::Never},          {"exp", Need::Never},
    {"exp10", Need::Never},        {"log", Need::Never},
    {"log10", Need::Never},        {"log2", Need::Never},
    {"pow", Need::Never},          {"powi", Need::Never},
    {"modf", Need::Never},         {"lrint", Need::Never},
    {"llrint", Need::Never},       {"lround", Need::Never},
    {"llround", Need::Never},      {"sincos", Need::Never},
    {"sincospi", Need::Never},     {"sin", Need::ApproximateF32},
    {"cos", Need::ApproximateF32}, {"tanh", Need::ApproximateSm75},
    {"exp2", Need::NotF64},        {"canonicalize", Need::NotBf16OrVector},
};

struct IntrinsicUse {
  std::string name; ///< `exp`, `tanh`, ...
  bool isF64, isBf16, isVector, isApproximate;
};

/// Why `use` cannot be compiled; empty if it can.
std::string objection(const IntrinsicUse &use, const TargetInfo &target) {
  for (const IntrinsicNeed &row : needs) {
    if (use.name != row.name)
      continue;
    switch (row.need) {
    case Need::Never:
      return "there is no PTX instruction for it";
    case Need::ApproximateSm75:
      if (!target.atLeast(7, 5))
        return "there is no PTX instruction for it before sm_75";
      [[fallthrough]];
    case Need::ApproximateF32:
      if (use.isF64)
        return "there is no PTX instruction for it in f64";
      return use.isApproximate ? "" : "PTX has only an approximate form, which was not asked for";
    case Need::NotF64:
      return use.isF64 ? "there is no PTX instruction for it in f64" : "";
    case Need::NotBf16OrVector:
      return use.isBf16 || use.isVector ? "LLVM cannot select it for this type" : "";
    }
  }
  return "";
}

/// `llvm.exp.v2f32` -> `exp`; the dialect's `llvm.intr.exp` -> `exp`.
std::string baseName(llvm::StringRef name) {
  name.consume_front("llvm.");
  name.consume_front("intr.");
  return name.take_until([](char c) { return c == '.'; }).str();
}

/// The innermost name in a location is the HLO instruction the op was emitted for.
void describeLocation(mlir::Location location, std::string &name, std::string &place) {
  location->walk([&](mlir::Location inner) {
    if (auto named = llvm::dyn_cast<mlir::NameLoc>(inner); named && name.empty())
      name = named.getName().str();
    if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(inner); file && place.empty())
      place = fmt::format("{}:{}", file.getFilename().str(), file.getLine());
    return mlir::WalkResult::advance();
  });
}

bool hasApproximateFlag(mlir::Operation *op) {
  auto flags = llvm::dyn_cast<mlir::LLVM::FastmathFlagsInterface>(op);
  return flags && mlir::LLVM::bitEnumContainsAll(flags.getFastmathAttr().getValue(), mlir::LLVM::FastmathFlags::afn);
}

std::string message(llvm::StringRef name, llvm::StringRef why, llvm::StringRef where) {
  return fmt::format("intrinsic `llvm.{}`{} cannot be compiled: {}", name.str(), where.str(), why.str());
}

} // namespace

bool auditIntrinsics(mlir::ModuleOp module, const TargetInfo &target, DiagnosticEngine &diagnostics) {
  bool fine = true;
  module->walk([&](mlir::Operation *op) {
    llvm::StringRef opName = op->getName().getStringRef();
    if (!opName.starts_with("llvm.intr.") || op->getNumOperands() == 0)
      return;
    mlir::Type type = op->getOperand(0).getType();
    auto vector = llvm::dyn_cast<mlir::VectorType>(type);
    mlir::Type element = vector ? vector.getElementType() : type;
    IntrinsicUse use{baseName(opName), element.isF64(), element.isBF16(), bool(vector), hasApproximateFlag(op)};
    std::string why = objection(use, target);
    if (why.empty())
      return;
    std::string name, place;
    describeLocation(op->getLoc(), name, place);
    std::string where = name.empty() ? "" : fmt::format(" (of HLO instruction `{}`)", name);
    Diagnostic &report = diagnostics.report(DiagnosticKind::Internal, message(use.name, why, where));
    if (!place.empty())
      report.note(fmt::format("emitted for {}", place));
    fine = false;
  });
  return fine;
}

bool auditModule(const llvm::Module &module, const TargetInfo &target, DiagnosticEngine &diagnostics) {
  bool fine = true;
  llvm::DenseSet<const llvm::Function *> known[2]; // without objection: exact, approximate
  for (const llvm::Function &function : module) {
    for (const llvm::Instruction &instruction : llvm::instructions(function)) {
      const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      const llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
      if (!callee || !callee->isDeclaration())
        continue;
      const auto *math = llvm::dyn_cast<llvm::FPMathOperator>(call);
      const bool isApproximate = math && math->hasApproxFunc();
      if (known[isApproximate].contains(callee))
        continue;
      std::string where = fmt::format(" in kernel code `{}`", function.getName().str());
      if (!callee->isIntrinsic()) {
        diagnostics.report(DiagnosticKind::Internal,
                           fmt::format("call of undefined function `{}`{}", callee->getName().str(), where));
        fine = false;
        continue;
      }
      llvm::Type *type = call->arg_size() ? call->getArgOperand(0)->getType() : call->getType();
      IntrinsicUse use{baseName(callee->getName()), type->getScalarType()->isDoubleTy(),
                       type->getScalarType()->isBFloatTy(), type->isVectorTy(), isApproximate};
      if (std::string why = objection(use, target); why.empty()) {
        known[isApproximate].insert(callee);
      } else {
        diagnostics.report(DiagnosticKind::Internal, message(use.name, why, where));
        fine = false;
      }
    }
  }
  return fine;
}

} // namespace hloc
