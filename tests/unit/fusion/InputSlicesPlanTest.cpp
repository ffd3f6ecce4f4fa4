#include "hloc/fusion/Recomputation.h"

#include "unit/fusion/PlannedEntry.h"

#include "fmt/format.h"
#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Planned : test::PlannedEntry {
  using PlannedEntry::PlannedEntry;
  /// Why it is no kernel of input slices; empty: it is.
  std::string rejection() const { return PlannedEntry::rejection("input-slices"); }
};

const std::string negated = "x = f32[64,96] parameter(0) s = f32[64,96] negate(x) ";

struct Range {
  int64_t start, limit, stride = 1;
  int64_t size() const { return limit <= start ? 0 : (limit - start + stride - 1) / stride; }
};
using Slice = std::vector<Range>;

std::string shapeText(const std::string &type, const std::vector<int64_t> &dims, const std::string &layout) {
  return fmt::format("{}[{}]{}", type, fmt::join(dims, ","), layout);
}

/// Slices of a value of that shape, and all of it if `whole`.
std::string program(const std::string &type, const std::vector<int64_t> &dims, const std::vector<Slice> &slices,
                    const std::string &layout = "", bool whole = false) {
  std::string shape = shapeText(type, dims, layout);
  std::string text = fmt::format("x = {} parameter(0) s = {} add(x, x) ", shape, shape), shapes, names;
  for (const Slice &slice : slices) {
    std::vector<int64_t> sizes;
    std::vector<std::string> ranges;
    for (const Range &range : slice) {
      sizes.push_back(range.size());
      ranges.push_back(fmt::format("[{}:{}:{}]", range.start, range.limit, range.stride));
    }
    std::string own = shapeText(type, sizes, layout), name = fmt::format("v{}", &slice - slices.data());
    text += fmt::format("{} = {} slice(s), slice={{{}}} ", name, own, fmt::join(ranges, ", "));
    shapes += (shapes.empty() ? "" : ", ") + own;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (whole) {
    shapes += ", " + shape;
    names += ", s";
  }
  return text + fmt::format("ROOT t = ({}) tuple({})", shapes, names);
}

/// Position of an index in the memory order of `shape`.
int64_t positionOf(const Shape &shape, llvm::ArrayRef<int64_t> index) {
  int64_t position = 0, unit = 1;
  for (int64_t dim : shape.minorToMajor()) {
    position += index[dim] * unit;
    unit *= shape.dim(unsigned(dim));
  }
  return position;
}

llvm::SmallVector<int64_t> indexAt(const Shape &shape, int64_t position) {
  llvm::SmallVector<int64_t> index(shape.rank());
  for (int64_t dim : shape.minorToMajor()) {
    index[dim] = position % shape.dim(unsigned(dim));
    position /= shape.dim(unsigned(dim));
  }
  return index;
}

/// What the threads do, by their arithmetic: every element of every output is written once, from the element that its
/// slice reads; groups of neighbours are neighbours wherever they are stored, aligned to their size.
class Walk {
public:
  Walk(const FusionGraph &graph, const KernelPlan &kernel) : kernel(kernel) {
    for (const FusionRoot &root : graph.roots())
      times.emplace_back(root.shape.numElements());
  }

  void run() {
    const auto &plan = std::get<InputSlicesPlan>(kernel.plan);
    uint32_t blocks = 0;
    for (const SliceRegion &region : plan.regions) {
      CHECK(region.firstBlock == blocks);
      blocks += region.blocks;
      int64_t groups = int64_t(region.blocks) * region.rounds * kernel.launch.block.x;
      CHECK(groups * region.perThread >= region.elements);
      CHECK((int64_t(region.blocks) - 1) * region.rounds * kernel.launch.block.x < region.groups());
      for (int64_t first = 0; first < region.elements; first += region.perThread)
        addGroup(plan, region, first);
    }
    CHECK(kernel.launch.grid == Dim3{blocks, 1, 1});
    for (const std::vector<unsigned> &output : times)
      CHECK(std::all_of(output.begin(), output.end(), [](unsigned count) { return count == 1; }));
    CHECK(isRight);
    CHECK(isAligned);
  }

private:
  void addGroup(const InputSlicesPlan &plan, const SliceRegion &region, int64_t first) {
    for (unsigned number : region.windows) {
      const SliceWindow &window = plan.windows[number];
      Shape own = Shape::array(ElementType::F32, window.sizes).withLayout(plan.space.minorToMajor());
      std::optional<int64_t> before;
      for (int64_t i = first; i < std::min(first + int64_t(region.perThread), region.elements); ++i) {
        llvm::SmallVector<int64_t> index = indexAt(plan.shapeOf(region), i);
        bool inside = true;
        for (unsigned dim = 0; dim < index.size(); ++dim) {
          int64_t offset = region.starts[dim] + index[dim] * region.strides[dim] - window.starts[dim];
          inside &=
              offset >= 0 && offset % window.strides[dim] == 0 && offset / window.strides[dim] < window.sizes[dim];
          index[dim] = offset / window.strides[dim];
        }
        isRight &= inside || !plan.covers(window, region);
        if (!inside)
          continue;
        int64_t position = positionOf(own, index);
        isAligned &= before ? position == *before + 1 : i != first || position % region.perThread == 0;
        before = position;
        for (unsigned root : window.roots)
          ++times[root][position];
      }
    }
  }

  const KernelPlan &kernel;
  std::vector<std::vector<unsigned>> times; ///< by output and position
  bool isRight = true, isAligned = true;
};

} // namespace

