#include "LlvmStageParts.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Operator.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"

#include <mutex>

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

/// Above this many instructions kernels are not packed: the SLP vectoriser's time grows faster than they do (0.1 s for
/// 4,000 instructions of bf16, 25 s for 130,000).
constexpr size_t maxInstructionsToPack = 4000;

/// Whether packing scalars into vectors can pay: PTX computes on pairs of 16-bit floats, and from sm_100 on of f32.
/// Elsewhere the SLP vectoriser finds nothing and takes a third of the time of large kernels.
bool worthPacking(const llvm::Module &module, const TargetInfo &target) {
  size_t instructions = 0;
  bool packable = false;
  for (const llvm::Function &function : module)
    for (const llvm::BasicBlock &block : function)
      for (const llvm::Instruction &instruction : block) {
        if (++instructions > maxInstructionsToPack)
          return false;
        const auto *math = llvm::dyn_cast<llvm::FPMathOperator>(&instruction);
        if (!math || llvm::isa<llvm::FPExtInst>(math))
          continue;
        const llvm::Type *type = math->getType()->getScalarType();
        packable |= type->isHalfTy() || type->isBFloatTy() || (type->isFloatTy() && target.atLeast(10, 0));
      }
  return packable;
}

/// PTX has pairs and nothing wider, but the vectoriser tries all lengths first, which takes 9 of the 12 ms of gelu's
/// optimisation and interleaves so much that registers double. It takes this limit as a process-wide option only.
void packPairsOnly() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto it = options.find("slp-max-vf"); it != options.end())
      it->second->addOccurrence(0, "slp-max-vf", "2");
  });
}

} // namespace

void optimize(llvm::Module &module, llvm::TargetMachine &machine, const TargetInfo &target,
              const LlvmOptions &options) {
  packPairsOnly();
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = worthPacking(module, target);
  tuning.LoopVectorization = false; // a thread has no vector units; emitters vectorise accesses themselves
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::OptimizationLevel level = levelOf(options.optimizationLevel);
  llvm::ModulePassManager pipeline = level == llvm::OptimizationLevel::O0
                                         ? builder.buildO0DefaultPipeline(level)
                                         : builder.buildPerModuleDefaultPipeline(level);
  pipeline.run(module, modules);
}

namespace {

/// `1/x` is left to instruction selection, which picks rcp.approx for approximate divisions; the rest becomes div.full.
void lowerDivision(llvm::BinaryOperator &division) {
  llvm::Value *numerator = division.getOperand(0);
  if (auto *constant = llvm::dyn_cast<llvm::ConstantFP>(numerator); constant && constant->isExactlyValue(1.0)) {
    division.setHasApproxFunc(true);
    return;
  }
  llvm::IRBuilder<> builder(&division);
  llvm::Value *quotient = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_div_full, {numerator, division.getOperand(1)});
  quotient->takeName(&division);
  division.replaceAllUsesWith(quotient);
  division.eraseFromParent();
}

/// A vector division becomes scalar ones: no target divides packed floats.
void scalarize(llvm::BinaryOperator &division) {
  llvm::IRBuilder<> builder(&division);
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

void lowerDivisions(llvm::Module &module) {
  std::vector<llvm::BinaryOperator *> divisions;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (instruction.getOpcode() == llvm::Instruction::FDiv && instruction.getType()->getScalarType()->isFloatTy())
          divisions.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
  for (llvm::BinaryOperator *division : divisions)
    if (division->getType()->isVectorTy())
      scalarize(*division);
    else if (!division->hasApproxFunc())
      lowerDivision(*division);
}

} // namespace hloc
