#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/parser/Parser.h"
#include "unit/fusion/PlannedEntry.h"

#include "fmt/format.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Program {
  HloModule module{"m"};
  HloComputation *body = module.addComputation("f");
  HloBuilder b{*body};
  DiagnosticEngine diagnostics;

  HloInstruction *transpose(HloInstruction *x, llvm::ArrayRef<int64_t> dims) {
    llvm::SmallVector<int64_t> sizes;
    for (int64_t dim : dims)
      sizes.push_back(x->shape().dim(dim));
    return b.add(Opcode::Transpose, Shape::array(x->shape().elementType(), sizes), {x},
                 {b.ints(AttributeKey::Dimensions, dims)});
  }
};

std::string planText(Program &p, HloInstruction *root, const char *target = "sm_90") {
  p.body->setRoot(root);
  FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget(target), p.diagnostics);
  REQUIRE(succeeded(plan));
  return plan->toString();
}

std::string negatePlan(ElementType type, llvm::ArrayRef<int64_t> dims, const char *target = "sm_90") {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(type, dims), "x");
  return planText(p, p.b.add(Opcode::Negate, x->shape(), {x}), target);
}

} // namespace

TEST_CASE("elements per thread fill one access of the narrowest stream") {
  CHECK(negatePlan(ElementType::BF16, {6, 512, 4096}) ==
        "loop: roots 0, 12582912 elements, 8 per thread in 4 rounds; grid 3072, block 128");
  CHECK(negatePlan(ElementType::F32, {1 << 24}) ==
        "loop: roots 0, 16777216 elements, 4 per thread in 4 rounds; grid 8192, block 128");
  CHECK(negatePlan(ElementType::F32, {1 << 24}, "sm_100") ==
        "loop: roots 0, 16777216 elements, 8 per thread in 4 rounds; grid 4096, block 128");
  CHECK(negatePlan(ElementType::S8, {1 << 24}) ==
        "loop: roots 0, 16777216 elements, 16 per thread in 4 rounds; grid 2048, block 128");
  CHECK(negatePlan(ElementType::S4, {1 << 24}) ==
        "loop: roots 0, 16777216 elements, 32 per thread in 4 rounds; grid 1024, block 128");
}

TEST_CASE("short programs are dealt in rounds as long as multiprocessors have a few blocks, and about as many") {
  CHECK(negatePlan(ElementType::F64, {1 << 20}) ==
        "loop: roots 0, 1048576 elements, 2 per thread in 4 rounds; grid 1024, block 128");
  auto dealt = [](ElementType type, int64_t size) {
    std::string plan = negatePlan(type, {size});
    return plan.substr(plan.find(", ") + 2);
  };
  CHECK(dealt(ElementType::C128, 300000) == "300000 elements, 1 per thread in 4 rounds; grid 586, block 128");
  CHECK(dealt(ElementType::C128, 1 << 18) == "262144 elements, 1 per thread in 4 rounds; grid 512, block 128");
  CHECK(dealt(ElementType::C128, 150000) == "150000 elements, 1 per thread in 2 rounds; grid 586, block 128");
  CHECK(dealt(ElementType::C128, 1 << 20) == "1048576 elements, 1 per thread in 4 rounds; grid 2048, block 128");
  CHECK(dealt(ElementType::C128, 1 << 16).find("rounds") == std::string::npos);
}

TEST_CASE("small and odd sizes") {
  CHECK(negatePlan(ElementType::F32, {}) == "loop: roots 0, 1 elements, 1 per thread; grid 1, block 1");
  CHECK(negatePlan(ElementType::F32, {31}) == "loop: roots 0, 31 elements, 1 per thread; grid 1, block 31");
  CHECK(negatePlan(ElementType::F32, {7, 0, 3}) == ""); // nothing is done
  CHECK(negatePlan(ElementType::S4, {33}) == "loop: roots 0, 33 elements, 2 per thread; grid 1, block 17");
  CHECK(negatePlan(ElementType::F32, {16777213}) ==
        "loop: roots 0, 16777213 elements, 4 per thread in 4 rounds; grid 8192, block 128");
  CHECK(negatePlan(ElementType::S8, {1LL << 33}) ==
        "loop: roots 0, 8589934592 elements, 16 per thread in 4 rounds; grid 1048576, block 128");
}

namespace {

std::string slicePlan(ElementType type, int64_t rows, int64_t start, int64_t limit, int64_t stride) {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(type, {rows, limit + 1}), "x");
  SliceDim dims[] = {{0, rows, 1}, {start, limit, stride}};
  return planText(p, p.b.slice(x, dims));
}

std::string reversePlan(ElementType type, llvm::ArrayRef<int64_t> dims) {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(type, dims), "x");
  return planText(p, p.b.add(Opcode::Reverse, x->shape(), {x}, {p.b.ints(AttributeKey::Dimensions, {1})}));
}

std::string convertPlan(ElementType from, ElementType to) {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(from, {1 << 22}), "x");
  return planText(p, p.b.add(Opcode::Convert, Shape::array(to, {1 << 22}), {x}));
}

} // namespace

TEST_CASE("no stream is spread over more sectors than it has") {
  // Lanes whose elements fill two accesses would leave gaps in each.
  CHECK(convertPlan(ElementType::F32, ElementType::BF16) ==
        "loop: roots 0, 4194304 elements, 4 per thread in 8 rounds (8 would touch 2.0 times the sectors of x); grid "
        "1024, block 128");
  CHECK(convertPlan(ElementType::S8, ElementType::F64) ==
        "loop: roots 0, 4194304 elements, 2 per thread in 8 rounds (4 would touch 2.0 times the sectors of an output); "
        "grid 2048, block 128");
  // Every second element: vectors that have two of them.
  CHECK(slicePlan(ElementType::F32, 1024, 0, 4095, 2) ==
        "loop: roots 0, 2097152 elements, 2 per thread in 8 rounds (4 would touch 2.0 times the sectors of x); grid "
        "1024, block 128");
  CHECK(slicePlan(ElementType::BF16, 1024, 0, 4095, 2).find(", 4 per thread") != std::string::npos);
  // Elements that cannot be loaded together go to neighbouring lanes.
  CHECK(slicePlan(ElementType::F32, 1024, 0, 4095, 4).find(", 1 per thread") != std::string::npos);
  CHECK(slicePlan(ElementType::F64, 1024, 0, 4095, 2).find(", 1 per thread") != std::string::npos);
  CHECK(slicePlan(ElementType::F32, 1021, 0, 4094, 2).find(", 1 per thread") != std::string::npos);
  CHECK(slicePlan(ElementType::F32, 1024, 1, 2049, 1) ==
        "loop: roots 0, 2097152 elements, 1 per thread in 8 rounds (2 would touch 1.8 times the sectors of x); grid "
        "2048, block 128");
  CHECK(slicePlan(ElementType::F32, 1024, 4, 2051, 1).find("1 per thread") != std::string::npos);
  CHECK(slicePlan(ElementType::F32, 1024, 4, 2047, 1).find("1 per thread") != std::string::npos);
  // Backwards is as good as forwards, where rows consist of whole groups.
  CHECK(reversePlan(ElementType::F32, {1024, 1024}) ==
        "loop: roots 0, 1048576 elements, 4 per thread in 4 rounds; grid 512, block 128");
  CHECK(reversePlan(ElementType::BF16, {1024, 1028}).find(", 4 per thread") != std::string::npos);
  CHECK(reversePlan(ElementType::F32, {1024, 1023}).find("1 per thread") != std::string::npos);
}

