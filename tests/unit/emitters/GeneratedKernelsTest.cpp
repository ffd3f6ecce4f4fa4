// Which kernels generated modules reach: those that tests/CMakeLists.txt runs on the emulator would else prove little.
#include "fuzz/ModuleGenerator.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/fusion/FusionPlan.h"
#include "hloc/planner/ExecutionPlan.h"
#include "hloc/transforms/Transforms.h"

#include <catch2/catch.hpp>

#include <set>

using namespace hloc;

namespace {

struct Reached {
  unsigned planned = 0;
  std::set<Hero> heroes;
  std::set<unsigned> widths, widthsWithTail; ///< elements a thread, of loops
  std::set<unsigned> rounds, partRounds;     ///< of loops; those whose last block has fewer groups
  std::set<unsigned> tileVectors;            ///< turned in registers; 1: not
  bool partTiles = false;                    ///< some that are not filled
  unsigned segments = 0;                     ///< most that a concatenate has
  std::set<unsigned> segmentWidths;          ///< elements a thread, of concatenates
  std::set<unsigned> rowThreads;             ///< of row reductions
  unsigned columns = 0;                      ///< kernels that reduce columns
  std::set<ScatterPlan::Access> scatterAccesses;
  unsigned claimed = 0; ///< outputs of which the text says that they lie where an operand does
  unsigned inPlace = 0; ///< outputs that do, as the text says or in a donated parameter
  unsigned donated = 0;
};

void count(const LoopPlan &plan, Reached &reached) {
  for (const LoopNest &nest : plan.nests) {
    reached.widths.insert(nest.perThread);
    reached.rounds.insert(nest.rounds);
    if (nest.elements % (int64_t(nest.perThread) * nest.rounds * threadsPerLoopBlock))
      reached.partRounds.insert(nest.rounds);
    if (nest.elements % nest.perThread)
      reached.widthsWithTail.insert(nest.perThread);
  }
}

void count(const TransposePlan &plan, Reached &reached) {
  reached.tileVectors.insert(plan.tileVector);
  for (unsigned i = 0; i < plan.inputDims.size(); ++i)
    reached.partTiles |= plan.inputDims[i] % plan.box[i] != 0;
}

void count(const ScatterPlan &plan, Reached &reached) { reached.scatterAccesses.insert(plan.access); }

/// Reached by none of these modules: an update is rarely all that an output is, few fusions have two slices, and few
/// broadcasts bring a row what it comes to, few modules sort, and dots are small. Files of tests/diff have them.
void count(const UpdateSlicePlan &, Reached &) {}

void count(const RowsPlan &, Reached &) {}

void count(const ColumnsPlan &, Reached &) {}

void count(const InputSlicesPlan &, Reached &) {}

void count(const SortPlan &, Reached &) {}

void count(const ContractionPlan &, Reached &) {}

void count(const AttentionPlan &, Reached &) {}

void count(const ConcatenatePlan &plan, Reached &reached) {
  reached.segments = std::max(reached.segments, unsigned(plan.segments.size()));
  for (const ConcatenateSegment &segment : plan.segments)
    reached.segmentWidths.insert(segment.perThread);
}

void count(const RowReductionPlan &plan, Reached &reached) { reached.rowThreads.insert(plan.threadsPerRow); }

void count(const ColumnReductionPlan &, Reached &reached) { ++reached.columns; }

void count(const std::monostate &, Reached &) {}

bool isSupported(const HloModule &fused) {
  DiagnosticEngine diagnostics;
  bool good = checkNormalForm(fused, diagnostics);
  for (const HloInstruction *instr : fused.entry()->instructions())
    if (instr->opcode() == Opcode::Fusion)
      good = good && succeeded(supportedGraph(*instr->computation(AttributeKey::Calls), diagnostics));
  return good;
}

void count(const HloModule &module, const ExecutionPlan &plan, Reached &reached) {
  ++reached.planned;
  for (const PlannedKernel &kernel : plan.kernels) {
    reached.heroes.insert(kernel.plan().hero());
    std::visit([&](const auto &own) { count(own, reached); }, kernel.plan().plan);
    for (const KernelBuffer &buffer : kernel.plan().buffers)
      reached.inPlace += buffer.sameAs.has_value();
  }
  for (const ModuleBuffer &buffer : plan.buffers)
    reached.donated += buffer.donated;
  for (const HloInstruction *instr : module.entry()->instructions())
    if (const AttributeValue *aliases = instr->find(AttributeKey::OutputToOperandAliasing))
      reached.claimed += std::get<llvm::ArrayRef<OutputAlias>>(*aliases).size();
}

Reached reachedBy(uint64_t first, uint64_t last, const GeneratorOptions &options, const char *targetName) {
  Reached reached;
  TargetInfo target = *findTarget(targetName);
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::unique_ptr<HloModule> module = generateModule(seed, options);
    DiagnosticEngine diagnostics;
    HloPassContext context(diagnostics);
    INFO("seed " << seed);
    REQUIRE(runPasses(*module, hloPipeline(), context) != PassResult::Failed);
    if (!isSupported(*module))
      continue;
    std::optional<ExecutionPlan> plan = planModule(*module, target, diagnostics);
    REQUIRE(plan);
    count(*module, *plan, reached);
  }
  return reached;
}

} // namespace

// The first 120 are those of the test run-generated-edges. On 8 multiprocessors, 1024 elements are enough for a second
// one a thread.
TEST_CASE("generated modules of large arrays reach loops, transpositions, vectors with and without tails, tiles") {
  GeneratorOptions options;
  options.instructions = 3;
  options.deadCode = false;
  options.edgeSizes = true;
  options.maxElements = 40000;
  Reached reached = reachedBy(20, 199, options, "sm_72");
  CHECK(reached.planned > 80);
  CHECK((reached.heroes.contains(Hero::Transpose) && reached.heroes.contains(Hero::Loop)));
  for (unsigned width : {1, 2, 4, 8, 16})
    CHECK(reached.widths.contains(width));
  for (unsigned width : {2, 4, 8, 16})
    CHECK(reached.widthsWithTail.contains(width));
  for (unsigned rounds : {1, 2, 4})
    CHECK((reached.rounds.contains(rounds) && reached.partRounds.contains(rounds)));
  CHECK((reached.tileVectors.contains(1) && reached.tileVectors.size() > 1));
  CHECK(reached.partTiles);
  CHECK(reached.segments >= 3);
  // (Most concatenates of so few elements are in a kernel with other results; random fusions have the others.)
  CHECK(reached.segmentWidths.size() > 1);
  CHECK(reached.heroes.contains(Hero::RowReduction));
  CHECK(llvm::any_of(reached.rowThreads, [](unsigned threads) { return threads > 32; }));
  CHECK(reached.columns > 0);
  CHECK(reached.inPlace > 8);
  CHECK(reached.donated > 8);
  CHECK(reached.claimed > 8);
}
