// hloc with a mistake of your choice, for tests of what finds mistakes: `HLOC_DEFECT=NAME hloc-with-defects run F.hlo`.
//
// The mistakes are here alone: the linker hands calls of a few functions of the layers to those below, which call the
// real ones (`--wrap`, tests/CMakeLists.txt). A function that has another type since is not found, and the test that
// expects the mistake fails. Each concerns an op that the modules of the test have in one place only.

#include "hloc/driver/Driver.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/passes/Passes.h"
#include "hloc/support/Check.h"
#include "hloc/transforms/Transforms.h"

#include "codegen/LlvmStageParts.h"
#include "emitters/Elementwise.h"
#include "interp/Ops.h"
#include "transforms/AlgebraicRules.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace hloc;

// The real function, and what is called instead of it.
#define REAL(symbol) asm("__real_" symbol)
#define INSTEAD(symbol) asm("__wrap_" symbol)

namespace {

bool isPlanted(llvm::StringRef name) {
  static const char *planted = std::getenv("HLOC_DEFECT");
  return planted && name == planted;
}

bool hasOp(const HloModule &module, Opcode opcode) {
  return llvm::any_of(module.computations(), [&](const auto &computation) {
    return llvm::any_of(computation->instructions(),
                        [&](const HloInstruction *instr) { return instr->opcode() == opcode; });
  });
}

[[noreturn]] void hang() {
  for (;;)
    std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// Calls of LLVM's intrinsic become their operand.
void dropIntrinsic(llvm::Function &function, llvm::Intrinsic::ID dropped) {
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(block))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction); call && call->getIntrinsicID() == dropped) {
        call->replaceAllUsesWith(call->getArgOperand(0));
        call->eraseFromParent();
      }
}

//===--- a rule: maximum(x, negate(x)) is x for numbers from 0 up only ------------------------------------------===//

HloInstruction *maximumOfNegated(HloInstruction &maximum, HloRewriter &) {
  const HloInstruction *second = maximum.operand(1);
  return second->opcode() == Opcode::Negate && second->operand(0) == maximum.operand(0) ? maximum.operand(0) : nullptr;
}

} // namespace

#define ARITHMETIC_RULES "_ZN4hloc15arithmeticRulesEv"
llvm::ArrayRef<RewriteRule> realArithmeticRules() REAL(ARITHMETIC_RULES);
llvm::ArrayRef<RewriteRule> plantedArithmeticRules() INSTEAD(ARITHMETIC_RULES);
llvm::ArrayRef<RewriteRule> plantedArithmeticRules() {
  static const std::vector<RewriteRule> rules = [] {
    std::vector<RewriteRule> all(realArithmeticRules());
    if (isPlanted("rule"))
      all.insert(all.begin(), {"planted-rule", Opcode::Maximum, maximumOfNegated, "maximum(x, negate(x)) -> x"});
    return all;
  }();
  return rules;
}

//===--- HLO passes ---------------------------------------------------------------------------------------------===//

#define SPLIT_REDUCTIONS "_ZN4hloc15splitReductionsERNS_9HloModuleERNS_14HloPassContextE"
PassResult realSplitReductions(HloModule &module, HloPassContext &context) REAL(SPLIT_REDUCTIONS);
PassResult plantedSplitReductions(HloModule &module, HloPassContext &context) INSTEAD(SPLIT_REDUCTIONS);
/// multiply(floor(x), y) -> multiply(x, y)
PassResult plantedSplitReductions(HloModule &module, HloPassContext &context) {
  PassResult result = realSplitReductions(module, context);
  if (!isPlanted("hlo-pass"))
    return result;
  for (const auto &computation : module.computations()) {
    HloEditor editor(*computation);
    for (HloInstruction *instr = editor.first(); instr; instr = editor.next(instr))
      if (instr->opcode() == Opcode::Multiply && instr->operand(0)->opcode() == Opcode::Floor) {
        editor.setOperand(instr, 0, instr->operand(0)->operand(0));
        result = PassResult::Changed;
      }
    editor.finish();
  }
  return result;
}