TEST_CASE("windows side by side are read as vectors over their bounds") {
  auto windows = [](int64_t row, int64_t size) {
    std::string body = fmt::format("x = f32[1024,{0}] parameter(0) z = f32[] constant(0)\n"
                                   "ROOT w = f32[1024,{1}] reduce-window(x, z), window={{size=1x{2} stride=1x{2}}}, "
                                   "to_apply=max",
                                   row, row / size, size);
    return test::PlannedEntry(body).text();
  };
  // Three vectors for four windows of three; one for each window of four.
  CHECK(windows(4095, 3).find(", 4 per thread") != std::string::npos);
  CHECK(windows(4096, 4).find(", 1 per thread") != std::string::npos);
}

TEST_CASE("rounds are parts of the array where that saves dividing by its sizes") {
  CHECK(
      reversePlan(ElementType::F32, {516, 1023}) ==
      "loop: roots 0, 527868 elements, 1 per thread in 4 parts (2 would touch 1.7 times the sectors of x); grid 1031, "
      "block 128");
  // Parts that do not begin with a row, powers of two, a row for all rounds, and what is not divided at all.
  CHECK(reversePlan(ElementType::F32, {513, 1023}).find("8 rounds") != std::string::npos);
  CHECK(reversePlan(ElementType::F32, {1024, 1024}).find("4 rounds") != std::string::npos);
  CHECK(reversePlan(ElementType::F32, {128, 6144}).find("4 rounds") != std::string::npos);
  CHECK(negatePlan(ElementType::F32, {1028, 1020}).find("4 rounds") != std::string::npos);
}

TEST_CASE("a thread stays in a row along which something is the same") {
  auto scaledRows = [](ElementType type, int64_t rows, int64_t columns, int64_t scaledDim = 0) {
    Program p;
    auto *x = p.b.parameter(0, Shape::array(type, {rows, columns}), "x");
    auto *scale = p.b.parameter(1, Shape::array(type, {scaledDim == 0 ? rows : columns}), "scale");
    auto *wide = p.b.add(Opcode::Broadcast, x->shape(), {scale}, {p.b.ints(AttributeKey::Dimensions, {scaledDim})});
    return planText(p, p.b.add(Opcode::Multiply, x->shape(), {x, wide}));
  };
  CHECK(scaledRows(ElementType::F32, 8192, 256) ==
        "loop: roots 0, 2097152 elements, 4 per thread in 4 rounds of 16 threads; grid 1024, block 128");
  CHECK(scaledRows(ElementType::BF16, 4097, 768).find("8 per thread in 4 rounds of 8 threads") != std::string::npos);
  // All rounds of a block are one row's; less than a line; rows of other sizes; what is the same along columns.
  for (const std::string &plan : {scaledRows(ElementType::F32, 1024, 2048), scaledRows(ElementType::F32, 32768, 64),
                                  scaledRows(ElementType::F32, 8192, 260), scaledRows(ElementType::F32, 8192, 256, 1)})
    CHECK(plan.find("rounds of") == std::string::npos);
}

namespace {

/// Is each element some thread's, and just one's? By a thread's arithmetic: whole blocks, the last block, the tail.
void checkDealtOnce(const LoopNest &nest, const LaunchGeometry &launch) {
  std::vector<unsigned> times(nest.elements);
  int64_t whole = nest.elements - nest.elements % nest.perThread, block = launch.block.x;
  for (int64_t group = 0; group < int64_t(launch.grid.x) * block * nest.rounds; ++group)
    for (int64_t i = group * nest.perThread; i < (group + 1) * int64_t(nest.perThread) && i < whole; ++i)
      ++times[i];
  CHECK(std::all_of(times.begin(), times.begin() + whole, [](unsigned n) { return n == 1; }));
  // Somebody comes after the last whole group.
  CHECK((whole == nest.elements || whole / nest.perThread < int64_t(launch.grid.x) * block * nest.rounds));
  CHECK((nest.rounds == 1 || block == threadsPerLoopBlock));
}

} // namespace

TEST_CASE("rounds cover all elements and leave enough blocks") {
  for (int64_t elements : {1 << 20, (1 << 22) + 1, 4092903, 1081344, 1081345, 33793 * 4, 12345677}) {
    Program p;
    auto *x = p.b.parameter(0, Shape::array(ElementType::F32, {elements}), "x");
    p.body->setRoot(p.b.add(Opcode::Negate, x->shape(), {x}));
    FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
    llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget("sm_90"), p.diagnostics);
    REQUIRE(succeeded(plan));
    const auto &kernel = std::get<KernelPlan>(plan->steps.front());
    INFO(kernel.toString());
    checkDealtOnce(std::get<LoopPlan>(kernel.plan).nests.front(), kernel.launch);
    CHECK(kernel.launch.grid.x >= 264);
  }
}

TEST_CASE("outputs of different sizes get nests of their own") {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(ElementType::F32, {1 << 20}), "x");
  auto *y = p.b.parameter(1, Shape::array(ElementType::F32, {10}), "y");
  auto *z = p.b.parameter(2, Shape::array(ElementType::F32, {1024, 1024}), "z");
  auto negate = [&](HloInstruction *v) { return p.b.add(Opcode::Negate, v->shape(), {v}); };
  CHECK(planText(p, p.b.tuple({negate(x), negate(y), negate(z)})) ==
        "loop: roots 0,2, 1048576 elements, 4 per thread in 4 rounds; roots 1, 10 elements, 1 per thread; grid 512, "
        "block 128");
}

TEST_CASE("tiled transpositions") {
  Program p;
  auto *x = p.b.parameter(0, Shape::array(ElementType::F32, {20, 160, 170}), "x");
  auto *t = p.transpose(x, {0, 2, 1});
  CHECK(planText(p, p.b.add(Opcode::Abs, t->shape(), {t})) ==
        "transpose: [20,160,170] by {0,2,1}, 1 tile of 1x32x32, 4 free after 128; vectors of 2 in, 4 out, 2 from the "
        "tile; roots 0; grid 600, block 64, shared 4208");

  Program merged;
  auto *y = merged.b.parameter(0, Shape::array(ElementType::BF16, {1, 64, 32, 2048}), "y");
  CHECK(planText(merged, merged.transpose(y, {3, 0, 1, 2})) ==
        "transpose: [2048,2048] by {1,0}, 1 tile of 64x64, 8 free after 512; vectors of 8 in, 8 out, 8 from the tile; "
        "roots 0; grid 1024, block 64, shared 8304");

  Program layout;
  Shape rows = Shape::array(ElementType::F32, {256, 512});
  auto *z = layout.b.parameter(0, rows, "z");
  CHECK(planText(layout, layout.b.add(Opcode::Copy, rows.withLayout({0, 1}), {z})) ==
        "transpose: [256,512] by {1,0}, 1 tile of 32x32, 4 free after 128; vectors of 4 in, 4 out, 4 from the tile; "
        "roots 0; grid 128, block 64, shared 4208");
}

