#include "LlvmStageParts.h"

#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/LastRunTrackingAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Operator.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/FunctionAttrs.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/IPO/SCCP.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InferAlignment.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/Reassociate.h"
#include "llvm/Transforms/Scalar/SCCP.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Scalar/SpeculativeExecution.h"

namespace hloc {

namespace {

llvm::OptimizationLevel levelOf(unsigned level) {
  switch (level) {
  case 0:
    return llvm::OptimizationLevel::O0;
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

/// All of O3 that changes anything in one block: over the examples and a few hundred programs of jax, the PTX is
/// no longer than after O3 (one kernel has one instruction more), and the other passes took four times as long as
/// these. Without those up to the one with the id `startAfter`.
llvm::FunctionPassManager straightLinePipeline(llvm::StringRef startAfter) {
  const auto *last = llvm::find(straightLinePasses, startAfter);
  size_t skipped = last == std::end(straightLinePasses) ? 0 : last - straightLinePasses + 1;
  llvm::FunctionPassManager passes;
  auto add = [&](auto pass) {
    if (skipped == 0)
      passes.addPass(std::move(pass));
    else
      --skipped;
  };
  add(llvm::InstCombinePass());
  add(llvm::SCCPPass()); // ranges decide comparisons
  add(llvm::EarlyCSEPass());
  add(llvm::InstCombinePass());
  return passes;
}

/// Not again where nothing has changed since: kernels without loops are left alone by what comes between two of them.
class EarlyCse : public llvm::EarlyCSEPass {
public:
  using EarlyCSEPass::EarlyCSEPass;
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    auto &runs = analyses.getResult<llvm::LastRunTrackingAnalysis>(function);
    if (runs.shouldSkip(&id))
      return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses preserved = EarlyCSEPass::run(function, analyses);
    runs.update(&id, /*Changed=*/!preserved.areAllPreserved());
    preserved.preserve<llvm::LastRunTrackingAnalysis>();
    return preserved;
  }

private:
  static constexpr char id = 0;
};

/// Loads and stores of libdevice's tables and of shared memory are seen through by MemorySSA.
EarlyCse earlyCse() { return EarlyCse(/*UseMemorySSA=*/true); }

llvm::LICMPass hoist(bool speculatively) {
  llvm::LICMOptions options;
  options.AllowSpeculation = speculatively;
  return llvm::LICMPass(options);
}

llvm::LoopPassManager loopPasses() {
  llvm::LoopPassManager loops;
  loops.addPass(hoist(/*speculatively=*/false));
  loops.addPass(llvm::LoopRotatePass());
  loops.addPass(hoist(/*speculatively=*/true));
  return loops;
}

llvm::SimplifyCFGOptions branchOptions() { return llvm::SimplifyCFGOptions().convertSwitchRangeToICmp(true); }

/// Callees first, so that what is inlined is small, and equal calls of functions without effects are one.
llvm::ModuleInlinerWrapperPass inlinePipeline(llvm::OptimizationLevel level) {
  llvm::ModuleInlinerWrapperPass inliner(llvm::getInlineParams(level.getSpeedupLevel(), level.getSizeLevel()));
  llvm::FunctionPassManager passes;
  passes.addPass(earlyCse());
  passes.addPass(llvm::SpeculativeExecutionPass(/*OnlyIfDivergentTarget=*/true));
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(llvm::SimplifyCFGPass(branchOptions()));
  passes.addPass(llvm::InstCombinePass());
  inliner.getPM().addPass(llvm::PostOrderFunctionAttrsPass());
  inliner.getPM().addPass(llvm::createCGSCCToFunctionPassAdaptor(std::move(passes)));
  return inliner;
}

/// Loops are unrolled by `-O3` only.
llvm::FunctionPassManager loopPipeline(llvm::OptimizationLevel level) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::ReassociatePass()); // of `thread * 8 + block * 1024 + i` all elements share the first sum
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(loopPasses(), /*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(earlyCse());
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(llvm::SimplifyCFGPass(
      branchOptions().convertSwitchToArithmetic(true).hoistCommonInsts(true).sinkCommonInsts(true)));
  if (level == llvm::OptimizationLevel::O3)
    passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(/*OptLevel=*/3)));
  passes.addPass(EarlyCse()); // loops that became one block read the same
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::InferAlignmentPass()); // mergeAccesses forms vectors of what is aligned
  passes.addPass(llvm::SimplifyCFGPass(
      branchOptions().convertSwitchToArithmetic(true).hoistLoadsStoresWithCondFaulting(true).speculateUnpredictables(
          true)));
  return passes;
}

