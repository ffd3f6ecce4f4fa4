#include "hloc/codegen/Pipeline.h"

#include "hloc/passes/Passes.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace hloc;

namespace {

/// Receives each pass and whether it runs on functions.
using AddPass = llvm::function_ref<void(std::unique_ptr<Pass>, bool onFunctions)>;

void listPasses(const PipelineOptions &options, AddPass add) {
  auto run = [&](std::unique_ptr<Pass> pass) { add(std::move(pass), false); };
  auto runOnFunctions = [&](std::unique_ptr<Pass> pass) { add(std::move(pass), true); };

  // --- structure: helpers are pasted in, loops over maps become loops
  // Helpers are pasted into their callers, what is equal once.
  run(createInline());
  // Bounds checks leave the main part of a loop.
  runOnFunctions(createPeelLoops());
  // Loops over maps, predicated accesses and warp reductions become scf and shuffles.
  LowerXlaGpuToScfOptions loops;
  loops.computeCapability = options.computeCapability;
  loops.reducesFloats = options.reducesFloats;
  runOnFunctions(createLowerXlaGpuToScf(loops));

  // --- memory: indices count elements in the order of their bytes
  // Tensors become rank 1, and the maps of their indices one map.
  run(createFlattenTensors());
  // Consecutive accesses become vectors.
  runOnFunctions(createVectorizeLoadsStores());
  // Short loops are unrolled, and so are all vectors.
  OptimizeLoopsOptions unroll;
  unroll.maxUnrollFactor = options.maxUnrollFactor;
  runOnFunctions(createOptimizeLoops(unroll));
  // Elements that take the same way take it together.
  runOnFunctions(createJoinBranches());
  // What unrolling left behind is folded, maps are simplified, equal loads are merged.
  GreedyRewriteConfig once;
  once.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled).setMaxIterations(4);
  // (All that loops carry would be compared with each other: a fragment's 64 sums, at every change of a loop.)
  run(createCanonicalizerPass(once, {"(anonymous namespace)::RemoveDuplicateSuccessorInputUses"}));
  run(createCse());
  // What does not change in the loops that are left moves out of them.
  runOnFunctions(createLoopInvariantCodeMotionPass());

  // --- pointers
  // Helpers that remain learn which buffers they are given: their loads may be invariant too.
  run(createPropagateSliceIndices());
  // Calls are calls from here on.
  runOnFunctions(createConvertPureCall());
  // Tensors become pointers; alignment is read off the maps, so they are still there.
  LowerTensorsOptions memory;
  memory.maxVectorBytes = options.maxVectorBytes;
  memory.computeCapability = options.computeCapability;
  run(createLowerTensors(memory));
  // Pointers to the same buffer become one, all others cannot alias.
  run(createMergePointersToSameSlice());

  // --- scalars
  // Maps become unsigned arithmetic.
  run(createLowerIndex());
  // What is multiplied by one and what was put together only to be taken apart disappears.
  run(createFold());
  // Complex arithmetic becomes that of the parts.
  run(createConvertComplexToStandard());
  // Small floats become integers.
  ExpandFloatsOptions floats;
  floats.computeCapability = options.computeCapability;
  run(createExpandFloats(floats));
  // Elementary functions become arithmetic.
  ExpandMathOptions math;
  math.computeCapability = floats.computeCapability;
  run(createExpandMath(math));
  run(createCse());

  // --- LLVM
  // Structured control flow becomes branches.
  SCFToControlFlowPassOptions branches;
  branches.allowPatternRollback = false; // its patterns succeed or fail before they change anything
  run(createSCFToControlFlowPass(branches));
  // Everything else becomes LLVM dialect.
  run(createLowerToLlvm());
}

} // namespace

static bool isDisabled(size_t number, const DisabledPasses &disabled) {
  const PassName &pass = kernelPasses()[number];
  return disabled.has("mlir", pass.name, pass.id);
}

void hloc::buildKernelPipeline(OpPassManager &manager, const PipelineOptions &options, PassRange range) {
  size_t number = 0;
  listPasses(options, [&](std::unique_ptr<Pass> pass, bool onFunctions) {
    const bool isInRange = number >= range.begin && number < range.end;
    if (isInRange && (options.disabled.empty() || !isDisabled(number, options.disabled)))
      (onFunctions ? manager.nest<func::FuncOp>() : manager).addPass(std::move(pass));
    ++number;
  });
}

void hloc::buildKernelPipeline(OpPassManager &manager, const PipelineOptions &options) {
  buildKernelPipeline(manager, options, PassRange());
}

const std::vector<PassName> &hloc::kernelPasses() {
  static const std::vector<PassName> passes = [] {
    std::vector<PassName> names;
    listPasses(PipelineOptions(), [&](std::unique_ptr<Pass> pass, bool) {
      std::string argument = pass->getArgument().str();
      StringRef name = argument;
      name.consume_front("hloc-"); // dumps carry the names of the published description
      names.push_back({name.str(), name.str(), pass->getDescription().str(), argument});
    });
    for (size_t i = 0; i < names.size(); ++i) {
      auto same = [&](const PassName &other) { return other.name == names[i].name; };
      if (llvm::count_if(names, same) > 1)
        names[i].id += "#" + std::to_string(1 + std::count_if(names.begin(), names.begin() + i, same));
    }
    return names;
  }();
  return passes;
}