namespace {

std::string transposePlan(ElementType type, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> dims) {
  Program p;
  return planText(p, p.transpose(p.b.parameter(0, Shape::array(type, sizes), "x"), dims));
}

std::string transposeRejection(Program &p, HloInstruction *root) {
  p.body->setRoot(root);
  FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget("sm_90"), p.diagnostics);
  REQUIRE(succeeded(plan));
  for (const HeroRejection &rejection : plan->rejections)
    if (rejection.hero == "transpose")
      return rejection.reason;
  return "";
}

} // namespace

TEST_CASE("where nothing is a vector a thread has eight elements of a tile") {
  CHECK(transposePlan(ElementType::F64, {511, 767}, {1, 0}).find("block 128") != std::string::npos);
  CHECK(transposePlan(ElementType::C128, {512, 768}, {1, 0}).find("block 128") != std::string::npos);
}

TEST_CASE("runs of a transposition go over several dimensions") {
  // 5 elements are no run: all of them times 32 rows.
  CHECK(
      transposePlan(ElementType::F32, {8191, 5}, {1, 0}) ==
      "transpose: [8191,5] by {1,0}, 1 tile of 32x5; vectors of 4 in, 1 out; roots 0; grid 256, block 64, shared 640");
  // The minor dimension stays, but is short.
  CHECK(transposePlan(ElementType::S8, {160, 170, 3}, {1, 0, 2}).substr(0, 65) ==
        "transpose: [160,170,3] by {1,0,2}, 1 tile of 32x32x3 in the resul");
}

namespace {

/// What emission relies on: groups of neighbours lie in one run of the array and of the tile, and elements of a tile
/// have places of their own.
void checkTile(const TransposePlan &plan, const LaunchGeometry &launch) {
  INFO(plan.toString());
  int64_t elements = 1, tiles = 1;
  for (unsigned i = 0; i < plan.inputDims.size(); ++i) {
    REQUIRE((plan.box[i] >= 1 && plan.box[i] <= plan.inputDims[i]));
    elements *= plan.inputDims[i];
    tiles *= plan.tilesAlong(i);
  }
  CHECK(launch.grid.x == tiles);
  CHECK((plan.threads % 32 == 0 && launch.block.x == plan.threads));
  for (bool ofOutput : {false, true}) {
    TileWalk walk = plan.walk(ofOutput);
    int64_t vector = ofOutput ? plan.outputVector : plan.inputVector, inArray = 1, inBox = 1;
    for (size_t i = 0; i < walk.dims.size(); ++i) {
      inArray *= walk.dims[i];
      inBox *= walk.box[i];
    }
    CHECK((inArray == elements && inBox == plan.boxElements()));
    CHECK(walk.box.back() % vector == 0);
    CHECK((walk.dims.back() % vector == 0 || walk.outer == 0));
  }
  unsigned minor = plan.inputDims.size() - 1;
  if (plan.tileVector > 1) {
    CHECK_FALSE((plan.inOutputOrder || plan.walk(true).isInRun(minor)));
    CHECK((plan.box[minor] % plan.tileVector == 0 && plan.inputDims[minor] % plan.tileVector == 0));
    CHECK((plan.pad == 0 || plan.period % plan.tileVector == 0));
  }
  CHECK(plan.tileElements() == plan.boxElements() + (plan.boxElements() - 1) / plan.period * plan.pad);
  CHECK(launch.sharedBytes <= 49152);
}

} // namespace

TEST_CASE("tiles of all shapes keep what emission relies on") {
  unsigned count = 0;
  for (ElementType type : {ElementType::F32, ElementType::BF16, ElementType::S8, ElementType::S4, ElementType::F64,
                           ElementType::C128, ElementType::Pred})
    for (auto [sizes, dims] : {std::pair<llvm::SmallVector<int64_t>, llvm::SmallVector<int64_t>>({8191, 5}, {1, 0}),
                               {{7, 65537}, {1, 0}},
                               {{2048, 4096}, {1, 0}},
                               {{64, 1000, 3}, {0, 2, 1}},
                               {{31, 33, 7, 5}, {3, 1, 0, 2}},
                               {{1 << 20, 2}, {1, 0}},
                               {{160, 170, 3}, {1, 0, 2}},
                               {{2, 3, 5, 7, 11, 13}, {5, 4, 3, 2, 1, 0}},
                               {{100000, 99991}, {1, 0}}}) {
      Program p;
      p.body->setRoot(p.transpose(p.b.parameter(0, Shape::array(type, sizes), "x"), dims));
      FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
      FusionPlan plan = *planFusion(graph, {}, *findTarget("sm_90"), p.diagnostics);
      const auto &kernel = std::get<KernelPlan>(plan.steps.front());
      if (const auto *transpose = std::get_if<TransposePlan>(&kernel.plan)) {
        checkTile(*transpose, kernel.launch);
        ++count;
      }
    }
  CHECK(count >= 55);
}

TEST_CASE("pixels of three channels are read from the tile across rows") {
  CHECK(transposePlan(ElementType::F32, {64, 1000, 3}, {0, 2, 1}) ==
        "transpose: [64,1000,3] by {0,2,1}, 1 tile of 1x128x3; vectors of 4 in, 4 out, 3 from the tile; roots 0; grid "
        "512, block 64, shared 1536");
}

TEST_CASE("odd sizes are moved one by one, packed types by whole bytes") {
  CHECK(
      transposePlan(ElementType::BF16, {2047, 4095}, {1, 0}) ==
      "transpose: [2047,4095] by {1,0}, 1 tile of 64x64, 2 free after 64; vectors of 1 in, 1 out; roots 0; grid 2048, "
      "block 256, shared 8444");
  CHECK(transposePlan(ElementType::S4, {128, 64}, {1, 0}).substr(0, 5) == "trans");
  Program p;
  auto *x = p.b.parameter(0, Shape::array(ElementType::S4, {1027, 1024}), "x");
  CHECK(transposeRejection(p, p.transpose(x, {1, 0})) == "two runs meet inside a byte");
}

