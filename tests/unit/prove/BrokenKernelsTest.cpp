// Kernels and plans broken by hand, of every hero that has few threads to a kernel of common size: each is refuted, and
// the emulator finds the same at the witness, in the PTX.
#include "hloc/prove/Prove.h"

#include "hloc/codegen/LlvmStage.h"
#include "hloc/codegen/Pipeline.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/emulator/Emulator.h"
#include "hloc/hlo/HloModule.h"
#include "hloc/parser/Parser.h"
#include "hloc/passes/Passes.h"
#include "unit/SystemToolchain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace hloc;
using emulator::FindingKind;

namespace {

// --- ways to break a kernel

using Change = std::function<void(mlir::ModuleOp)>;
using PlanChange = std::function<void(KernelPlan &)>;

template <typename Op> Op nth(mlir::ModuleOp module, unsigned n, llvm::function_ref<bool(Op)> isMeant = nullptr) {
  Op found;
  module.walk([&](Op op) {
    if (!found && (!isMeant || isMeant(op)) && n-- == 0)
      found = op;
  });
  REQUIRE(found);
  return found;
}

/// The first loop whose map says where an output is written.
xla_gpu::LoopOp writingLoop(mlir::ModuleOp module) {
  mlir::Type output = nth<mlir::func::ReturnOp>(module, 0).getOperand(0).getType();
  return nth<xla_gpu::LoopOp>(module, 0, [&](xla_gpu::LoopOp loop) {
    return loop.indexingMap().affine().getNumResults() > 0 && llvm::is_contained(loop.getResultTypes(), output);
  });
}

void setMap(xla_gpu::LoopOp loop, llvm::function_ref<void(llvm::SmallVectorImpl<mlir::AffineExpr> &,
                                                          llvm::SmallVectorImpl<IndexingMap::Constraint> &)>
                                      change) {
  const IndexingMap &map = loop.indexingMap();
  llvm::SmallVector<mlir::AffineExpr> results(map.affine().getResults());
  llvm::SmallVector<IndexingMap::Constraint> constraints(map.constraints());
  change(results, constraints);
  auto affine =
      mlir::AffineMap::get(unsigned(map.dims().size()), unsigned(map.ranges().size()), results, map.context());
  loop.setMapAttr(xla_gpu::IndexingMapAttr::get(IndexingMap(affine, map.dims(), map.ranges(), {}, constraints)));
}

/// The elements that are written lie `by` further along the `n`th dimension.
Change shifted(unsigned n, int64_t by) {
  return [=](mlir::ModuleOp module) {
    setMap(writingLoop(module), [&](auto &results, auto &) { results[n] = results[n] + by; });
  };
}
/// Two neighbours along the `n`th dimension are written as one.
Change halved(unsigned n) {
  return [=](mlir::ModuleOp module) {
    setMap(writingLoop(module), [&](auto &results, auto &) { results[n] = results[n].floorDiv(2); });
  };
}
/// All threads write, also those beyond the edge.
void unguard(mlir::ModuleOp module) {
  setMap(writingLoop(module), [](auto &, auto &constraints) {
    REQUIRE(!constraints.empty());
    constraints.clear();
  });
}
/// The `n`th barrier is not there.
Change withoutBarrier(unsigned n) {
  return [=](mlir::ModuleOp module) {
    auto barrier = nth<xla_gpu::SyncThreadsOp>(module, n);
    barrier->replaceAllUsesWith(barrier->getOperands());
    barrier.erase();
  };
}
/// Only the first threads come to the `n`th barrier.
Change barrierOfSome(unsigned n, int64_t threads) {
  return [=](mlir::ModuleOp module) {
    auto barrier = nth<xla_gpu::SyncThreadsOp>(module, n);
    auto thread = nth<mlir::gpu::ThreadIdOp>(module, 0);
    mlir::OpBuilder b(barrier);
    auto most = b.create<mlir::arith::ConstantIndexOp>(barrier.getLoc(), threads);
    auto isFirst = b.create<mlir::arith::CmpIOp>(barrier.getLoc(), mlir::arith::CmpIPredicate::ult, thread, most);
    auto branch = b.create<mlir::scf::IfOp>(barrier.getLoc(), barrier->getResultTypes(), isFirst, /*withElse=*/true);
    barrier->replaceAllUsesWith(branch.getResults());
    branch.getElseBodyBuilder().create<mlir::scf::YieldOp>(barrier.getLoc(), barrier->getOperands());
    barrier->moveBefore(branch.thenBlock(), branch.thenBlock()->begin());
    branch.getThenBodyBuilder().create<mlir::scf::YieldOp>(barrier.getLoc(), barrier->getResults());
  };
}
/// Copies into shared memory are waited for one step too late.
void awaitLess(mlir::ModuleOp module) {
  module.walk([](xla_gpu::AwaitCopiesOp op) { op.setOpen(op.getOpen() + 1); });
}
/// Arguments of functions are said to be less than they are.
void claimLess(mlir::ModuleOp module) {
  bool changed = false;
  module.walk([&](mlir::func::FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto bounds = function.getArgAttrOfType<mlir::ArrayAttr>(i, xla_gpu::attr::range)) {
        int64_t upper = llvm::cast<mlir::IntegerAttr>(bounds[1]).getInt();
        function.setArgAttr(i, xla_gpu::attr::range, xla_gpu::rangeAttr(module.getContext(), Interval{0, upper - 1}));
        changed = true;
      }
  });
  REQUIRE(changed);
}
PlanChange grid(int64_t by) {
  return [=](KernelPlan &plan) { plan.launch.grid.x = uint32_t(plan.launch.grid.x + by); };
}