#define COUNT_ROUNDS "_ZN4hloc11countRoundsERNS_9HloModuleERNS_14HloPassContextE"
PassResult realCountRounds(HloModule &module, HloPassContext &context) REAL(COUNT_ROUNDS);
PassResult plantedCountRounds(HloModule &module, HloPassContext &context) INSTEAD(COUNT_ROUNDS);
/// A broken invariant: atan2 of a reduction.
PassResult plantedCountRounds(HloModule &module, HloPassContext &context) {
  if (isPlanted("hlo-check"))
    for (const auto &computation : module.computations())
      for (const HloInstruction *instr : computation->instructions())
        HLOC_CHECK(instr->opcode() != Opcode::Atan2 || instr->operand(0)->opcode() != Opcode::Reduce, "planted");
  return realCountRounds(module, context);
}

#define FORM_FUSIONS "_ZN4hloc11formFusionsERNS_9HloModuleERNS_14HloPassContextE"
PassResult realFormFusions(HloModule &module, HloPassContext &context) REAL(FORM_FUSIONS);
PassResult plantedFormFusions(HloModule &module, HloPassContext &context) INSTEAD(FORM_FUSIONS);
PassResult plantedFormFusions(HloModule &module, HloPassContext &context) {
  if (isPlanted("hlo-hang") && hasOp(module, Opcode::LogPlusOne))
    hang();
  return realFormFusions(module, context);
}

//===--- emitters -----------------------------------------------------------------------------------------------===//

#define EMIT_ELEMENTWISE "_ZN4hloc15emitElementwiseERKNS_13ElementwiseOpE"
llvm::FailureOr<mlir::Value> realEmitElementwise(const ElementwiseOp &op) REAL(EMIT_ELEMENTWISE);
llvm::FailureOr<mlir::Value> plantedEmitElementwise(const ElementwiseOp &op) INSTEAD(EMIT_ELEMENTWISE);
llvm::FailureOr<mlir::Value> plantedEmitElementwise(const ElementwiseOp &op) {
  llvm::FailureOr<mlir::Value> value = realEmitElementwise(op);
  if (isPlanted("emitter") && op.opcode() == Opcode::Logistic && succeeded(value))
    return op.b.negF(*value);
  return value;
}

// clang-format off: a name is on one line, where CMake finds it
#define EMIT_KERNEL "_ZN4hloc10emitKernelERKNS_11FusionGraphERKNS_10KernelPlanEN4llvm9StringRefERN4mlir11MLIRContextERNS_16DiagnosticEngineE"
// clang-format on
using EmittedKernel = llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>;
EmittedKernel realEmitKernel(const FusionGraph &graph, const KernelPlan &plan, llvm::StringRef name,
                             mlir::MLIRContext &context, DiagnosticEngine &diagnostics) REAL(EMIT_KERNEL);
EmittedKernel plantedEmitKernel(const FusionGraph &graph, const KernelPlan &plan, llvm::StringRef name,
                                mlir::MLIRContext &context, DiagnosticEngine &diagnostics) INSTEAD(EMIT_KERNEL);
EmittedKernel plantedEmitKernel(const FusionGraph &graph, const KernelPlan &plan, llvm::StringRef name,
                                mlir::MLIRContext &context, DiagnosticEngine &diagnostics) {
  auto has = [&](Opcode opcode) {
    return llvm::any_of(graph.instructions(), [&](const auto *instr) { return instr->opcode() == opcode; });
  };
  if (isPlanted("emitter-crash") && has(Opcode::Cbrt) && has(Opcode::Minimum))
    std::raise(SIGSEGV);
  EmittedKernel kernel = realEmitKernel(graph, plan, name, context, diagnostics);
  if (isPlanted("one-emitter") && plan.hero() != Hero::Loop && succeeded(kernel)) // floor is forgotten
    (*kernel)->walk([](mlir::math::FloorOp op) {
      op.replaceAllUsesWith(op.getOperand());
      op.erase();
    });
  return kernel;
}