TEST_CASE("outputs of a transposition") {
  Program p; // a bitcast of it, what is read before it, and another array of its size
  auto *x = p.b.parameter(0, Shape::array(ElementType::F32, {64, 128}), "x");
  auto *y = p.b.parameter(1, Shape::array(ElementType::F32, {128, 64}), "y");
  auto *exp = p.b.add(Opcode::Exponential, x->shape(), {x});
  auto *t = p.transpose(exp, {1, 0});
  auto *flat = p.b.add(Opcode::Bitcast, Shape::array(ElementType::F32, {8192}), {t});
  auto *abs = p.b.add(Opcode::Abs, flat->shape(), {flat});
  auto *negated = p.b.add(Opcode::Negate, y->shape(), {y});
  std::string text = planText(p, p.b.tuple({abs, exp, negated}));
  CHECK(text.find("roots 0,2, side roots 1;") != std::string::npos);

  Program sum; // a scalar beside it
  auto *z = sum.b.parameter(0, Shape::array(ElementType::F32, {64, 128}), "z");
  auto *one = sum.b.parameter(1, Shape::array(ElementType::F32, {}), "one");
  auto *tuple = sum.b.tuple({sum.transpose(z, {1, 0}), sum.b.add(Opcode::Negate, one->shape(), {one})});
  CHECK(transposeRejection(sum, tuple) == "an output has another number of elements than the transposition");

  Program two;
  auto *w = two.b.parameter(0, Shape::array(ElementType::F32, {16, 32, 64}), "w");
  CHECK(transposeRejection(two, two.b.tuple({two.transpose(w, {2, 1, 0}), two.transpose(w, {0, 2, 1})})) ==
        "transpositions differ, and none is worth a kernel of its own");
}

TEST_CASE("transpositions that differ are a kernel each, if they are large") {
  auto kernelsOf = [](Program &p, HloInstruction *root) {
    p.body->setRoot(root);
    FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
    llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget("sm_90"), p.diagnostics);
    REQUIRE(succeeded(plan));
    std::vector<TransposePlan> kernels;
    for (const FusionStep &step : plan->steps)
      kernels.push_back(std::get<TransposePlan>(std::get<KernelPlan>(step).plan));
    return kernels;
  };
  using Numbers = llvm::SmallVector<unsigned>;
  Program two; // with what is read before one of them
  auto *x = two.b.parameter(0, Shape::array(ElementType::F32, {64, 128, 256}), "x");
  auto *y = two.b.parameter(1, Shape::array(ElementType::BF16, {1024, 512}), "y");
  auto *exp = two.b.add(Opcode::Exponential, y->shape(), {y});
  auto kernels = kernelsOf(two, two.b.tuple({exp, two.transpose(x, {2, 1, 0}), two.transpose(exp, {1, 0})}));
  REQUIRE(kernels.size() == 2);
  CHECK((kernels[0].roots == Numbers{1} && kernels[0].sideRoots.empty()));
  CHECK((kernels[1].roots == Numbers{2} && kernels[1].sideRoots == Numbers{0}));

  Program beside; // of which one is small
  auto *large = beside.b.parameter(0, Shape::array(ElementType::F32, {512, 512}), "large");
  auto *little = beside.b.parameter(1, Shape::array(ElementType::F32, {64, 32}), "little");
  CHECK(kernelsOf(beside, beside.b.tuple({beside.transpose(large, {1, 0}), beside.transpose(little, {1, 0})})).size() ==
        2);

  Program sum; // of one output, of which one is read from a tile; another output reads the other one alone
  auto *v = sum.b.parameter(0, Shape::array(ElementType::F32, {64, 128, 64}), "v");
  auto *a = sum.transpose(v, {2, 1, 0}), *b = sum.transpose(v, {0, 2, 1});
  auto *ab = sum.b.add(Opcode::Reshape, a->shape(), {b});
  kernels = kernelsOf(sum, sum.b.add(Opcode::Add, a->shape(), {a, ab}));
  REQUIRE(kernels.size() == 1);
  CHECK((kernels[0].heroes.size() == 1 && kernels[0].roots == Numbers{0}));
  kernels = kernelsOf(sum, sum.b.tuple({sum.b.add(Opcode::Add, a->shape(), {a, ab}), b}));
  REQUIRE(kernels.size() == 2);
  CHECK((kernels[0].roots == Numbers{0} && kernels[1].roots == Numbers{1} && kernels[1].heroes.size() == 1));
}

TEST_CASE("transpositions that stay loops") {
  CHECK(transposePlan(ElementType::F32, {3, 80}, {1, 0}).substr(0, 5) == "loop:");

  Program outer; // the minor dimension stays
  auto *y = outer.b.parameter(0, Shape::array(ElementType::F32, {64, 32, 128}), "y");
  CHECK(planText(outer, outer.transpose(y, {1, 0, 2})).substr(0, 5) == "loop:");

  Program twice; // read transposed and reversed
  auto *z = twice.b.parameter(0, Shape::array(ElementType::F32, {64, 64}), "z");
  auto *t = twice.transpose(z, {1, 0});
  auto *r = twice.b.add(Opcode::Reverse, t->shape(), {t}, {twice.b.ints(AttributeKey::Dimensions, {0})});
  CHECK(planText(twice, twice.b.add(Opcode::Add, t->shape(), {t, r})).substr(0, 5) == "loop:");
}

namespace {

HloInstruction *concatenate(Program &p, llvm::ArrayRef<HloInstruction *> operands, int64_t dim) {
  llvm::SmallVector<int64_t> sizes(operands.front()->shape().dims());
  sizes[dim] = 0;
  for (HloInstruction *operand : operands)
    sizes[dim] += operand->shape().dim(dim);
  const Shape &first = operands.front()->shape();
  return p.b.add(Opcode::Concatenate, Shape::array(first.elementType(), sizes).withLayout(first.minorToMajor()),
                 operands, {p.b.ints(AttributeKey::Dimensions, {dim})});
}

/// Parameters that differ along `dim` alone, concatenated.
HloInstruction *concatenate(Program &p, ElementType type, llvm::SmallVector<int64_t> sizes, int64_t dim,
                            llvm::ArrayRef<int64_t> along) {
  llvm::SmallVector<HloInstruction *> operands;
  for (int64_t size : along) {
    sizes[dim] = size;
    operands.push_back(p.b.parameter(operands.size(), Shape::array(type, sizes), "x" + std::to_string(size)));
  }
  return concatenate(p, operands, dim);
}

std::string concatenatePlan(ElementType type, llvm::SmallVector<int64_t> sizes, int64_t dim,
                            llvm::ArrayRef<int64_t> along) {
  Program p;
  return planText(p, concatenate(p, type, sizes, dim, along));
}

/// Why the fusion is no concatenate.
std::string concatenateRejection(Program &p, HloInstruction *root) {
  p.body->setRoot(root);
  FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget("sm_90"), p.diagnostics);
  REQUIRE(succeeded(plan));
  for (const HeroRejection &rejection : plan->rejections)
    if (rejection.hero == "concatenate")
      return rejection.reason;
  return "";
}

} // namespace

