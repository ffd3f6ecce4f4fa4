#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloBuilder.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// A scatter of windows of `sizes` to an array of `dims`, which indices of its first dimension name.
struct ScatterProgram {
  HloModule module{"m"};
  HloComputation *reducer = module.addComputation("reducer");
  HloComputation *body = module.addComputation("f");
  HloBuilder b{*body};
  DiagnosticEngine diagnostics;
  HloInstruction *array, *indices, *updates;

  ScatterProgram(ElementType type, llvm::ArrayRef<int64_t> dims, int64_t windows, llvm::ArrayRef<int64_t> sizes,
                 Opcode combiner = Opcode::Add) {
    HloBuilder r{*reducer};
    auto *current = r.parameter(0, Shape::scalar(type), "current");
    auto *update = r.parameter(1, Shape::scalar(type), "update");
    reducer->setRoot(combiner == Opcode::Parameter ? update : r.add(combiner, Shape::scalar(type), {current, update}));
    llvm::SmallVector<int64_t> all{windows};
    llvm::append_range(all, sizes);
    array = b.parameter(0, Shape::array(type, dims), "array");
    indices = b.parameter(1, Shape::array(ElementType::S32, {windows, 1}), "indices");
    updates = b.parameter(2, Shape::array(type, all), "updates");
  }

  bool sorted = false; ///< is that promised of the indices?

  HloInstruction *scatter(HloInstruction *into, bool unique = false) {
    llvm::SmallVector<int64_t> windowDims;
    for (unsigned i = 1; i < updates->shape().rank(); ++i)
      windowDims.push_back(i);
    return b.add(Opcode::Scatter, into->shape(), {into, indices, updates},
                 {b.ints(AttributeKey::UpdateWindowDims, windowDims), b.ints(AttributeKey::InsertedWindowDims, {}),
                  b.ints(AttributeKey::ScatterDimsToOperandDims, {0}),
                  Attribute{AttributeKey::IndexVectorDim, int64_t(1)}, Attribute{AttributeKey::UniqueIndices, unique},
                  Attribute{AttributeKey::IndicesAreSorted, sorted}, Attribute{AttributeKey::ToApply, reducer}});
  }

  FusionPlan plan(HloInstruction *root, const FusionAliasing &offers, const char *target = "sm_90") {
    body->setRoot(root);
    FusionGraph graph = *FusionGraph::build(*body, diagnostics);
    llvm::FailureOr<FusionPlan> made = planFusion(graph, offers, *findTarget(target), diagnostics);
    REQUIRE(succeeded(made));
    return *made;
  }
  std::string text(bool unique = false, const char *target = "sm_90") {
    return plan(scatter(array, unique), {0u}, target).toString();
  }
};

bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("a scatter has a thread for each few neighbours of a window") {
  ScatterProgram rows(ElementType::F32, {8192, 256}, 4096, {1, 256});
  CHECK(rows.text() == "scatter: roots 0, 1048576 updates, atomic, 4 per thread; grid 2048, block 128; output 0 in "
                       "place of parameter 0");
  // Vectors of atomics: f32 from sm_90 on, halves in pairs everywhere, doubles never.
  CHECK(has(rows.text(false, "sm_80"), "atomic, 1 per thread"));
  CHECK(has(ScatterProgram(ElementType::F16, {8192, 256}, 4096, {1, 256}).text(), "atomic, 8 per thread"));
  CHECK(has(ScatterProgram(ElementType::F16, {8192, 256}, 4096, {1, 256}).text(false, "sm_80"), "2 per thread"));
  CHECK(has(ScatterProgram(ElementType::F64, {8192, 256}, 4096, {1, 256}).text(), "atomic, 1 per thread"));
  CHECK(has(ScatterProgram(ElementType::F32, {8192, 256}, 4096, {1, 256}, Opcode::Maximum).text(), "1 per thread"));
  // Rows of an odd number of elements begin anywhere, and so do windows that are less than a row.
  CHECK(has(ScatterProgram(ElementType::F32, {8192, 257}, 4096, {1, 257}).text(), "atomic, 1 per thread"));
  CHECK(has(ScatterProgram(ElementType::F32, {8192}, 4096, {256}).text(), "atomic, 1 per thread"));
}

TEST_CASE("windows of one element are read several at once") {
  ScatterProgram histogram(ElementType::S32, {1024}, 262144, {1});
  CHECK(histogram.text() ==
        "scatter: roots 0, 262144 updates, atomic, 4 per thread of as many windows; grid 512, block "
        "128; output 0 in place of parameter 0");
  // A small one fills no device as it is.
  CHECK(has(ScatterProgram(ElementType::S32, {1024}, 8192, {1}).text(), "atomic, 1 per thread;"));
}