TEST_CASE("slices side by side have blocks of their own") {
  Planned p(
      program("bf16", {2048, 3072}, {{{0, 2048}, {0, 1024}}, {{0, 2048}, {1024, 2048}}, {{0, 2048}, {2048, 3072}}}));
  CHECK(p.text() ==
        "input-slices: [0:2048,0:1024] for roots 0, 2097152 elements, 8 per thread in 4 rounds, 512 blocks; "
        "[0:2048,1024:2048] for roots 1, 2097152 elements, 8 per thread in 4 rounds, 512 blocks; "
        "[0:2048,2048:3072] for roots 2, 2097152 elements, 8 per thread in 4 rounds, 512 blocks; grid 1536, block 128");
}

TEST_CASE("what several slices show is computed once") {
  Planned p(program("f32", {4000}, {{{0, 2400}}, {{1600, 4000}}}));
  CHECK(p.text() == "input-slices: [0:1600] for roots 0, 1600 elements, 1 per thread, 13 blocks; "
                    "[1600:2400] for roots 0,1, 800 elements, 1 per thread, 7 blocks; "
                    "[2400:4000] for roots 1, 1600 elements, 1 per thread, 13 blocks; grid 33, block 128");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  for (const Evaluation &evaluation : evaluations(*p.graph, p.kernel(), &context))
    if (evaluation.instr->name() == "s")
      CHECK(evaluation.count == 4000);
}

TEST_CASE("elements of slices that share sectors are tested") {
  std::string shifted = program("f32", {3000, 12}, {{{0, 3000}, {0, 10}}, {{0, 3000}, {1, 11}}, {{0, 3000}, {2, 12}}});
  CHECK(Planned(shifted).text() == "input-slices: [0:3000,0:12] for roots 0,1,2, tested, 36000 elements, 1 "
                                   "per thread, 282 blocks; grid 282, block 128");
  std::string steps = program("f32", {3000, 64}, {{{0, 3000}, {0, 64, 2}}, {{0, 3000}, {1, 64, 2}}});
  CHECK(Planned(steps).text() == "input-slices: [0:3000,0:64] for roots 0,1, tested, 192000 elements, 1 per "
                                 "thread, 1500 blocks; grid 1500, block 128");
  // Rows that are left out are not read.
  std::string rows = program("f32", {3000, 64}, {{{0, 3000, 4}, {0, 64}}, {{1, 3000, 4}, {0, 64}}});
  CHECK(Planned(rows).text() ==
        "input-slices: [0:2997:4,0:64] for roots 0, 48000 elements, 4 per thread, 94 blocks; "
        "[1:2998:4,0:64] for roots 1, 48000 elements, 4 per thread, 94 blocks; grid 188, block 128");
}

TEST_CASE("threads write each element of each slice once, in aligned groups of neighbours") {
  for (const char *type : {"s8", "bf16", "f32", "c128"})
    for (const char *layout : {"", "{0,1}"})
      for (bool whole : {false, true})
        for (const std::vector<Slice> &slices : std::vector<std::vector<Slice>>{
                 {{{0, 97}, {0, 64}}, {{0, 97}, {64, 128}}},
                 {{{0, 97}, {0, 33}}, {{0, 97}, {33, 128}}},
                 {{{0, 60}, {0, 100}}, {{31, 97}, {28, 128}}, {{50, 51}, {50, 51}}},
                 {{{0, 97, 2}, {0, 128, 2}}, {{1, 97, 2}, {1, 128, 2}}, {{0, 97}, {0, 128, 3}}},
                 {{{0, 0}, {0, 128}}, {{5, 97}, {16, 128}}},
                 {{{0, 97, 96}, {0, 128, 127}}, {{0, 97}, {0, 128}}, {{96, 97}, {127, 128}}}}) {
          Planned p(program(type, {97, 128}, slices, layout, whole), {}, "sm_72");
          REQUIRE(p.rejection() == "");
          INFO(p.kernel().toString());
          Walk(*p.graph, p.kernel()).run();
        }
}