TEST_CASE("every operand of a concatenate has a range of blocks") {
  CHECK(
      concatenatePlan(ElementType::F32, {1024, 0}, 1, {1024, 512, 512}) ==
      "concatenate: operand 0, 1048576 elements, 4 per thread in 2 rounds, 1024 blocks; operands 1-2, 524288 elements, "
      "4 per thread in 2 rounds, 512 blocks each; grid 2048, block 128");
  // Where 514 of a row end, the next may be accessed in pairs only.
  CHECK(
      concatenatePlan(ElementType::F32, {1024, 0}, 1, {512, 2, 510}) ==
      "concatenate: operand 0, 524288 elements, 4 per thread in 2 rounds, 512 blocks; operand 1, 2048 elements, 2 per "
      "thread in 2 rounds, 4 blocks; operand 2, 522240 elements, 2 per thread in 2 rounds, 1020 blocks; grid 1536, "
      "block 128");
  // Along the major dimension groups of elements may cross rows, and the last may have fewer.
  CHECK(concatenatePlan(ElementType::F32, {0, 1023}, 0, {512, 0, 513}) ==
        "concatenate: operand 0, 523776 elements, 4 per thread, 1023 blocks; operand 2, 524799 elements, 4 per thread, "
        "1025 blocks; grid 2048, block 128");
  CHECK(
      concatenatePlan(ElementType::S4, {0}, 0, {2, 31}) ==
      "concatenate: operand 0, 2 elements, 2 per thread, 1 block; operand 1, 31 elements, 2 per thread, 1 block; grid "
      "2, block 16");
  CHECK(concatenatePlan(ElementType::F32, {3, 0}, 1, {7}) ==
        "concatenate: operand 0, 21 elements, 1 per thread, 1 block; grid 1, block 21");
}

namespace {

/// What the threads of a concatenate write, by a thread's arithmetic: its block's segment, its groups of elements
/// there, their place in the result.
struct Written {
  std::vector<unsigned> times; ///< by position in the result
  bool sideBySide = true;      ///< elements of a group
  bool aligned = true;         ///< groups, to their size

  Written(const ConcatenatePlan &plan, const LaunchGeometry &launch, const Shape &shape) : times(shape.numElements()) {
    int64_t inner = 1;
    for (int64_t i = plan.dimension() + 1; i < int64_t(shape.rank()); ++i)
      inner *= shape.dim(i);
    row = shape.dim(plan.dimension()) * inner;
    for (const ConcatenateSegment &segment : plan.segments) {
      run = plan.shapeOf(segment).dim(plan.dimension()) * inner;
      offset = segment.offset * inner;
      for (int64_t group = 0; group < int64_t(segment.blocks) * segment.rounds * launch.block.x; ++group)
        addGroup(segment, group * segment.perThread);
    }
  }

private:
  int64_t row, run, offset; ///< elements: of the result between runs, of the segment's runs, before them in a row

  int64_t place(int64_t element) const { return element / run * row + offset + element % run; }

  void addGroup(const ConcatenateSegment &segment, int64_t first) {
    aligned = aligned && (first >= segment.elements || place(first) % segment.perThread == 0);
    for (int64_t i = first; i < std::min(first + int64_t(segment.perThread), segment.elements); ++i) {
      sideBySide = sideBySide && place(i) == place(first) + (i - first);
      ++times[place(i)];
    }
  }
};

void checkWrittenOnce(ElementType type, int64_t dim, llvm::ArrayRef<int64_t> along) {
  Program p;
  p.body->setRoot(concatenate(p, type, {30, 64, 48}, dim, along));
  FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget("sm_72"), p.diagnostics);
  REQUIRE(succeeded(plan));
  const auto &kernel = std::get<KernelPlan>(plan->steps.front());
  const auto *own = std::get_if<ConcatenatePlan>(&kernel.plan);
  if (!own) // bytes in short runs
    return;
  INFO(kernel.toString());
  uint32_t blocks = 0;
  for (const ConcatenateSegment &segment : own->segments) {
    CHECK(segment.firstBlock == blocks);
    blocks += segment.blocks;
  }
  CHECK(kernel.launch.grid == Dim3{blocks, 1, 1});
  Written written(*own, kernel.launch, graph.roots().front().shape);
  CHECK(written.sideBySide);
  CHECK(written.aligned);
  CHECK(std::all_of(written.times.begin(), written.times.end(), [](unsigned times) { return times == 1; }));
}

} // namespace

TEST_CASE("a concatenate's threads write each element once, in aligned groups of neighbours") {
  for (int64_t dim : {0, 1, 2})
    for (ElementType type : {ElementType::S8, ElementType::BF16, ElementType::F32, ElementType::C128})
      for (const std::vector<int64_t> &along :
           {std::vector<int64_t>{1, 31, 33, 127}, {64, 0, 128}, {96, 97, 98, 99}, {200, 20}})
        checkWrittenOnce(type, dim, along);
}

TEST_CASE("operands that are made of the same values are made together") {
  Shape shape = Shape::array(ElementType::S8, {2048, 512});
  auto planOf = [&](Opcode opcode, bool shifted) {
    Program p;
    auto *x = p.b.parameter(0, Shape::array(ElementType::S8, {2048, 513}), "x"), *y = p.b.parameter(1, shape, "y");
    SliceDim first[] = {{0, 2048, 1}, {0, 512, 1}}, other[] = {{0, 2048, 1}, {shifted ? 1 : 0, shifted ? 513 : 512, 1}};
    auto *a = p.b.slice(x, first), *b = p.b.slice(x, other);
    return planText(p, concatenate(p, {p.b.add(opcode, shape, {a}), y, p.b.add(Opcode::Abs, shape, {b})}, 1));
  };
  std::string together =
      "concatenate: operands 0,2, 1048576 elements, 16 per thread, 512 blocks together; operand 1, 1048576 elements, "
      "16 per thread, 512 blocks; grid 1024, block 128";
  CHECK(planOf(Opcode::Negate, false) == together);
  CHECK(planOf(Opcode::Negate, true).find("together") == std::string::npos); // other elements
  Program small;
  auto *x = small.b.parameter(0, Shape::array(ElementType::S8, {16, 512}), "x");
  CHECK(planText(small, concatenate(small, {x, x}, 1)).find("together") == std::string::npos);
}

TEST_CASE("outputs of a concatenate are elementwise functions and bitcasts of it") {
  Program p;
  HloInstruction *c = concatenate(p, ElementType::F32, {4, 0}, 1, {8, 24});
  HloInstruction *flat = p.b.add(Opcode::Bitcast, Shape::array(ElementType::F32, {128}), {c});
  HloInstruction *negated = p.b.add(Opcode::Negate, flat->shape(), {flat});
  HloInstruction *half = p.b.add(Opcode::Convert, Shape::array(ElementType::F16, {4, 32}), {c});
  CHECK(concatenateRejection(p, p.b.tuple({negated, half, c})) == "");
  HloInstruction *columns = p.b.add(Opcode::Copy, c->shape().withLayout({0, 1}), {c});
  CHECK(concatenateRejection(p, p.b.add(Opcode::Abs, columns->shape(), {columns})) ==
        "no output reads a concatenate elementwise");
}