/// The passes of LLVM's O3, in its order, without which the PTX of some kernel with branches or loops got worse
/// (README); below `-O3` without those that unroll loops, below `-O2` without all that change loops.
llvm::ModulePassManager branchingPipeline(llvm::PassBuilder &builder, llvm::OptimizationLevel level) {
  llvm::ModulePassManager passes;
  builder.invokePipelineStartEPCallbacks(passes, level); // NVPTX's: libdevice's `__nvvm_reflect` becomes a constant
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::SimplifyCFGPass()));
  passes.addPass(llvm::IPSCCPPass()); // knows the range of a loop's counter, of which `nuw` on addresses follows
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::InstCombinePass()));
  passes.addPass(inlinePipeline(level));
  if (level != llvm::OptimizationLevel::O1)
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(loopPipeline(level)));
  passes.addPass(llvm::GlobalDCEPass());
  return passes;
}

/// What instruction selection cannot do without: libdevice's questions answered, and what must be inlined.
llvm::ModulePassManager requiredPipeline(llvm::PassBuilder &builder) {
  llvm::ModulePassManager passes;
  builder.invokePipelineStartEPCallbacks(passes, llvm::OptimizationLevel::O0);
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  return passes;
}

llvm::ModulePassManager pipelineOf(const llvm::Module &module, llvm::PassBuilder &builder,
                                   llvm::OptimizationLevel level, llvm::StringRef startAfter) {
  if (level == llvm::OptimizationLevel::O0)
    return requiredPipeline(builder);
  if (!isStraightLine(module))
    return branchingPipeline(builder, level);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(straightLinePipeline(startAfter)));
  return passes;
}

/// Loops whose rounds multiply so many fragments stay loops: LLVM would go through a few rounds to find that out.
void keepLongRounds(llvm::Module &module) {
  constexpr llvm::StringLiteral product = "llvm.nvvm.mma.";
  constexpr int64_t leastProducts = 64;
  auto isProduct = [&](const llvm::Instruction &instruction) {
    auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with(product);
  };
  if (llvm::none_of(module, [&](const llvm::Function &each) { return each.getName().starts_with(product); }))
    return;
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      int64_t products = 0;
      for (const llvm::BasicBlock *block : loop->blocks())
        products += llvm::count_if(*block, isProduct);
      if (products >= leastProducts)
        loop->setLoopAlreadyUnrolled();
    }
  }
}

} // namespace

bool isStraightLine(const llvm::Module &module) {
  unsigned blocks = 0;
  for (const llvm::Function &function : module)
    blocks += function.size();
  return blocks == 1;
}

void runPasses(llvm::Module &module, llvm::PassBuilder &builder, llvm::ModulePassManager passes) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  passes.run(module, modules);
}