TEST_CASE("what is promised to be nobody else's is not atomic") {
  CHECK(has(ScatterProgram(ElementType::F32, {8192, 256}, 4096, {1, 256}).text(true), "read and written, 4 per"));
  CHECK(has(ScatterProgram(ElementType::F32, {8192, 256}, 4096, {1, 256}, Opcode::Parameter).text(true),
            "stored, 4 per"));
  // Windows that begin at different rows share others, and more windows than rows cannot all be different.
  CHECK(has(ScatterProgram(ElementType::F32, {8192, 256}, 4096, {2, 256}).text(true), "atomic"));
  CHECK(has(ScatterProgram(ElementType::F32, {1024, 256}, 4096, {1, 256}).text(true), "atomic"));
  // A single window meets nobody.
  CHECK(has(ScatterProgram(ElementType::F32, {64, 64}, 1, {2, 64}).text(), "read and written"));
  // The other half of a byte is somebody's.
  CHECK(has(ScatterProgram(ElementType::S4, {64, 64}, 8, {1, 64}).text(true), "atomic"));
  CHECK(has(ScatterProgram(ElementType::S4, {64, 64}, 8, {1, 64}, Opcode::Parameter).text(true), "stored"));
}

TEST_CASE("neighbouring windows of sorted indices are combined by a thread") {
  auto text = [](ElementType type, llvm::ArrayRef<int64_t> dims, int64_t windows, llvm::ArrayRef<int64_t> sizes,
                 Opcode combiner = Opcode::Add) {
    ScatterProgram p(type, dims, windows, sizes, combiner);
    p.sorted = true;
    return p.text();
  };
  CHECK(text(ElementType::F32, {8192, 256}, 4096, {1, 256}) ==
        "scatter: roots 0, 1048576 updates, atomic, 4 per thread and window of 8 together where their place is one; "
        "grid 256, block 128; output 0 in place of parameter 0");
  CHECK(has(text(ElementType::S32, {100}, 2008, {64}, Opcode::Multiply), "1 per thread and window of 8 together"));
  CHECK(has(text(ElementType::S32, {100}, 2008, {64}, Opcode::Parameter), "1 per thread and window of 8 together"));
  // The last group may be smaller, where its elements can be carried through a branch.
  CHECK(has(text(ElementType::F32, {100, 64}, 2011, {1, 64}), "2 per thread and window of 4 together"));
  CHECK(has(text(ElementType::C64, {100, 64}, 2012, {1, 64}), "window of 4 together"));
  CHECK(!has(text(ElementType::S8, {100, 64}, 2011, {1, 64}), "together"));
  // Single elements are read four at once, or two.
  CHECK(has(text(ElementType::S32, {1024}, 262144, {1}),
            "window of 4 together where their place is one, across lanes; grid 512"));
  CHECK(has(text(ElementType::F32, {16384}, 262144, {1}), "place is one, across lanes; grid 512"));
  CHECK(has(text(ElementType::F32, {16385}, 262144, {1}), "place is one; grid 512"));
  CHECK(has(text(ElementType::U8, {1024}, 262144, {1}), "place is one; grid 512"));
  CHECK(has(text(ElementType::F32, {1024}, 262144, {1}, Opcode::Parameter), "place is one; grid 512"));
  CHECK(has(text(ElementType::S32, {1024}, 262146, {1}), "1 per thread and window of 2 together"));
  CHECK(has(text(ElementType::S32, {1024}, 262145, {1}), "1 per thread;"));
  // x - a - b is not x - (a - b); few windows of many places are seldom neighbours; a small one fills no device.
  CHECK(!has(text(ElementType::S32, {100}, 2008, {64}, Opcode::Subtract), "together"));
  CHECK(!has(text(ElementType::F32, {65536, 64}, 2008, {1, 64}), "together"));
  CHECK(!has(text(ElementType::F32, {64, 64}, 128, {1, 64}), "together"));
}