TEST_CASE("concatenates that stay loops") {
  Program none;
  auto *x = none.b.parameter(0, Shape::array(ElementType::F32, {8}), "x");
  CHECK(concatenateRejection(none, none.b.add(Opcode::Abs, x->shape(), {x})) ==
        "no output reads a concatenate elementwise");
  Program nibbles;
  CHECK(concatenateRejection(nibbles, concatenate(nibbles, ElementType::S4, {0}, 0, {3, 4})) ==
        "operands meet inside a byte");
  Program pairs; // as a stack has them
  CHECK(concatenateRejection(pairs, concatenate(pairs, ElementType::F32, {4096, 0}, 1, {1, 1})) ==
        "its rows are made of runs so short that two often meet inside 32 bytes");
  Program differ;
  auto *a = differ.b.parameter(0, Shape::array(ElementType::F32, {64}), "a");
  auto *b = differ.b.parameter(1, Shape::array(ElementType::F32, {32}), "b");
  HloInstruction *ab = concatenate(differ, {a, b}, 0), *ba = concatenate(differ, {b, a}, 0);
  CHECK(concatenateRejection(differ, differ.b.tuple({ab, ba})) == "concatenates differ");
  Program side;
  auto *y = side.b.parameter(0, Shape::array(ElementType::F32, {64}), "y");
  HloInstruction *both = concatenate(side, {y, y}, 0);
  CHECK(concatenateRejection(side, side.b.tuple({both, side.b.add(Opcode::Negate, y->shape(), {y})})) ==
        "an output has another shape than the concatenate");
  HloInstruction *reversed =
      side.b.add(Opcode::Reverse, both->shape(), {both}, {side.b.ints(AttributeKey::Dimensions, {0})});
  CHECK(concatenateRejection(side, side.b.add(Opcode::Add, both->shape(), {both, reversed})) ==
        "the concatenate is also read at other indices");
}

TEST_CASE("an output takes a parameter's place where each element is read before it is overwritten") {
  Shape shape = Shape::array(ElementType::F32, {64, 64});
  auto takes = [&](Program &p, HloInstruction *root, unsigned output = 0) {
    p.body->setRoot(root);
    FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
    FusionAliasing offers(graph.roots().size());
    offers[output] = 0;
    llvm::FailureOr<FusionPlan> plan = planFusion(graph, offers, *findTarget("sm_90"), p.diagnostics);
    REQUIRE(succeeded(plan));
    return plan->aliasing[output].has_value();
  };
  auto unary = [](Program &p, Opcode opcode, HloInstruction *x) { return p.b.add(opcode, x->shape(), {x}); };
  auto reversed = [](Program &p, HloInstruction *x) {
    return p.b.add(Opcode::Reverse, x->shape(), {x}, {p.b.ints(AttributeKey::Dimensions, {0})});
  };
  {
    Program p;
    CHECK(takes(p, unary(p, Opcode::Abs, unary(p, Opcode::Negate, p.b.parameter(0, shape, "x")))));
  }
  {
    Program p; // also read elsewhere, in whatever way
    auto *x = p.b.parameter(0, shape, "x");
    CHECK_FALSE(takes(p, p.b.add(Opcode::Add, shape, {x, reversed(p, x)})));
  }
  {
    Program p; // by another output, which is computed element by element along with it
    auto *x = p.b.parameter(0, shape, "x");
    CHECK(takes(p, p.b.tuple({unary(p, Opcode::Abs, x), unary(p, Opcode::Negate, x)}), 1));
  }
  {
    Program p; // by another output, in another order
    auto *x = p.b.parameter(0, shape, "x");
    auto *columns = p.b.add(Opcode::Copy, shape.withLayout({0, 1}), {x});
    CHECK_FALSE(takes(p, p.b.tuple({unary(p, Opcode::Abs, x), columns})));
  }
  {
    Program p; // elements of another size
    auto *x = p.b.parameter(0, shape, "x");
    CHECK_FALSE(takes(p, p.b.add(Opcode::Convert, Shape::array(ElementType::BF16, {64, 64}), {x})));
  }
  {
    Program p; // of the same size they may
    auto *x = p.b.parameter(0, shape, "x");
    CHECK(takes(p, p.b.add(Opcode::Convert, Shape::array(ElementType::S32, {64, 64}), {x})));
  }
  {
    Program p; // a tile is read by one block and written by another
    auto *x = p.b.parameter(0, shape, "x");
    CHECK_FALSE(takes(p, p.transpose(x, {1, 0})));
  }
  {
    Program p; // a concatenate moves what it reads
    auto *x = p.b.parameter(0, shape, "x");
    CHECK_FALSE(takes(p, concatenate(p, {x}, 0)));
  }
  {
    Program p; // but not what is added to it
    auto *x = p.b.parameter(0, shape, "x");
    auto *left = p.b.parameter(1, Shape::array(ElementType::F32, {64, 32}), "l");
    CHECK(takes(p, p.b.add(Opcode::Add, shape, {x, concatenate(p, {left, left}, 1)})));
  }
  {
    Program p; // where it is not updated, an array stays what it is
    auto *x = p.b.parameter(0, shape, "x");
    auto *update = p.b.parameter(1, Shape::array(ElementType::F32, {1, 64}), "u");
    auto *start = p.b.parameter(2, Shape::array(ElementType::S32, {}), "i");
    auto *updated = p.b.add(Opcode::DynamicUpdateSlice, shape, {x, update, start, start});
    CHECK(takes(p, updated));
  }
  {
    Program p; // the update comes from the array itself
    auto *x = p.b.parameter(0, shape, "x");
    auto *start = p.b.parameter(1, Shape::array(ElementType::S32, {}), "i");
    auto *row = p.b.add(Opcode::DynamicSlice, Shape::array(ElementType::F32, {1, 64}), {x, start, start},
                        {p.b.ints(AttributeKey::DynamicSliceSizes, {1, 64})});
    CHECK(takes(p, p.b.add(Opcode::DynamicUpdateSlice, shape, {x, row, start, start}))); // from where it goes
  }
  {
    Program p; // and from elsewhere in it
    auto *x = p.b.parameter(0, shape, "x");
    auto *start = p.b.parameter(1, Shape::array(ElementType::S32, {}), "i");
    auto *other = p.b.parameter(2, Shape::array(ElementType::S32, {}), "j");
    auto *row = p.b.add(Opcode::DynamicSlice, Shape::array(ElementType::F32, {1, 64}), {x, other, start},
                        {p.b.ints(AttributeKey::DynamicSliceSizes, {1, 64})});
    CHECK_FALSE(takes(p, p.b.add(Opcode::DynamicUpdateSlice, shape, {x, row, start, start})));
  }
}

namespace {

/// An array of `dims`, updated with one of `sizes`; parameters are both and the starts.
struct UpdateProgram : Program {
  HloInstruction *array, *update;
  llvm::SmallVector<HloInstruction *> starts;

