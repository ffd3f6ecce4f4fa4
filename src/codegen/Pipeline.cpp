#include "hloc/codegen/Pipeline.h"

#include "hloc/passes/Passes.h"

#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void hloc::buildKernelPipeline(OpPassManager &manager, const PipelineOptions &options) {
  auto function = [&]() -> OpPassManager & { return manager.nest<func::FuncOp>(); };

  // --- structure: helpers are pasted in, loops over maps become loops
  // Helpers are pasted into their callers, what is equal once.
  manager.addPass(createInline());
  // Bounds checks leave the main part of a loop.
  function().addPass(createPeelLoops());
  // Loops over maps, predicated accesses and warp reductions become scf and shuffles.
  function().addPass(createLowerXlaGpuToScf());

  // --- memory: indices count elements in the order of their bytes
  // Tensors become rank 1, and the maps of their indices one map.
  manager.addPass(createFlattenTensors());
  // Consecutive accesses become vectors.
  function().addPass(createVectorizeLoadsStores());
  // Short loops are unrolled, and so are all vectors.
  OptimizeLoopsOptions unroll;
  unroll.maxUnrollFactor = options.maxUnrollFactor;
  function().addPass(createOptimizeLoops(unroll));
  // What unrolling left behind is folded, maps are simplified, equal loads are merged.
  GreedyRewriteConfig once;
  once.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled).setMaxIterations(4);
  manager.addPass(createCanonicalizerPass(once));
  manager.addPass(createCSEPass());
  // What does not change in the loops that are left moves out of them.
  function().addPass(createLoopInvariantCodeMotionPass());

  // --- pointers
  // Helpers that remain learn which buffers they are given: their loads may be invariant too.
  manager.addPass(createPropagateSliceIndices());
  // Calls are calls from here on.
  function().addPass(createConvertPureCall());
  // Tensors become pointers; alignment is read off the maps, so they are still there.
  LowerTensorsOptions memory;
  memory.maxVectorBytes = options.maxVectorBytes;
  memory.computeCapability = options.computeCapability;
  manager.addPass(createLowerTensors(memory));
  // Pointers to the same buffer become one, all others cannot alias.
  manager.addPass(createMergePointersToSameSlice());

  // --- scalars
  // Maps become unsigned arithmetic.
  manager.addPass(createLowerIndex());
  // Complex arithmetic becomes that of the parts.
  manager.addPass(createConvertComplexToStandardPass());
  // Small floats become integers.
  ExpandFloatsOptions floats;
  floats.computeCapability = options.computeCapability;
  manager.addPass(createExpandFloats(floats));
  // Elementary functions become arithmetic.
  ExpandMathOptions math;
  math.computeCapability = floats.computeCapability;
  manager.addPass(createExpandMath(math));
  manager.addPass(createCSEPass());

  // --- LLVM
  // Structured control flow becomes branches.
  manager.addPass(createSCFToControlFlowPass());
  // Everything else becomes LLVM dialect.
  manager.addPass(createLowerToLlvm());
}
