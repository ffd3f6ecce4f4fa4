// Proofs against what happens: of random fusions as they are emitted, and of the same with their maps broken at random.
#include "hloc/prove/Prove.h"

#include "fuzz/FusionGenerator.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/hlo/Printer.h"
#include "unit/prove/KernelOracle.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

#include <random>

using namespace hloc;
using namespace hloc::testing;

namespace {

const HloComputation &bodyOf(const HloModule &module) {
  const HloInstruction &root = *module.entry()->root();
  return root.opcode() == Opcode::Fusion ? *root.computation(AttributeKey::Calls) : *module.entry();
}

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

struct Tally {
  std::array<unsigned, numProofProperties> proved = {}, refuted = {};
  unsigned wrong = 0, found = 0; ///< kernels that are; of these, those of which something is refuted
  unsigned kernels = 0, decided = 0;
};

/// What is proved does not fail to happen, and what is refuted does.
void compare(mlir::ModuleOp module, const KernelSpec &spec, Tally &tally) {
  KernelProof proof = proveKernel(module, spec);
  ++tally.kernels;
  for (const PropertyProof &property : proof.properties) {
    tally.proved[unsigned(property.property)] += property.verdict == ProofVerdict::Proved;
    tally.refuted[unsigned(property.property)] += property.verdict == ProofVerdict::Refuted;
  }
  constexpr uint64_t mostThreads = 1024;
  if (spec.grid.count() * spec.block.count() > mostThreads)
    return;
  Happened happened = carryOut(module, spec, {});
  if (!happened.decided)
    return;
  ++tally.decided;
  auto isRefuted = [](const PropertyProof &property) { return property.verdict == ProofVerdict::Refuted; };
  const bool isWrong = llvm::any_of(happened.wrong, [](const std::string &wrong) { return !wrong.empty(); });
  tally.wrong += isWrong;
  tally.found += isWrong && llvm::any_of(proof.properties, isRefuted);
  for (const PropertyProof &property : proof.properties) {
    const std::string &wrong = happened.wrong[unsigned(property.property)];
    INFO(text(property.property) << " " << text(property.verdict) << ": " << property.reason << "; "
                                 << (property.witness ? property.witness->toString() : "") << "; happened: " << wrong);
    const bool isOnce = property.property == ProofProperty::WrittenOnce;
    const bool isMissing = isOnce && happened.untouched && proof.untouched.empty();
    if (property.verdict == ProofVerdict::Proved && (!wrong.empty() || isMissing))
      FAIL_CHECK(print(module));
    // Places outside of a dimension are some of the memory, too, which the oracle leaves alone.
    const bool isInside = happened.wrong[unsigned(ProofProperty::InBounds)].empty();
    if (property.verdict == ProofVerdict::Refuted && wrong.empty() && isInside && !isMissing)
      FAIL_CHECK(print(module));
  }
}

/// Another constant somewhere in an expression.
mlir::AffineExpr broken(mlir::AffineExpr expression, unsigned &countdown, std::minstd_rand &random) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expression)) {
    if (countdown-- != 0)
      return expression;
    int64_t value = constant.getValue();
    switch (random() % 3) {
    case 0:
      return mlir::getAffineConstantExpr(value + 1, expression.getContext());
    case 1:
      return mlir::getAffineConstantExpr(value > 1 ? value - 1 : value + 2, expression.getContext());
    default:
      return mlir::getAffineConstantExpr(value > 1 && value % 2 == 0 ? value / 2 : value * 2, expression.getContext());
    }
  }
  auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expression);
  if (!binary)
    return expression;
  mlir::AffineExpr lhs = broken(binary.getLHS(), countdown, random), rhs = broken(binary.getRHS(), countdown, random);
  auto by = llvm::dyn_cast<mlir::AffineConstantExpr>(rhs);
  if (expression.getKind() != mlir::AffineExprKind::Add && expression.getKind() != mlir::AffineExprKind::Mul &&
      (!by || by.getValue() <= 0))
    return expression;
  return mlir::getAffineBinaryOpExpr(expression.getKind(), lhs, rhs);
}