  UpdateProgram(ElementType type, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> sizes)
      : array(b.parameter(0, Shape::array(type, dims), "array")),
        update(b.parameter(1, Shape::array(type, sizes), "update")) {
    for (unsigned i = 0; i < dims.size(); ++i)
      starts.push_back(b.parameter(2 + i, Shape::array(ElementType::S32, {}), "start" + std::to_string(i)));
  }
  HloInstruction *updated(HloInstruction *what, HloInstruction *with) {
    llvm::SmallVector<HloInstruction *> operands{what, with};
    llvm::append_range(operands, starts);
    return b.add(Opcode::DynamicUpdateSlice, what->shape(), operands);
  }
  HloInstruction *updated() { return updated(array, update); }
};

FusionPlan planWith(Program &p, HloInstruction *root, const FusionAliasing &offers) {
  p.body->setRoot(root);
  FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
  llvm::FailureOr<FusionPlan> plan = planFusion(graph, offers, *findTarget("sm_90"), p.diagnostics);
  REQUIRE(succeeded(plan));
  return *plan;
}

} // namespace

TEST_CASE("an update in place has a thread for what is updated") {
  UpdateProgram p(ElementType::F32, {2048, 1024}, {256, 512});
  FusionPlan plan = planWith(p, p.updated(), {0u});
  CHECK(plan.toString() ==
        "dynamic-update-slice: roots 0, 131072 elements, 4 per thread where aligned; grid 256, block "
        "128; output 0 in place of parameter 0");
  CHECK(plan.aliasing == FusionAliasing{0u});

  FusionGraph graph = *FusionGraph::build(*p.body, p.diagnostics);
  KernelSpec spec = describeKernel(graph, plan, std::get<KernelPlan>(plan.steps.front()), "k");
  CHECK(spec.bytesRead == 131072 * 4 + 8); // the update and two starts, nothing of the array
  CHECK(spec.bytesWritten == 131072 * 4);
}

TEST_CASE("an update has vectors where rows are updated as a whole") {
  // Rows of 48 elements are 96 bytes: 8 elements are aligned, wherever a row begins.
  UpdateProgram whole(ElementType::BF16, {8, 65536, 3, 16}, {8, 16384, 3, 16});
  CHECK(planWith(whole, whole.updated(), {0u}).toString() ==
        "dynamic-update-slice: roots 0, 6291456 elements, 8 per thread in 4 rounds; grid 1536, block 128; output 0 in "
        "place of parameter 0");
  // Rows of 49 begin well after every 8th.
  UpdateProgram odd(ElementType::BF16, {65536, 49}, {32768, 49});
  CHECK(planWith(odd, odd.updated(), {0u}).toString().find(", 8 per thread where aligned") != std::string::npos);
}

TEST_CASE("an update of a part of each row has vectors where it starts well") {
  UpdateProgram part(ElementType::BF16, {65536, 64}, {65536, 32});
  FusionPlan plan = planWith(part, part.updated(), {0u});
  CHECK(plan.toString().find(", 8 per thread where aligned;") != std::string::npos);
  auto segmentOf = [](const FusionPlan &own) {
    return std::get<UpdateSlicePlan>(std::get<KernelPlan>(own.steps.front()).plan).segments.front();
  };
  CHECK(segmentOf(plan).updates.front().alignedDim == 1);
  CHECK(segmentOf(plan).updates.front().alignedStart == 8);
  CHECK(segmentOf(plan).perThreadElsewhere == 1);
  // Elements of 4 begin wherever rows of 4 do; 8 of them at every second row.
  UpdateProgram rows(ElementType::BF16, {4096, 64, 4}, {4096, 32, 4});
  plan = planWith(rows, rows.updated(), {0u});
  CHECK(segmentOf(plan).perThread == 8);
  CHECK(segmentOf(plan).perThreadElsewhere == 4);
  CHECK(segmentOf(plan).updates.front().alignedDim == 1);
  CHECK(segmentOf(plan).updates.front().alignedStart == 2);
  // Groups must end with the row of the update, and begin anew with each of the array.
  for (int64_t update : {34, 36}) {
    UpdateProgram odd(ElementType::F32, {65536, 64}, {65536, update});
    CHECK(segmentOf(planWith(odd, odd.updated(), {0u})).perThread == (update & -update));
  }
  UpdateProgram pitch(ElementType::F32, {65536, 66}, {65536, 32});
  CHECK(segmentOf(planWith(pitch, pitch.updated(), {0u})).perThread == 2);
  // A start that is known is good or not.
  for (int64_t start : {8, 6, 5, -7, 1000}) {
    UpdateProgram known(ElementType::F32, {65536, 64}, {65536, 32});
    Literal literal(Shape::array(ElementType::S32, {}));
    literal.setInt(0, start);
    known.starts[1] = known.b.constant(std::move(literal));
    plan = planWith(known, known.updated(), {0u});
    CHECK(segmentOf(plan).perThread == (start == 6 ? 2 : start == 5 ? 1 : 4));
    CHECK(segmentOf(plan).updates.front().alignedStart == 1);
  }
}

TEST_CASE("updates of half bytes store whole bytes but where a row of the update begins and ends") {
  auto segmentOf = [](const FusionPlan &own) {
    return std::get<UpdateSlicePlan>(std::get<KernelPlan>(own.steps.front()).plan).segments.front();
  };
  UpdateProgram whole(ElementType::S4, {64, 64}, {4, 64});
  CHECK_FALSE(segmentOf(planWith(whole, whole.updated(), {0u})).splitsBytes());
  UpdateProgram part(ElementType::S4, {64, 64}, {64, 6});
  UpdateSlicePlan::Segment segment = segmentOf(planWith(part, part.updated(), {0u}));
  CHECK(segment.perThread == 2);
  CHECK(segment.splitsBytes());
  CHECK(segment.runElements() == 6);
  UpdateProgram rows(ElementType::U4, {40, 20, 3}, {40, 10, 3});
  segment = segmentOf(planWith(rows, rows.updated(), {0u}));
  CHECK(segment.splitsBytes());
  CHECK(segment.runElements() == 30);
}