// --- the kernels

const char *const elementwise =
    "HloModule m\nENTRY e { p = f32[37,1001] parameter(0) ROOT n = f32[37,1001] negate(p) }";
const char *const transposed =
    "HloModule m\nENTRY e { p = f32[67,259] parameter(0) ROOT t = f32[259,67] transpose(p), dimensions={1,0} }";
const char *const concatenated = "HloModule m\nENTRY e { p = f32[64,1024] parameter(0) q = f32[64,1024] parameter(1) "
                                 "ROOT c = f32[64,2048] concatenate(p, q), dimensions={1} }";
const char *const summed =
    "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    "ENTRY e { p = f32[48,4096] parameter(0) z = f32[] constant(0) ROOT r = f32[48] reduce(p, z), dimensions={1}, "
    "to_apply=add }";
const char *const columnSums =
    "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    "ENTRY e { p = f32[512,384] parameter(0) z = f32[] constant(0) ROOT r = f32[384] reduce(p, z), dimensions={0}, "
    "to_apply=add }";
const char *const softmax =
    "HloModule m\nmax { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n"
    "ENTRY e { p = f32[64,2048] parameter(0) i = f32[] constant(-inf) m = f32[64] reduce(p, i), dimensions={1}, "
    "to_apply=max\n b = f32[64,2048] broadcast(m), dimensions={0} ROOT s = f32[64,2048] subtract(p, b) }";
const char *const product =
    "HloModule m\nENTRY e { p = bf16[128,256] parameter(0) q = bf16[256,192] parameter(1) ROOT d = "
    "bf16[128,192] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
const char *const slices =
    "HloModule m\nENTRY e { p = f32[64,1024] parameter(0) a = f32[64,300] slice(p), slice={[0:64], [0:300]} "
    "b = f32[64,300] slice(p), slice={[0:64], [500:800]} n = f32[64,300] negate(a) "
    "ROOT t = (f32[64,300], f32[64,300]) tuple(n, b) }";

const char *const attention =
    "HloModule m\nmax { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n"
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    "ENTRY e { q = bf16[4,256,64] parameter(0) k = bf16[4,256,64] parameter(1) v = bf16[4,256,64] parameter(2)\n"
    "s = f32[4,256,256] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={2}\n"
    "i = f32[] constant(-inf) m = f32[4,256] reduce(s, i), dimensions={2}, to_apply=max\n"
    "mb = f32[4,256,256] broadcast(m), dimensions={0,1} d = f32[4,256,256] subtract(s, mb)\n"
    "x = f32[4,256,256] exponential(d) z = f32[] constant(0)\n"
    "t = f32[4,256] reduce(x, z), dimensions={2}, to_apply=add tb = f32[4,256,256] broadcast(t), dimensions={0,1}\n"
    "w = f32[4,256,256] divide(x, tb) p = bf16[4,256,256] convert(w)\n"
    "ROOT o = bf16[4,256,64] dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={1} }";

struct Case {
  const char *name, *hlo, *hero;
  ProofProperty property;
  std::vector<FindingKind> findings; ///< one of these; none: the emulator has no such check
  Change change = nullptr;
  PlanChange planChange = nullptr;
};

constexpr auto writtenOnce = ProofProperty::WrittenOnce, inBounds = ProofProperty::InBounds,
               ordered = ProofProperty::Ordered, fitsWidth = ProofProperty::FitsWidth,
               barriersReached = ProofProperty::BarriersReached;
const std::vector<FindingKind> outside = {FindingKind::OutOfBounds}, unwritten = {FindingKind::UnwrittenOutput},
                               race = {FindingKind::SharedRace, FindingKind::UninitializedRead, FindingKind::OpenCopy},
                               twice = {FindingKind::GlobalRace},
                               stuck = {FindingKind::DivergentBarrier, FindingKind::Deadlock};

std::vector<Case> cases() {
  return {
      {"a block too many", elementwise, "loop", inBounds, outside, unguard, grid(1)},
      {"a block too few", elementwise, "loop", writtenOnce, unwritten, nullptr, grid(-1)},
      {"no edge", elementwise, "loop", inBounds, outside, unguard},
      {"one row further", elementwise, "loop", inBounds, outside, shifted(0, 1)},
      {"two rows as one", elementwise, "loop", writtenOnce, twice, halved(0)},
      {"indices said to be less", elementwise, "loop", fitsWidth, {}, claimLess},
      {"no barrier", transposed, "transpose", ordered, race, withoutBarrier(0)},
      {"a barrier of some", transposed, "transpose", barriersReached, stuck, barrierOfSome(0, 100)},
      {"no edge", transposed, "transpose", inBounds, outside, unguard},
      {"a block too few", transposed, "transpose", writtenOnce, unwritten, nullptr, grid(-1)},
      {"one row further", transposed, "transpose", inBounds, outside, shifted(0, 1)},
      {"two rows as one", transposed, "transpose", writtenOnce, twice, halved(0)},
      {"no barrier", summed, "row-reduction", ordered, race, withoutBarrier(0)},
      {"a barrier of some", summed, "row-reduction", barriersReached, stuck, barrierOfSome(0, 100)},
      {"a block too few", summed, "row-reduction", writtenOnce, unwritten, nullptr, grid(-1)},
      {"no barrier", columnSums, "column-reduction", ordered, race, withoutBarrier(0)},
      {"a barrier of some", columnSums, "column-reduction", barriersReached, stuck, barrierOfSome(0, 7)},
      {"a block too few", columnSums, "column-reduction", writtenOnce, unwritten, nullptr, grid(-1)},
      {"no barrier", softmax, "rows", ordered, race, withoutBarrier(0)},
      {"a barrier of some", softmax, "rows", barriersReached, stuck, barrierOfSome(0, 70)},
      {"one row further", softmax, "rows", inBounds, outside, shifted(2, 1)},
      {"a block too few", softmax, "rows", writtenOnce, unwritten, nullptr, grid(-1)},
      {"no barrier", product, "contraction", ordered, race, withoutBarrier(0)},
      {"copies awaited too late", product, "contraction", ordered, race, awaitLess},
      {"a block too few", product, "contraction", writtenOnce, unwritten, nullptr, grid(-1)},
      {"two columns as one", concatenated, "concatenate", writtenOnce, {}, halved(1)},
      {"two rows as one", concatenated, "concatenate", writtenOnce, twice, halved(0)},
      {"a block too few", concatenated, "concatenate", writtenOnce, unwritten, nullptr, grid(-1)},
      {"one row further", concatenated, "concatenate", inBounds, outside, shifted(0, 1)},
      {"a block too few", slices, "input-slices", writtenOnce, unwritten, nullptr, grid(-1)},
      {"one row further", slices, "input-slices", inBounds, outside, shifted(0, 1)},
  };
}

const TargetInfo &target() {
  static const TargetInfo found = *findTarget("sm_90");
  return found;
}

/// PTX, without a look at whether the kernel is allowed: a barrier of some threads is not.
std::string compile(mlir::ModuleOp module) {
  mlir::PassManager passes(module.getContext());
  passes.enableVerifier(false);
  buildKernelPipeline(passes, {int64_t(target().major * 10 + target().minor), int64_t(target().maxVectorBytes), 8});
  REQUIRE(succeeded(passes.run(module)));
  LlvmOptions options;
  options.toolchain = &test::systemToolchain();
  DiagnosticEngine diagnostics;
  llvm::FailureOr<std::string> ptx = compileToPtx(module, target(), options, diagnostics);
  REQUIRE(succeeded(ptx));
  return *ptx;
}

// --- the emulator at a witness

struct Launched {
  std::string ptx;
  const KernelSpec &spec;

  /// What the emulator finds at one thread, or, without one, that nobody wrote.
  std::vector<emulator::Finding> findings(std::optional<ProofWitness::Place> place) const {
    emulator::EmulatorOptions options;
    options.numThreads = 1;
    if (place)
      options.findingsOf = std::pair(place->block, uint32_t(place->thread));
    DiagnosticEngine diagnostics;
    diagnostics.setFile(std::make_shared<SourceFile>("k.ptx", ptx));
    auto machine = emulator::Emulator::load(diagnostics, options);
    REQUIRE(machine);
    std::vector<emulator::LaunchArgument> arguments;
    for (const KernelParameter &parameter : spec.parameters) {
      const bool isInput = parameter.role == KernelParameter::Role::Input;
      auto contents = isInput ? emulator::Emulator::Contents::Written : emulator::Emulator::Contents::Unwritten;
      auto id = machine->allocate("b" + std::to_string(arguments.size()), parameter.bytes, contents);
      if (isInput) // values that differ: threads may write the same to one place
        for (auto [i, byte] : llvm::enumerate(machine->bytes(id)))
          byte = uint8_t(i / 4 * 37 % 61);
      arguments.push_back(emulator::BufferArgument{id, 0, parameter.bytes, parameter.written});
    }
    (void)machine->launch({spec.name, spec.grid, spec.block, spec.dynamicSharedBytes, arguments}, diagnostics);
    if (!place)
      for (auto [argument, parameter] : llvm::zip_equal(arguments, spec.parameters))
        if (parameter.role == KernelParameter::Role::Output)
          machine->requireWritten(std::get<emulator::BufferArgument>(argument).buffer, 0, parameter.bytes);
    return machine->findings().vec();
  }

  bool confirms(const PropertyProof &proof, const std::vector<FindingKind> &kinds) const {
    auto isMeant = [&](const emulator::Finding &finding) {
      UNSCOPED_INFO(emulator::findingName(finding.kind).str() << ": " << finding.message);
      return llvm::is_contained(kinds, finding.kind);
    };
    if (proof.property == ProofProperty::BarriersReached) // a warp is reported by its first lane
      return llvm::any_of(findings(std::nullopt), [&](const emulator::Finding &finding) {
        return isMeant(finding) && llvm::any_of(proof.witness->places, [&](const ProofWitness::Place &place) {
                 return place.block == finding.block.x && place.thread / 32 == finding.thread.x / 32;
               });
      });
    if (proof.witness->places.empty())
      return llvm::any_of(findings(std::nullopt), isMeant);
    return llvm::any_of(proof.witness->places,
                        [&](const ProofWitness::Place &place) { return llvm::any_of(findings(place), isMeant); });
  }
};

/// A kernel as it is, or as a changed plan has it.
struct Emitted {
  KernelSpec spec;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

Emitted emit(const char *hlo, const char *hero, mlir::MLIRContext &context, const PlanChange &change = nullptr) {
  DiagnosticEngine diagnostics;
  auto module = parseHloModule(std::make_shared<SourceFile>("test.hlo", hlo), diagnostics);
  REQUIRE(module);
  llvm::FailureOr<FusionGraph> graph = supportedGraph(*module->entry(), diagnostics);
  REQUIRE(succeeded(graph));
  llvm::FailureOr<FusionPlan> plan = planFusion(*graph, {}, target(), diagnostics);
  REQUIRE(succeeded(plan));
  auto &kernel = std::get<KernelPlan>(plan->steps.front());
  if (change)
    change(kernel);
  KernelSpec spec = describeKernel(*graph, *plan, kernel, "k");
  REQUIRE(spec.hero == hero);
  auto emitted = emitKernel(*graph, kernel, "k", context, diagnostics);
  REQUIRE(succeeded(emitted));
  return {spec, std::move(*emitted)};
}

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

void check(const Case &given, mlir::MLIRContext &context) {
  Emitted emitted = emit(given.hlo, given.hero, context, given.planChange);
  if (given.change)
    given.change(*emitted.module);
  INFO(print(*emitted.module));
  KernelProof proof = proveKernel(*emitted.module, emitted.spec);
  const PropertyProof &property = proof.properties[unsigned(given.property)];
  INFO(text(property.property) << ": " << property.reason << ": "
                               << (property.witness ? property.witness->toString() : ""));
  REQUIRE(property.verdict == ProofVerdict::Refuted);
  REQUIRE(property.witness);
  if (!given.findings.empty())
    CHECK(Launched{compile(*emitted.module), emitted.spec}.confirms(property, given.findings));
}

std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

unsigned countBarriers(mlir::ModuleOp module) {
  unsigned count = 0;
  module.walk([&](xla_gpu::SyncThreadsOp) { ++count; });
  return count;
}

} // namespace

TEST_CASE("what is broken by hand is refuted, and the emulator finds it at the witness") {
  auto context = makeContext();
  for (const Case &given : cases())
    DYNAMIC_SECTION(given.hero << ": " << given.name) { check(given, *context); }
}

TEST_CASE("without one of its barriers a kernel is proved only if the emulator finds nothing") {
  auto context = makeContext();
  const std::pair<const char *, const char *> kernels[] = {{transposed, "transpose"},        {summed, "row-reduction"},
                                                           {columnSums, "column-reduction"}, {softmax, "rows"},
                                                           {product, "contraction"},         {attention, "attention"}};
  unsigned refuted = 0, needless = 0;
  for (auto &[hlo, hero] : kernels) {
    const unsigned barriers = countBarriers(*emit(hlo, hero, *context).module);
    REQUIRE(barriers > 0);
    for (unsigned i = 0; i < barriers; ++i) {
      Emitted emitted = emit(hlo, hero, *context);
      withoutBarrier(i)(*emitted.module);
      INFO(hero << ", barrier " << i << "\n" << print(*emitted.module));
      PropertyProof proof = proveKernel(*emitted.module, emitted.spec).properties[unsigned(ordered)];
      INFO(proof.reason);
      const bool isWrong = !Launched{compile(*emitted.module), emitted.spec}.findings(std::nullopt).empty();
      CHECK(proof.verdict == (isWrong ? ProofVerdict::Refuted : ProofVerdict::Proved));
      (isWrong ? refuted : needless) += 1;
    }
  }
  CAPTURE(refuted, needless);
  CHECK(refuted >= 8);
}