TEST_CASE("several arrays are updated by atomics if they have nothing to do with each other") {
  auto plan = [](Opcode second, bool crosses) {
    ScatterProgram p(ElementType::F32, {64, 4096}, 128, {1, 4096});
    HloComputation *pairs = p.module.addComputation("pairs");
    HloBuilder r{*pairs};
    const Shape scalar = Shape::scalar(ElementType::F32);
    HloInstruction *parameters[4];
    for (int64_t i = 0; i < 4; ++i)
      parameters[i] = r.parameter(i, scalar, "p" + std::to_string(i));
    auto *one = r.add(Opcode::Add, scalar, {parameters[0], parameters[crosses ? 3 : 2]});
    auto *two = r.add(second, scalar, {parameters[3], parameters[1]});
    pairs->setRoot(r.add(Opcode::Tuple, Shape::tuple({scalar, scalar}), {one, two}));
    auto *array = p.b.parameter(3, p.array->shape(), "array2");
    auto *updates = p.b.parameter(4, p.updates->shape(), "updates2");
    auto *root = p.b.add(
        Opcode::Scatter, Shape::tuple({p.array->shape(), array->shape()}),
        {p.array, array, p.indices, p.updates, updates},
        {p.b.ints(AttributeKey::UpdateWindowDims, {1, 2}), p.b.ints(AttributeKey::InsertedWindowDims, {}),
         p.b.ints(AttributeKey::ScatterDimsToOperandDims, {0}), Attribute{AttributeKey::IndexVectorDim, int64_t(1)},
         Attribute{AttributeKey::IndicesAreSorted, true}, Attribute{AttributeKey::ToApply, pairs}});
    return p.plan(root, {0u, 3u}).toString();
  };
  CHECK(has(plan(Opcode::Add, false), "scatter: roots 0,1, 524288 updates, atomic, 4 per thread;"));
  CHECK(has(plan(Opcode::Maximum, false), "scatter: roots 0,1, 524288 updates, atomic, 1 per thread;"));
  CHECK(has(plan(Opcode::Subtract, false), "loop:"));
  CHECK(has(plan(Opcode::Add, true), "loop:"));
}

TEST_CASE("what a scatter updates is there before") {
  ScatterProgram p(ElementType::F32, {64, 64}, 8, {1, 64});
  CHECK(has(p.plan(p.scatter(p.array), {std::nullopt}).toString(), "copy parameter 0 to output 0\nscatter: "));

  ScatterProgram zeros(ElementType::F32, {64, 64}, 8, {1, 64});
  auto *zero = zeros.b.constant(Literal(Shape::scalar(ElementType::F32)));
  auto *filled =
      zeros.b.add(Opcode::Broadcast, zeros.array->shape(), {zero}, {zeros.b.ints(AttributeKey::Dimensions, {})});
  CHECK(has(zeros.plan(zeros.scatter(filled), {}).toString(), "fill output 0 with byte 0\nscatter: "));

  // A kernel of its own makes what is computed, a scatter included.
  ScatterProgram chain(ElementType::F32, {64, 64}, 8, {1, 64});
  auto *negated = chain.b.add(Opcode::Negate, chain.array->shape(), {chain.array});
  FusionPlan plan = chain.plan(chain.scatter(chain.scatter(negated)), {0u});
  REQUIRE(plan.steps.size() == 3);
  CHECK(std::get<KernelPlan>(plan.steps[0]).hero() == Hero::Loop);
  CHECK(std::get<KernelPlan>(plan.steps[0]).makes->instr == negated);
  CHECK(std::get<KernelPlan>(plan.steps[1]).hero() == Hero::Scatter);
  CHECK(!std::get<KernelPlan>(plan.steps[2]).makes);
  CHECK(plan.aliasing == FusionAliasing{std::nullopt});

  // What the updates read stays as it is.
  ScatterProgram reads(ElementType::F32, {64, 64}, 64, {1, 64});
  reads.updates = reads.b.add(Opcode::Reshape, reads.updates->shape(), {reads.array});
  CHECK(has(reads.plan(reads.scatter(reads.array), {0u}).toString(), "copy parameter 0 to output 0\n"));
}

TEST_CASE("scatters that stay loops over all updates") {
  auto reason = [](ScatterProgram &p, HloInstruction *root) {
    FusionPlan plan = p.plan(root, {});
    CHECK(plan.toString().substr(0, 5) == "loop:");
    return plan.rejections[size_t(Hero::Scatter)].reason;
  };
  ScatterProgram complex(ElementType::C128, {64}, 8, {1}, Opcode::Multiply);
  CHECK(reason(complex, complex.scatter(complex.array)) == "no atomic instruction updates so large elements");
  CHECK(has(ScatterProgram(ElementType::C128, {64}, 8, {1}).text(), "atomic"));
  ScatterProgram bytes(ElementType::S8, {63}, 8, {1});
  CHECK(reason(bytes, bytes.scatter(bytes.array)) == "the last elements share a word with what is behind the array");
  ScatterProgram read(ElementType::F32, {64}, 8, {1});
  CHECK(reason(read, read.b.add(Opcode::Negate, read.array->shape(), {read.scatter(read.array)})) ==
        "output 0 is no scatter");
}