TEST_CASE("updates of one array one after the other are kernels in order, or one if they do not meet") {
  auto index = [](UpdateProgram &p, int64_t value) {
    Literal literal(Shape::array(ElementType::S32, {}));
    literal.setInt(0, value);
    return p.b.constant(std::move(literal));
  };
  auto kernelsOf = [](const FusionPlan &plan) {
    std::vector<UpdateSlicePlan> kernels;
    for (const FusionStep &step : plan.steps)
      kernels.push_back(std::get<UpdateSlicePlan>(std::get<KernelPlan>(step).plan));
    return kernels;
  };
  {
    UpdateProgram p(ElementType::F32, {2048, 1024}, {256, 512});
    auto *other = p.b.parameter(4, Shape::array(ElementType::F32, {8, 1024}), "other");
    auto *first = p.updated();
    FusionPlan plan = planWith(p, p.updated(first, other), {0u});
    CHECK(plan.aliasing == FusionAliasing{0u});
    auto kernels = kernelsOf(plan);
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[0].segments.front().updates.front().hero == first);
    CHECK(kernels[1].segments.front().updates.front().hero == p.body->root());
  }
  {
    UpdateProgram p(ElementType::F32, {2048, 1024}, {256, 512}); // rows 0 to 255, and 256 on, clamped from below
    p.starts[0] = index(p, -3);
    auto *first = p.updated();
    p.starts[0] = index(p, 256);
    auto *second = p.updated(first, p.update);
    p.starts[0] = index(p, 400);
    FusionPlan plan = planWith(p, p.updated(second, p.update), {0u});
    auto kernels = kernelsOf(plan);
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[0].segments.size() == 2);
    CHECK(kernels[1].segments.size() == 1);
  }
  {
    UpdateProgram p(ElementType::F32, {64, 64}, {8, 64}); // updates of two sizes, two arrays
    auto *array = p.b.parameter(4, Shape::array(ElementType::F32, {64, 64}), "other");
    auto *update = p.b.parameter(5, Shape::array(ElementType::F32, {64, 8}), "columns");
    FusionPlan plan = planWith(p, p.b.tuple({p.updated(), p.updated(array, update)}), {0u, 4u});
    CHECK(plan.toString() ==
          "dynamic-update-slice: roots 0, 512 elements, 1 per thread, 4 blocks; roots 1, 512 elements, "
          "1 per thread, 4 blocks; grid 8, block 128; output 0 in place of parameter 0; output 1 in "
          "place of parameter 4");
  }
  {
    UpdateProgram p(ElementType::F32, {64, 64}, {8, 64}); // the second one reads what the first one may overwrite
    auto *first = p.updated();
    auto *row = p.b.add(Opcode::DynamicSlice, p.update->shape(), {p.array, p.starts[0], p.starts[1]},
                        {p.b.ints(AttributeKey::DynamicSliceSizes, {8, 64})});
    FusionPlan plan = planWith(p, p.updated(first, row), {0u});
    CHECK(plan.toString().substr(0, 5) == "loop:");
  }
}

TEST_CASE("an update of an array that stays is made in a copy, where that pays") {
  UpdateProgram large(ElementType::F32, {2048, 1024}, {256, 512});
  FusionPlan plan = planWith(large, large.updated(), {std::nullopt});
  CHECK(plan.toString() ==
        "copy parameter 0 to output 0\n"
        "dynamic-update-slice: roots 0, 131072 elements, 4 per thread where aligned; grid 256, block "
        "128");
  UpdateProgram most(ElementType::F32, {2048, 1024}, {2000, 1024});
  CHECK(planWith(most, most.updated(), {std::nullopt}).toString().substr(0, 5) == "loop:");
  UpdateProgram small(ElementType::F32, {20, 30}, {5, 6});
  CHECK(planWith(small, small.updated(), {std::nullopt}).toString().substr(0, 5) == "loop:");
  UpdateProgram twice(ElementType::F32, {2048, 1024}, {4, 4}); // the second output cannot have the place too
  auto *updated = twice.updated();
  CHECK(planWith(twice, twice.b.tuple({updated, updated}), {0u, 0u}).toString().substr(0, 28) ==
        "copy parameter 0 to output 1");
}

TEST_CASE("nothing is launched for an update of no elements in place") {
  UpdateProgram p(ElementType::F32, {9, 7}, {0, 7});
  FusionPlan plan = planWith(p, p.updated(), {0u});
  CHECK(plan.steps.empty());
  CHECK(plan.aliasing == FusionAliasing{0u});
}

TEST_CASE("updates that stay loops") {
  auto reason = [](Program &p, HloInstruction *root) {
    FusionPlan plan = planWith(p, root, {0u});
    CHECK(plan.toString().substr(0, 5) == "loop:");
    REQUIRE(plan.rejections.size() == size_t(Hero::Loop)); // every hero before it
    const HeroRejection &rejection = plan.rejections[size_t(Hero::DynamicUpdateSlice)];
    CHECK(rejection.hero == "dynamic-update-slice");
    return rejection.reason;
  };
  UpdateProgram nibbles(ElementType::S4, {64, 63}, {4, 60});
  CHECK(reason(nibbles, nibbles.updated()) == "elements share bytes, which threads cannot store one by one");
  UpdateProgram computed(ElementType::F32, {64, 64}, {4, 64});
  auto *negated = computed.b.add(Opcode::Negate, computed.array->shape(), {computed.array});
  CHECK(reason(computed, computed.updated(negated, computed.update)) ==
        "the array that `" + computed.body->root()->name().str() + "` updates is computed");
  // All of it is overwritten, by others than those that read it.
  UpdateProgram reversed(ElementType::F32, {64, 64}, {64, 64});
  auto *back = reversed.b.add(Opcode::Reverse, reversed.array->shape(), {reversed.array},
                              {reversed.b.ints(AttributeKey::Dimensions, {0})});
  CHECK(reason(reversed, reversed.updated(reversed.array, back)) ==
        "an array to be updated in place is also read where other threads write it");
  // An element each for itself is fine.
  UpdateProgram own(ElementType::F32, {64, 64}, {64, 64});
  auto *sum = own.b.add(Opcode::Add, own.array->shape(), {own.array, own.update});
  CHECK(planWith(own, own.updated(own.array, sum), {0u}).toString().substr(0, 21) == "dynamic-update-slice:");
}

TEST_CASE("bytes that are read: of what slices and gathers pick from no more than they pick") {
  auto bytesRead = [](const std::string &body) {
    DiagnosticEngine diagnostics;
    auto source = std::make_shared<const SourceFile>(
        "test", "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
                "ENTRY f {\n x = f32[1000,64] parameter(0)\n i = s32[8,1] parameter(1)\n z = f32[] constant(0)\n" +
                    body + "}\n");
    std::unique_ptr<HloModule> module = parseHloModule(source, diagnostics);
    REQUIRE(module);
    return FusionGraph::build(*module->entry(), diagnostics)->bytesRead();
  };
  const std::string gather = "n = f32[1000,64] negate(x)\n g = f32[8,64] gather(n, i), offset_dims={1}, "
                             "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}\n";
  constexpr uint64_t all = 256000, indices = 32, picked = 2048;
  CHECK(bytesRead("ROOT n = f32[1000,64] negate(x)\n") == all);
  CHECK(bytesRead(gather + "ROOT r = f32[8,64] negate(g)\n") == picked + indices);
  // By two readers; by one that reads all of it.
  CHECK(bytesRead(gather + "s = f32[8,64] slice(x), slice={[3:11], [0:64]}\n ROOT r = f32[8,64] add(g, s)\n") ==
        2 * picked + indices);
  CHECK(bytesRead(gather + "s = f32[64] reduce(x, z), dimensions={0}, to_apply=sum\n"
                           "ROOT t = (f32[8,64], f32[64]) tuple(g, s)\n") == all + indices);
  // Of rows that are reduced, those whose sums are needed.
  CHECK(bytesRead("s = f32[1000] reduce(x, z), dimensions={1}, to_apply=sum\n"
                  "ROOT r = f32[8] slice(s), slice={[0:8]}\n") == picked);
  CHECK(bytesRead("e = f32[0,64] slice(x), slice={[0:0], [0:64]}\n"
                  "ROOT r = f32[64] reduce(e, z), dimensions={0}, to_apply=sum\n") == 0);
}
