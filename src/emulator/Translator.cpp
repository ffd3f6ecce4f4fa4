// Host code by LLVM's ORC: one module and one function per kernel, for the processor it runs on.
#include "WarpCode.h"

#include "hloc/support/Check.h"
#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/Twine.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <cmath>
#include <cstring>
#include <mutex>

// Of the compiler's library: f16.
extern "C" {
float __extendhfsf2(_Float16);
_Float16 __truncdfhf2(double);
_Float16 __truncsfhf2(float);
}

namespace hloc::emulator {

using namespace llvm;

struct Translator::Impl {
  MachineFunctions machine;
  std::unique_ptr<orc::LLJIT> jit;
  std::unique_ptr<TargetMachine> target;
  unsigned numFunctions = 0;
  BumpPtrAllocator records; ///< that the code refers to
};

Translator::Translator() : impl(std::make_unique<Impl>()) {}
Translator::~Translator() = default;

/// Host code calls nothing but the emulator, by address, and these: what LLVM calls where the processor has no
/// instruction (fused multiply-add, f16, rounding), and for blocks of memory.
static Error defineCalled(orc::LLJIT &jit) {
  orc::SymbolMap symbols;
  auto define = [&](const char *name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported};
  };
  using OfDoubles = double (*)(double);
  using OfFloats = float (*)(float);
#define CALLED(FUNCTION, TYPE) define(#FUNCTION, static_cast<TYPE>(FUNCTION))
  CALLED(ceil, OfDoubles);
  CALLED(floor, OfDoubles);
  CALLED(rint, OfDoubles);
  CALLED(roundeven, OfDoubles);
  CALLED(trunc, OfDoubles);
  CALLED(ceilf, OfFloats);
  CALLED(floorf, OfFloats);
  CALLED(rintf, OfFloats);
  CALLED(roundevenf, OfFloats);
  CALLED(truncf, OfFloats);
  CALLED(fma, double (*)(double, double, double));
  CALLED(fmaf, float (*)(float, float, float));
  CALLED(fmax, double (*)(double, double));
  CALLED(fmaxf, float (*)(float, float));
  CALLED(fmin, double (*)(double, double));
  CALLED(fminf, float (*)(float, float));
  CALLED(memcpy, void *(*)(void *, const void *, size_t));
  CALLED(memmove, void *(*)(void *, const void *, size_t));
  CALLED(memset, void *(*)(void *, int, size_t));
  CALLED(__extendhfsf2, float (*)(_Float16));
  CALLED(__truncdfhf2, _Float16 (*)(double));
  CALLED(__truncsfhf2, _Float16 (*)(float));
#undef CALLED
  return jit.getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols)));
}

std::unique_ptr<Translator> Translator::create(const MachineFunctions &machine, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  std::unique_ptr<Translator> translator(new Translator);
  Impl &impl = *translator->impl;
  impl.machine = machine;
  auto fail = [&](Error problem) {
    error = toString(std::move(problem));
    return nullptr;
  };
  auto builder = orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return fail(builder.takeError());
  auto target = builder->createTargetMachine();
  if (!target)
    return fail(target.takeError());
  impl.target = std::move(*target);
  auto jit = orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*builder))
                 .setLinkProcessSymbolsByDefault(false)
                 .setPlatformSetUp(orc::setUpInactivePlatform) // no constructors
                 .setCompileFunctionCreator([&impl](const orc::JITTargetMachineBuilder &) {
                   return std::make_unique<orc::SimpleCompiler>(*impl.target);
                 })
                 .create();
  if (!jit)
    return fail(jit.takeError());
  impl.jit = std::move(*jit);
  if (Error problem = defineCalled(*impl.jit))
    return fail(std::move(problem));
  return translator;
}

/// Registers become SSA values; the rest is cheap cleaning, which takes a tenth of the time that the host's compiler
/// does.
static void optimize(llvm::Module &module, TargetMachine &target) {
  PassBuilder builder(&target);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager cgscc;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  FunctionPassManager passes;
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(EarlyCSEPass(true));
  passes.addPass(SimplifyCFGPass());
  passes.addPass(InstCombinePass());
  passes.addPass(EarlyCSEPass(true));
  passes.addPass(ADCEPass());
  ModulePassManager manager;
  manager.addPass(createModuleToFunctionPassAdaptor(std::move(passes)));
  manager.run(module, modules);
}

