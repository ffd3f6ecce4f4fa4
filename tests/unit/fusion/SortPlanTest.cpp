#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloBuilder.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// A sort of arrays of `types` and one shape along `dim`, by the first.
struct SortProgram {
  HloModule module{"m"};
  HloComputation *comparator = module.addComputation("comparator");
  HloComputation *body = module.addComputation("f");
  HloBuilder b{*body};
  DiagnosticEngine diagnostics;
  HloInstruction *sort;

  SortProgram(llvm::ArrayRef<ElementType> types, llvm::ArrayRef<int64_t> dims, int64_t dim = 0,
              llvm::ArrayRef<int64_t> minorToMajor = {}) {
    HloBuilder c{*comparator};
    llvm::SmallVector<HloInstruction *> elements, operands;
    llvm::SmallVector<Shape> shapes;
    for (auto [i, type] : llvm::enumerate(types)) {
      elements.push_back(c.parameter(int64_t(2 * i), Shape::scalar(type)));
      elements.push_back(c.parameter(int64_t(2 * i + 1), Shape::scalar(type)));
      shapes.push_back(Shape::array(type, dims));
      if (!minorToMajor.empty())
        shapes.back() = shapes.back().withLayout(minorToMajor);
      operands.push_back(b.parameter(int64_t(i), shapes.back()));
    }
    comparator->setRoot(c.compare(ComparisonDirection::Lt, elements[0], elements[1]));
    sort = b.add(Opcode::Sort, shapes.size() == 1 ? shapes.front() : Shape::tuple(shapes), operands,
                 {b.ints(AttributeKey::Dimensions, {dim}), Attribute{AttributeKey::ToApply, comparator}});
  }

  FusionPlan plan(HloInstruction *root) {
    body->setRoot(root);
    FusionGraph graph = *FusionGraph::build(*body, diagnostics);
    llvm::FailureOr<FusionPlan> made = planFusion(graph, {0u}, *findTarget("sm_90"), diagnostics);
    REQUIRE(succeeded(made));
    return *made;
  }
  std::string text() { return plan(sort).toString(); }
  /// Why the hero does not take the fusion.
  std::string rejection(HloInstruction *root) {
    for (const HeroRejection &rejection : plan(root).rejections)
      if (rejection.hero == "sort")
        return rejection.reason;
    return "";
  }
};

bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

constexpr ElementType f32 = ElementType::F32, s32 = ElementType::S32;

} // namespace

TEST_CASE("rows that fit a block are sorted by one kernel") {
  CHECK(SortProgram({f32}, {1000}).text() == "sort: roots 0, 1 row of 1000, 8 elements per thread; grid 1, block 125, "
                                             "shared 4000");
  CHECK(SortProgram({f32}, {2048}).text() == "sort: roots 0, 1 row of 2048, 8 elements per thread; grid 1, block 256, "
                                             "shared 8192");
  // Many short rows fill warps, and few do not leave multiprocessors idle.
  CHECK(has(SortProgram({f32}, {100000, 5}, 1).text(), "100000 rows of 5, 256 a block, 8 elements per thread"));
  CHECK(has(SortProgram({f32}, {1000, 5}, 1).text(), "1000 rows of 5, 32 a block"));
  CHECK(has(SortProgram({f32}, {300, 1000}, 1).text(), "300 rows of 1000, 8 elements"));
  // Rows side by side in memory are read by neighbouring threads.
  CHECK(has(SortProgram({f32}, {60, 1000}, 0).text(), "1000 rows of 60, 32 a block"));
  CHECK(has(SortProgram({f32}, {60, 1000}, 0, {0, 1}).text(), "1000 rows of 60, 4 a block"));
  // Elements beyond those of the row have room, too.
  CHECK(has(SortProgram({f32}, {33}).text(), "block 5, shared 160"));
  CHECK(has(SortProgram({f32}, {1}).text(), "1 row of 1, 1 elements per thread; grid 1, block 1, shared 4"));
}

TEST_CASE("longer rows are sorted in tiles, and merged by a kernel for each length of runs") {
  CHECK(
      SortProgram({f32}, {5000}).text() ==
      "scratch 0: f32[1,5000]{1,0}\n"
      "sort: roots 0, 1 row of 5000, tiles of 2048, 8 elements per thread; grid 3, block 256, shared 8192\n"
      "sort: roots 0, 1 row of 5000, runs of 2048 merged from outputs by tiles of 2048, 8 elements per thread; grid 3, "
      "block 256, shared 8192\n"
      "sort: roots 0, 1 row of 5000, runs of 4096 merged from scratch by tiles of 2048, 8 elements per thread; grid 3, "
      "block 256, shared 8192");
  CHECK(has(SortProgram({f32}, {2049}).text(), "merged from scratch"));
  CHECK(has(SortProgram({f32, ElementType::C128}, {100, 5000}, 1).text(), "tiles of 1024, 4 elements per thread"));
  SortProgram bytes({ElementType::U8}, {3, 5000000000}, 1);
  FusionPlan huge = bytes.plan(bytes.sort);
  CHECK(huge.steps.size() == 1 + 22);
}

TEST_CASE("what nobody asks for is not moved") {
  SortProgram keys({f32, s32, s32}, {1000});
  CHECK(has(keys.plan(keys.b.tupleElement(keys.sort, 1)).toString(), "roots 0, 1 row of 1000, 8 elements per thread; "
                                                                     "grid 1, block 125, shared 8000"));
  // Keys that are no output still lie somewhere between kernels: in both orders of the buffers.
  SortProgram longer({f32, s32}, {5000});
  FusionPlan plan = longer.plan(longer.b.tupleElement(longer.sort, 1));
  REQUIRE(plan.scratch.size() == 3);
  CHECK(plan.scratch[1].shape.elementType() == f32);
  for (const FusionStep &step : plan.steps)
    for (const KernelBuffer &buffer : std::get<KernelPlan>(step).buffers)
      CHECK(buffer.written == (buffer.buffer.kind != PlanBuffer::Kind::Parameter));
}

TEST_CASE("an output is a result of the sort, wherever it lies") {
  SortProgram offered({f32}, {1000});
  FusionPlan plan = offered.plan(offered.sort);
  CHECK(!plan.aliasing.front());
  SortProgram computed({f32}, {1000});
  CHECK(computed.rejection(computed.b.add(Opcode::Negate, computed.sort->shape(), {computed.sort})) ==
        "output 0 is no sort");
  SortProgram packed({ElementType::S4}, {1000});
  CHECK(packed.rejection(packed.sort) == "several elements share a byte");
  SortProgram renamed({f32}, {1000});
  CHECK(renamed.rejection(renamed.b.add(Opcode::Bitcast, Shape::array(f32, {10, 100}), {renamed.sort})).empty());
}