TEST_CASE("packed elements share no byte") {
  for (const std::vector<Slice> &slices : {std::vector<Slice>{{{0, 2400}}, {{1200, 3601}}},
                                           {{{0, 2401}}, {{1201, 3601}}},
                                           {{{0, 2400}}, {{1201, 3601}}}}) {
    Planned p(program("s4", {3601}, slices), {}, "sm_72");
    REQUIRE(p.rejection() == "");
    INFO(p.kernel().toString());
    Walk(*p.graph, p.kernel()).run();
    const auto &plan = std::get<InputSlicesPlan>(p.kernel().plan);
    // Cut up only where that is between two bytes of both slices.
    CHECK(plan.regions.size() == (slices[0][0].limit % 2 == 0 && slices[1][0].start % 2 == 0 ? 3 : 2));
    for (const SliceRegion &region : plan.regions)
      CHECK(region.perThread >= 2);
  }
}

TEST_CASE("outputs are elementwise functions and bitcasts of one slice each") {
  CHECK(Planned(negated +
                "a = f32[64,40] slice(s), slice={[0:64], [0:40]} b = f32[64,40] slice(s), slice={[0:64], [50:90]} "
                "c = bf16[64,40] convert(a) d = f32[2560] bitcast(b) e = f32[2560] exponential(d) "
                "ROOT t = (bf16[64,40], f32[2560], f32[64,96]) tuple(c, e, s)")
            .rejection() == "");
  auto rejected = [](const std::string &rest) { return Planned(negated + rest).rejection(); };
  const std::string two =
      "a = f32[64,40] slice(s), slice={[0:64], [0:40]} b = f32[64,40] slice(s), slice={[0:64], [50:90]} ";
  CHECK(rejected("ROOT t = (f32[64,96], f32[64,96]) tuple(s, x)") == "no output reads a slice elementwise");
  CHECK(rejected(two + "c = f32[64,40] add(a, b) ROOT t = (f32[64,40], f32[64,40]) tuple(c, a)") ==
        "an output reads two different slices");
  CHECK(rejected(two + "c = f32[64,40] reverse(b), dimensions={0} ROOT t = (f32[64,40], f32[64,40], f32[64,40]) "
                       "tuple(a, b, c)") == "a slice is also read at other indices");
  CHECK(rejected(two + "c = f32[64,40] abs(a) ROOT t = (f32[64,40], f32[64,40]) tuple(c, a)") ==
        "all outputs show the same slice");
  CHECK(rejected(two + "y = f32[3] parameter(1) ROOT t = (f32[64,40], f32[64,40], f32[3]) tuple(a, b, y)") ==
        "an output has another shape than the sliced array");
  CHECK(rejected(two + "ROOT r = f32[64,40] abs(a)") == "only one output");
}

TEST_CASE("an output takes the place of what its own slice alone is computed with") {
  const std::string slices = negated + "z = f32[64,40] parameter(1) a = f32[64,40] slice(s), slice={[0:64], [0:40]} "
                                       "b = f32[64,40] slice(s), slice={[0:64], [32:72]} c = f32[64,40] add(a, z) ";
  auto taken = [](const std::string &text) { return Planned(text, {1u, std::nullopt}).plan.aliasing.front(); };
  CHECK(taken(slices + "ROOT t = (f32[64,40], f32[64,40]) tuple(c, b)") == 1u);
  // Blocks that compute the second slice would find what the first has left.
  CHECK(taken(slices + "d = f32[64,40] add(b, z) ROOT t = (f32[64,40], f32[64,40]) tuple(c, d)") == std::nullopt);
  CHECK(Planned(slices + "ROOT t = (f32[64,40], f32[64,40]) tuple(c, b)", {0u, std::nullopt}).plan.aliasing.front() ==
        std::nullopt);
}

TEST_CASE("many slices, and slices whose edges make many cells, are planned without a grid of their edges") {
  std::vector<Slice> many, crossing;
  for (int64_t i = 0; i < 300; ++i)
    many.push_back({{i * 10, i * 10 + 10}});
  for (int64_t i = 0; i < 100; ++i)
    crossing.push_back({{i, 200 - i}, {99 - i, 101 + i}});
  CHECK(Planned(program("f32", {3000}, many)).rejection() == "too many slices");
  Planned p(program("f32", {200, 200}, crossing), {}, "sm_72");
  REQUIRE(p.rejection() == "");
  CHECK(std::get<InputSlicesPlan>(p.kernel().plan).regions.size() <= 100);
  Walk(*p.graph, p.kernel()).run();
}