/// The map with one thing changed.
IndexingMap broken(const IndexingMap &map, std::minstd_rand &random) {
  llvm::SmallVector<IndexingVariable> dims(map.dims()), ranges(map.ranges());
  llvm::SmallVector<IndexingMap::Constraint> constraints(map.constraints());
  llvm::SmallVector<mlir::AffineExpr> results(map.affine().getResults());
  switch (random() % 5) {
  case 0:
    if (!ranges.empty())
      ++ranges[random() % ranges.size()].bounds.upper;
    break;
  case 1:
    if (!ranges.empty())
      --ranges[random() % ranges.size()].bounds.upper;
    break;
  case 2:
    if (!constraints.empty())
      constraints.erase(constraints.begin() + random() % constraints.size());
    break;
  case 3:
    if (!constraints.empty()) {
      Interval &interval = constraints[random() % constraints.size()].second;
      (random() % 2 ? interval.upper : interval.lower) += random() % 2 ? 1 : -1;
    }
    break;
  default:
    if (!results.empty()) {
      unsigned countdown = random() % 4;
      mlir::AffineExpr &result = results[random() % results.size()];
      result = broken(result, countdown, random);
    }
  }
  auto affine = mlir::AffineMap::get(unsigned(dims.size()), unsigned(ranges.size()), results, map.context());
  return IndexingMap(affine, dims, ranges, {}, constraints);
}

/// One map of the module, or the grid.
void breakSomething(mlir::ModuleOp module, KernelSpec &spec, std::minstd_rand &random) {
  llvm::SmallVector<mlir::Operation *> ops;
  module.walk([&](mlir::Operation *op) {
    if (llvm::isa<xla_gpu::LoopOp, xla_gpu::ApplyIndexingOp>(op) &&
        op->getParentOfType<mlir::func::FuncOp>()->hasAttr(xla_gpu::attr::entry))
      ops.push_back(op);
  });
  if (ops.empty() || random() % 12 == 0) {
    spec.grid.x += spec.grid.x > 1 && random() % 2 ? -1 : 1;
    return;
  }
  mlir::Operation *op = ops[random() % 3 ? ops.size() - 1 : random() % ops.size()]; // the last writes outputs
  if (auto loop = llvm::dyn_cast<xla_gpu::LoopOp>(op))
    loop.setMapAttr(xla_gpu::IndexingMapAttr::get(broken(loop.indexingMap(), random)));
  else if (auto apply = llvm::cast<xla_gpu::ApplyIndexingOp>(op); apply.indexingMap().ranges().empty())
    apply.setMapAttr(xla_gpu::IndexingMapAttr::get(broken(apply.indexingMap(), random)));
}

/// Each kernel that a random fusion is, alone.
template <typename Function> void forEachKernel(uint64_t seed, mlir::MLIRContext &context, Function function) {
  GeneratedFusion made = generateFusionModule(seed, {.maxElements = 512});
  DiagnosticEngine diagnostics;
  llvm::FailureOr<FusionGraph> graph = supportedGraph(bodyOf(*made.module), diagnostics);
  if (failed(graph))
    return;
  TargetInfo target = *findTarget(seed % 2 ? "sm_72" : "sm_90");
  llvm::FailureOr<FusionPlan> plan = planFusion(*graph, {}, target, diagnostics);
  REQUIRE(succeeded(plan));
  if (plan->steps.size() != 1 || !std::holds_alternative<KernelPlan>(plan->steps.front()))
    return;
  const auto &kernel = std::get<KernelPlan>(plan->steps.front());
  if (kernel.launch.grid.x == 0)
    return;
  auto emitted = emitKernel(*graph, kernel, "k", context, diagnostics);
  if (failed(emitted))
    return;
  INFO("seed " << seed << ": " << plan->toString() << "\n" << hloText(*made.module));
  function(**emitted, describeKernel(*graph, *plan, kernel, "k"));
}

} // namespace

TEST_CASE("what is proved of random kernels holds, and nothing is refuted") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Tally tally;
  for (uint64_t seed = 1; seed <= 120; ++seed)
    forEachKernel(seed, context, [&](mlir::ModuleOp module, KernelSpec spec) { compare(module, spec, tally); });
  CHECK(tally.decided > 60);
  for (unsigned i = 0; i < numProofProperties; ++i) {
    INFO(text(ProofProperty(i)) << ": " << tally.proved[i] << " of " << tally.kernels);
    CHECK(tally.refuted[i] == 0);
    CHECK(tally.proved[i] * 10 > tally.kernels * 7);
  }
}

TEST_CASE("what is proved of broken kernels holds, and what is refuted does not") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Tally tally;
  std::minstd_rand random(1);
  for (uint64_t seed = 1; seed <= 80; ++seed)
    forEachKernel(seed, context, [&](mlir::ModuleOp module, const KernelSpec &spec) {
      for (unsigned change = 0; change < 10; ++change) {
        mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
        KernelSpec own = spec;
        breakSomething(*copy, own, random);
        compare(*copy, own, tally);
      }
    });
  CHECK(tally.decided > 150);
  INFO("found " << tally.found << " of " << tally.wrong); // not all changes break something
  CHECK(tally.wrong > 100);
  CHECK(tally.found == tally.wrong);
}