std::vector<std::pair<std::string, std::string>> llvmPipelines(unsigned optimizationLevel) {
  DiagnosticEngine diagnostics;
  LlvmOptions options;
  options.optimizationLevel = optimizationLevel;
  llvm::TargetMachine *machine = targetMachine(*findTarget("sm_90"), options, diagnostics);
  llvm::PassInstrumentationCallbacks callbacks; // know the passes' names
  llvm::PassBuilder builder(machine, {}, std::nullopt, &callbacks);
  auto print = [&](auto pipeline) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    pipeline.printPipeline(stream, [&](llvm::StringRef name) { return callbacks.getPassNameForClassName(name); });
    return text;
  };
  llvm::OptimizationLevel level = levelOf(optimizationLevel);
  if (level == llvm::OptimizationLevel::O0)
    return {{print(requiredPipeline(builder)), ""}};
  return {{print(straightLinePipeline("")), "; kernels of one block"},
          {print(branchingPipeline(builder, level)), "; kernels of several blocks"}};
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target,
              const LlvmOptions &options) {
  if (isDone("pack-pairs", options))
    return;
  llvm::PassInstrumentationCallbacks callbacks;
  if (options.pass)
    tellOfPasses(callbacks, module, options.pass);
  if (!options.disabled.empty())
    leaveOutPasses(callbacks, options.disabled);
  const bool isWatched = options.pass || !options.disabled.empty();
  llvm::PassBuilder builder(&machine, {}, std::nullopt, isWatched ? &callbacks : nullptr);
  llvm::OptimizationLevel level = levelOf(options.optimizationLevel);
  if (level == llvm::OptimizationLevel::O3)
    keepLongRounds(module);
  runPasses(module, builder, pipelineOf(module, builder, level, options.startAfter));
  if (options.optimizationLevel > 0)
    runStep("pack-pairs", module, options, [&] {
      packIntegers(module, target);
      packPairs(module, target);
      packBytes(module);
    });
}

namespace {

/// `1/x` is left to instruction selection, which picks rcp.approx for approximate divisions; the rest becomes div.full.
void lowerDivision(llvm::BinaryOperator &division) {
  llvm::Value *numerator = division.getOperand(0);
  if (auto *constant = llvm::dyn_cast<llvm::ConstantFP>(numerator); constant && constant->isExactlyValue(1.0))
    return;
  llvm::IRBuilder<> builder(&division);
  llvm::Value *quotient = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_div_full, {numerator, division.getOperand(1)});
  quotient->takeName(&division);
  division.replaceAllUsesWith(quotient);
  division.eraseFromParent();
}

bool isFloatDivision(const llvm::Instruction &instruction) {
  return instruction.getOpcode() == llvm::Instruction::FDiv && instruction.getType()->getScalarType()->isFloatTy();
}

/// A vector division becomes scalar ones: no target divides packed floats.
void scalarize(llvm::BinaryOperator &division) {
  llvm::IRBuilder<> builder(&division);
  builder.setFastMathFlags(division.getFastMathFlags());
  auto *type = llvm::cast<llvm::FixedVectorType>(division.getType());
  llvm::Value *result = llvm::PoisonValue::get(type);
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    llvm::Value *numerator = builder.CreateExtractElement(division.getOperand(0), i);
    llvm::Value *quotient = builder.CreateFDiv(numerator, builder.CreateExtractElement(division.getOperand(1), i));
    result = builder.CreateInsertElement(result, quotient, i);
    if (auto *scalar = llvm::dyn_cast<llvm::BinaryOperator>(quotient))
      lowerDivision(*scalar);
  }
  division.replaceAllUsesWith(result);
  division.eraseFromParent();
}

} // namespace

void allowFastDivisions(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (isFloatDivision(instruction) ||
          (instruction.getOpcode() == llvm::Instruction::FNeg && instruction.getType()->getScalarType()->isFloatTy()))
        instruction.setHasApproxFunc(true); // of `-(x / c)`, which becomes `x / -c`, the sign's flags are kept
}

void lowerDivisions(llvm::Module &module) {
  std::vector<llvm::BinaryOperator *> divisions;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (isFloatDivision(instruction) && instruction.hasApproxFunc())
        divisions.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
  for (llvm::BinaryOperator *division : divisions)
    if (division->getType()->isVectorTy())
      scalarize(*division);
    else
      lowerDivision(*division);
}

} // namespace hloc