/// LLVM 22 for AVX512 miscompiles `select(mask, copysign(load, x), x)`: it takes the load for another operand of the
/// masked vpternlog than its table of bits does. What is frozen is no memory operand.
static void keepLoadsOutOfCopysign(Function &function) {
  for (Instruction &instr : instructions(function)) {
    auto *call = dyn_cast<IntrinsicInst>(&instr);
    if (!call || call->getIntrinsicID() != Intrinsic::copysign)
      continue;
    IRBuilder<> ir(call);
    for (Use &operand : call->args())
      if (!isa<Constant>(operand))
        operand.set(ir.CreateFreeze(operand));
  }
}

/// Instruction selection takes time that grows with the square of a block's length. Long blocks are cut, by branches
/// that look as if they might leave: unconditional ones would be removed again.
static void cutLongBlocks(Function &function) {
  constexpr unsigned limit = 400;
  BasicBlock *leave = nullptr;
  SmallVector<BasicBlock *, 16> blocks(make_pointer_range(function));
  for (BasicBlock *block : blocks) {
    if (block->isEntryBlock())
      continue; // its allocations must stay there
    while (block->size() > limit + limit / 2) {
      if (!leave) {
        leave = BasicBlock::Create(function.getContext(), "leave", &function);
        llvm::Type *result = function.getReturnType();
        ReturnInst::Create(function.getContext(), result->isVoidTy() ? nullptr : Constant::getNullValue(result), leave);
      }
      BasicBlock *rest = block->splitBasicBlock(std::next(block->getFirstNonPHIIt(), limit));
      block->getTerminator()->eraseFromParent();
      IRBuilder<> ir(block);
      ir.CreateCondBr(ir.CreateIsNotNull(function.getArg(0)), rest, leave);
      block = rest;
    }
  }
}

WarpFunction Translator::translate(const Kernel &kernel, const TranslateOptions &options,
                                   DiagnosticEngine &diagnostics) {
  auto context = std::make_unique<LLVMContext>();
  auto module = std::make_unique<llvm::Module>(kernel.name, *context);
  module->setDataLayout(impl->jit->getDataLayout());
  module->setTargetTriple(impl->target->getTargetTriple());
  std::string name = ("warp" + Twine(impl->numFunctions++)).str();
  if (!WarpCode(*module, kernel, impl->machine, options, impl->records, diagnostics).build(name))
    return nullptr;
#ifndef NDEBUG
  std::string wrong;
  raw_string_ostream explanation(wrong);
  HLOC_CHECK(!verifyModule(*module, &explanation), ("translated kernel is not valid LLVM IR: " + wrong).c_str());
#endif
  for (Function &function : *module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("target-cpu", impl->target->getTargetCPU());
    function.addFnAttr("target-features", impl->target->getTargetFeatureString());
    function.addFnAttr(Attribute::NoUnwind);
  }
  impl->target->setOptLevel(options.quickly ? CodeGenOptLevel::None : CodeGenOptLevel::Less);
  optimize(*module, *impl->target);
  for (Function &function : *module)
    if (!function.isDeclaration()) {
      keepLoadsOutOfCopysign(function);
      cutLongBlocks(function);
    }
  auto report = [&](Error problem) {
    diagnostics.report(DiagnosticKind::Internal, "kernel `" + kernel.name + "`: " + toString(std::move(problem)));
    return nullptr;
  };
  if (Error problem = impl->jit->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))))
    return report(std::move(problem));
  auto address = impl->jit->lookup(name);
  if (!address)
    return report(address.takeError());
  return address->toPtr<WarpFunction>();
}

bool needsFibers(const Kernel &kernel) {
  return llvm::any_of(kernel.code, [](const Decoded &d) {
    return ((d.opcode == Opcode::Bar || d.opcode == Opcode::Barrier) && d.mode != Mode::All) ||
           d.opcode == Opcode::AsyncStore || d.opcode == Opcode::Mbarrier || d.opcode == Opcode::Bulk ||
           d.opcode == Opcode::Wgmma || d.opcode == Opcode::ClusterBarrier || d.opcode == Opcode::Setmaxnreg;
  });
}

bool hasGlobalAtomics(const Kernel &kernel) {
  return llvm::any_of(kernel.code, [](const Decoded &d) {
    return (d.opcode == Opcode::Atom || d.opcode == Opcode::Red) && !isShared(d.space);
  });
}

} // namespace hloc::emulator