//===--- MLIR and LLVM ------------------------------------------------------------------------------------------===//

namespace {

/// A pass of another's name that leaves out math.ceil.
struct WithoutCeil : mlir::PassWrapper<WithoutCeil, mlir::OperationPass<>> {
  explicit WithoutCeil(std::unique_ptr<mlir::Pass> real) : real(std::move(real)) {}
  WithoutCeil(const WithoutCeil &other) : PassWrapper(other) {}
  llvm::StringRef getArgument() const override { return "hloc-cse"; }
  llvm::StringRef getDescription() const override { return "Equal values are computed once, and not always"; }

  void runOnOperation() override {
    if (real) {
      mlir::OpPassManager inner(getOperation()->getName().getStringRef());
      inner.addPass(std::move(real));
      if (failed(runPipeline(inner, getOperation())))
        return signalPassFailure();
    }
    getOperation()->walk([](mlir::math::CeilOp op) {
      op.replaceAllUsesWith(op.getOperand());
      op.erase();
    });
  }

  std::unique_ptr<mlir::Pass> real;
};

} // namespace

#define CREATE_CSE "_ZN4hloc9createCseEv"
std::unique_ptr<mlir::Pass> realCreateCse() REAL(CREATE_CSE);
std::unique_ptr<mlir::Pass> plantedCreateCse() INSTEAD(CREATE_CSE);
std::unique_ptr<mlir::Pass> plantedCreateCse() {
  return isPlanted("mlir-pass") ? std::make_unique<WithoutCeil>(realCreateCse()) : realCreateCse();
}

#define INST_COMBINE "_ZN4llvm15InstCombinePass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE"
using InstCombineRun = llvm::PreservedAnalyses(llvm::InstCombinePass *, llvm::Function &,
                                               llvm::FunctionAnalysisManager &);
InstCombineRun realInstCombine REAL(INST_COMBINE);
InstCombineRun plantedInstCombine INSTEAD(INST_COMBINE);
llvm::PreservedAnalyses plantedInstCombine(llvm::InstCombinePass *pass, llvm::Function &function,
                                           llvm::FunctionAnalysisManager &analyses) {
  llvm::PreservedAnalyses preserved = realInstCombine(pass, function, analyses);
  if (isPlanted("llvm-pass") && function.getParent()->getTargetTriple().isNVPTX()) // the emulator has it, too
    dropIntrinsic(function, llvm::Intrinsic::roundeven);
  return preserved;
}

#define MERGE_ACCESSES "_ZN4hloc13mergeAccessesERN4llvm6ModuleERNS0_13TargetMachineERKNS_10TargetInfoE"
void realMergeAccesses(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target)
    REAL(MERGE_ACCESSES);
void plantedMergeAccesses(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target)
    INSTEAD(MERGE_ACCESSES);
void plantedMergeAccesses(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target) {
  realMergeAccesses(module, machine, target);
  if (isPlanted("llvm-step"))
    for (llvm::Function &function : module)
      dropIntrinsic(function, llvm::Intrinsic::fabs);
}

//===--- the reference ------------------------------------------------------------------------------------------===//

#define EVALUATE_REVERSE "_ZN4hloc6interp15evaluateReverseERNS0_4StepE"
llvm::FailureOr<interp::Value> realEvaluateReverse(interp::Step &step) REAL(EVALUATE_REVERSE);
llvm::FailureOr<interp::Value> plantedEvaluateReverse(interp::Step &step) INSTEAD(EVALUATE_REVERSE);
llvm::FailureOr<interp::Value> plantedEvaluateReverse(interp::Step &step) {
  if (isPlanted("interpreter"))
    return std::move(step.operands[0]);
  return realEvaluateReverse(step);
}

int main(int argc, char **argv) {
  int code = runDriver(argc, argv);
  std::fflush(nullptr);
  std::_Exit(code);
}
