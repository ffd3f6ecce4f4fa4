#include "hloc/fusion/ColumnPieces.h"
#include "hloc/fusion/FusionPlan.h"
#include "hloc/hlo/HloBuilder.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Program {
  HloModule module{"m"};
  HloComputation *body = module.addComputation("f");
  HloBuilder b{*body};
  DiagnosticEngine diagnostics;
  int64_t nextParameter = 0;

  HloInstruction *parameter(const Shape &shape) {
    int64_t number = nextParameter++;
    return b.parameter(number, shape, "p" + std::to_string(number));
  }

  /// A reducer of two numbers.
  HloComputation *reducer(Opcode opcode, ElementType type) {
    HloComputation *computation = module.addComputation("reducer");
    HloBuilder inner{*computation};
    HloInstruction *x = inner.parameter(0, Shape::scalar(type), "x"), *y = inner.parameter(1, Shape::scalar(type), "y");
    computation->setRoot(inner.add(opcode, Shape::scalar(type), {x, y}));
    return computation;
  }

  HloInstruction *reduce(HloInstruction *x, llvm::ArrayRef<int64_t> over, Opcode opcode = Opcode::Add) {
    ElementType type = x->shape().elementType();
    llvm::SmallVector<int64_t> kept;
    for (unsigned i = 0; i < x->shape().rank(); ++i)
      if (!llvm::is_contained(over, int64_t(i)))
        kept.push_back(x->shape().dim(i));
    HloInstruction *init = parameter(Shape::scalar(type));
    return b.add(Opcode::Reduce, Shape::array(type, kept), {x, init},
                 {b.ints(AttributeKey::Dimensions, over), {AttributeKey::ToApply, reducer(opcode, type)}});
  }

  HloInstruction *unary(Opcode opcode, HloInstruction *x) { return b.add(opcode, x->shape(), {x}); }

  FusionPlan plan(HloInstruction *root, const char *target = "sm_90") {
    body->setRoot(root);
    FusionGraph graph = *FusionGraph::build(*body, diagnostics);
    llvm::FailureOr<FusionPlan> made = planFusion(graph, {}, *findTarget(target), diagnostics);
    REQUIRE(succeeded(made));
    return *made;
  }
};

std::string rowPlan(ElementType type, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> over,
                    const char *target = "sm_90") {
  Program p;
  return p.plan(p.reduce(p.parameter(Shape::array(type, dims)), over), target).toString();
}

/// Why the fusion is no reduction of rows.
std::string rejection(Program &p, HloInstruction *root) {
  for (const HeroRejection &rejection : p.plan(root).rejections)
    if (rejection.hero == "row-reduction")
      return rejection.reason;
  return "";
}

} // namespace

TEST_CASE("threads of a row by its length") {
  CHECK(rowPlan(ElementType::F32, {262144, 16}, {1}) ==
        "rows: [262144,16] over 1; roots 0; 4 per thread, 2 threads a row, 128 rows a block; grid 2048, block 256");
  CHECK(rowPlan(ElementType::F32, {4096, 1024}, {1}) ==
        "rows: [4096,1024] over 1; roots 0; 4 per thread, 32 threads a row, 8 rows a block; grid 512, block 256");
  CHECK(rowPlan(ElementType::BF16, {2048, 8192}, {1}) == "rows: [2048,8192] over 1; roots 0; 8 per thread, 128 threads "
                                                         "a row, 2 rows a block; grid 1024, block 256, shared 1024");
  CHECK(rowPlan(ElementType::S8, {4096, 4096}, {1}) ==
        "rows: [4096,4096] over 1; roots 0; 16 per thread, 32 threads a row, 8 rows a block; grid 512, block 256");
  CHECK(rowPlan(ElementType::F32, {65536, 33}, {1}) ==
        "rows: [65536,33] over 1; roots 0; 1 per thread, 32 threads a row, 8 rows a block; grid 8192, block 256");
  CHECK(rowPlan(ElementType::F32, {1000, 4097}, {1}) ==
        "rows: [1000,4097] over 1; roots 0; 4 per thread and edges, 128 threads a row, 2 rows a block; grid 500, block "
        "256, shared 1024");
  // Vectors that begin with the array's: two pieces of a row are few, unless its edges have more elements than threads,
  // or rows are few.
  CHECK(rowPlan(ElementType::BF16, {8192, 257}, {1}) ==
        "rows: [8192,257] over 1; roots 0; 8 per thread and edges, 16 threads a row, 16 rows a block; grid 512, block "
        "256");
  CHECK(
      rowPlan(ElementType::S8, {8192, 1001}, {1}) ==
      "rows: [8192,1001] over 1; roots 0; 16 per thread and edges, 32 threads a row, 8 rows a block; grid 1024, block "
      "256");
  CHECK(rowPlan(ElementType::F32, {100, 128}, {1}) ==
        "rows: [100,128] over 1; roots 0; 4 per thread, 8 threads a row, 4 rows a block; grid 25, block 32");
}

TEST_CASE("warps of a row meet before one of them shuffles, where that takes more than an instruction") {
  auto meets = [](ElementType type, Opcode combiner, llvm::ArrayRef<int64_t> dims, const char *target = "sm_90") {
    Program p;
    FusionPlan plan = p.plan(p.reduce(p.parameter(Shape::array(type, dims)), {1}, combiner), target);
    return std::get<RowReductionPlan>(std::get<KernelPlan>(plan.steps.front()).plan).meetsBeforeShuffling;
  };
  CHECK(meets(ElementType::F32, Opcode::Add, {2048, 8192}));
  CHECK(meets(ElementType::S64, Opcode::Add, {2048, 8192}));
  CHECK(!meets(ElementType::S32, Opcode::Add, {2048, 8192}));
  CHECK(meets(ElementType::S32, Opcode::Add, {2048, 8192}, "sm_75"));
  CHECK(!meets(ElementType::Pred, Opcode::Or, {2048, 65536}));
  CHECK(!meets(ElementType::F32, Opcode::Add, {2048, 1024})); // a warp a row
  CHECK(!meets(ElementType::F32, Opcode::Add, {2048, 2048})); // two
}

TEST_CASE("several short rows are one thread's where they are vectors together") {
  CHECK(rowPlan(ElementType::F32, {1048576, 3}, {1}) ==
        "rows: [1048576,3] over 1; roots 0; 12 per thread, 4 rows of each thread, 1024 a block; grid 1024, block 256");
  CHECK(rowPlan(ElementType::F32, {1048577, 2}, {1}) ==
        "rows: [1048577,2] over 1; roots 0; 4 per thread, 2 rows of each thread, 512 a block; grid 2049, block 256");
  CHECK(rowPlan(ElementType::BF16, {262144, 7}, {1}) ==
        "rows: [262144,7] over 1; roots 0; 56 per thread, 8 rows of each thread, 512 a block; grid 512, block 64");
  CHECK(rowPlan(ElementType::F32, {262144, 31}, {1}) ==
        "rows: [262144,31] over 1; roots 0; 62 per thread, 2 rows of each thread, 512 a block; grid 512, block 256");
  CHECK(rowPlan(ElementType::S8, {1000003, 9}, {1}) ==
        "rows: [1000003,9] over 1; roots 0; 72 per thread, 8 rows of each thread, 2048 a block; grid 489, block 256");
  // Fewer rows a thread where they are few, one where it is vectors by itself.
  CHECK(rowPlan(ElementType::BF16, {30000, 7}, {1}) ==
        "rows: [30000,7] over 1; roots 0; 28 per thread, 4 rows of each thread, 128 a block; grid 235, block 32");
  CHECK(rowPlan(ElementType::F32, {6554, 3}, {1}) ==
        "rows: [6554,3] over 1; roots 0; 3 per thread, 1 thread a row, 32 rows a block; grid 205, block 32");
  CHECK(rowPlan(ElementType::F32, {262144, 12}, {1}) ==
        "rows: [262144,12] over 1; roots 0; 12 per thread, 1 thread a row, 256 rows a block; grid 1024, block 256");
}

TEST_CASE("long rows are made in parts where rows are few") {
  CHECK(rowPlan(ElementType::F32, {1 << 24}, {0}) ==
        "scratch 0: f32[1024,1]{1,0}\n"
        "rows: [16777216] over 0; roots 0; 4 per thread, 256 threads a row, 1 row a block, 1024 parts of 16384 "
        "elements; grid 1024, block 256, shared 1024\n"
        "rows: 1024 parts of each of [16777216] over 0; roots 0; 256 threads a row, 1 row a block; grid 1, block 256, "
        "shared 1024");
  CHECK(rowPlan(ElementType::BF16, {8, 1000003}, {1}) ==
        "scratch 0: f32[29,8]{1,0}\n"
        "rows: [8,1000003] over 1; roots 0; 8 per thread and edges, 256 threads a row, 1 row a block, 29 parts of "
        "34816 elements; grid 232, block 256, shared 1024\n"
        "rows: 29 parts of each of [8,1000003] over 1; roots 0; 8 threads a row, 4 rows a block; grid 2, block 32");
  CHECK(rowPlan(ElementType::F32, {8, 16384}, {1}) == "rows: [8,16384] over 1; roots 0; 4 per thread, 256 threads a "
                                                      "row, 1 row a block; grid 8, block 256, shared 1024");
}

TEST_CASE("no parts where a second kernel takes longer than what it saves") {
  CHECK(rowPlan(ElementType::F32, {40, 40960}, {1}) ==
        "rows: [40,40960] over 1; roots 0; 4 per thread, 1024 threads a row, 1 row a block; grid 40, block 1024, "
        "shared 4096");
  CHECK(rowPlan(ElementType::F32, {1400, 1400}, {0}) ==
        "columns: [1400,1400] over 0; roots 0; 4 per thread, 8 x 128 threads; grid 44, block 1024, shared 17920");
  Program p;
  FusionPlan plan = p.plan(p.reduce(p.parameter(Shape::array(ElementType::F32, {1400, 1400})), {0}));
  auto isEstimate = [](const HeroRejection &rejection) {
    return rejection.hero == "column-reduction" && llvm::StringRef(rejection.reason).starts_with("estimated ") &&
           llvm::StringRef(rejection.reason).contains("21 parts of 64 rows");
  };
  CHECK(llvm::count_if(plan.rejections, isEstimate) == 1);
  // Too few blocks, for so much, or at all.
  CHECK(rowPlan(ElementType::F32, {32, 131072}, {1}).starts_with("scratch"));
  CHECK(rowPlan(ElementType::F32, {4, 262144}, {1}).starts_with("scratch"));
  CHECK(rowPlan(ElementType::F32, {8192, 512}, {0}).starts_with("scratch"));
  CHECK(rowPlan(ElementType::F32, {16384, 64}, {0}).starts_with("scratch"));
}

TEST_CASE("dimensions are those of memory") {
  CHECK(rowPlan(ElementType::F32, {7, 100, 128}, {0, 2}) ==
        "rows: [7,100,128] over 0,2; roots 0; 4 per thread, 32 threads a row, 1 row a block, 7 runs; grid 100, block "
        "32");
  CHECK(rowPlan(ElementType::F32, {3, 1, 5, 7, 8}, {0, 3, 4}) ==
        "rows: [3,5,56] over 0,2; roots 0; 4 per thread, 16 threads a row, 2 rows a block, 3 runs; grid 3, block 32");
  Program p;
  Shape columnMajor = Shape::array(ElementType::F32, {512, 300}).withLayout({0, 1});
  CHECK(p.plan(p.reduce(p.parameter(columnMajor), {0})).toString() ==
        "rows: [300,512] over 1; roots 0; 4 per thread, 32 threads a row, 1 row a block; grid 300, block 32");
}

TEST_CASE("runs of a row are walked by themselves") {
  // Parts of a run, as long as leave no multiprocessor without a block.
  CHECK(
      rowPlan(ElementType::F32, {8, 16, 128, 128}, {0, 2, 3}) ==
      "scratch 0: f32[8,16]{1,0}\n"
      "rows: [8,16,16384] over 0,2; roots 0; 4 per thread, 256 threads a row, 1 row a block, 8 runs, 8 parts of 16384 "
      "elements; grid 128, block 256, shared 1024\n"
      "rows: 8 parts of each of [8,16,16384] over 0,2; roots 0; 2 threads a row, 16 rows a block; grid 1, block 32");
}

TEST_CASE("outputs of a row reduction") {
  Program p;
  HloInstruction *x = p.parameter(Shape::array(ElementType::F32, {64, 512}));
  HloInstruction *sum = p.reduce(x, {1});
  HloInstruction *scale = p.parameter(Shape::array(ElementType::F32, {64}));
  HloInstruction *scaled = p.b.add(Opcode::Multiply, sum->shape(), {sum, scale});
  HloInstruction *square = p.b.add(Opcode::Reshape, Shape::array(ElementType::F32, {8, 8}), {scaled});
  CHECK(p.plan(p.b.tuple({square, p.unary(Opcode::Exponential, x), p.unary(Opcode::Negate, scale)})).toString() ==
        "rows: [64,512] over 1; roots 0,2; side roots 1; 4 per thread, 32 threads a row, 1 row a block; grid 64, block "
        "32");
}

namespace {

/// Where blocks and threads of a column reduction are, of each of its kernels.
std::vector<ColumnTiling> columnTilings(ElementType type, llvm::ArrayRef<int64_t> dims) {
  Program p;
  std::vector<ColumnTiling> tilings;
  FusionPlan plan = p.plan(p.reduce(p.parameter(Shape::array(type, dims)), {int64_t(dims.size()) - 2}));
  for (const FusionStep &step : plan.steps)
    if (const auto *columns = std::get_if<ColumnReductionPlan>(&std::get<KernelPlan>(step).plan))
      tilings.push_back(columns->tiling);
  return tilings;
}

} // namespace

TEST_CASE("threads of a column reduction") {
  CHECK(rowPlan(ElementType::F32, {64, 128}, {0}) ==
        "columns: [64,128] over 0; roots 0; 4 per thread, 16 x 8 threads; grid 2, block 128, shared 2048");
  CHECK(rowPlan(ElementType::F32, {11, 72, 8}, {1}) ==
        "columns: [11,72,8] over 1; roots 0; 4 per thread, 2 x 9 threads; grid 11, block 18, shared 288");
  CHECK(rowPlan(ElementType::S8, {10240, 72, 32}, {1}) ==
        "columns: [10240,72,32] over 1; roots 0; 16 per thread, 2 x 8 threads for each of 16 slices, up to 96 "
        "registers for 8 loads in flight; grid 640, block 256, shared 16512");
  // There is one slice for many blocks.
  CHECK(columnTilings(ElementType::F32, {8, 200000}).front().slicesPerBlock == 1);
}

TEST_CASE("columns that nearly fill the device are not shared") {
  CHECK(columnTilings(ElementType::F32, {7, 500000}).front().groups == 1);
  CHECK(columnTilings(ElementType::F32, {7, 250000}).front().groups == 2);
  CHECK(rowPlan(ElementType::F32, {7, 500001}, {0}).starts_with("loop: "));
  // Lanes that divide the columns, as 40 do, are of no use where the last warp of each block is half empty.
  for (int64_t columns : {300000, 500000, 500020, 700000}) {
    ColumnTiling tiling = columnTilings(ElementType::F32, {7, columns}).front();
    CHECK(tiling.threads() % 32 == 0);
  }
}

TEST_CASE("vectors reach over the end of odd rows") {
  CHECK(rowPlan(ElementType::F32, {1000, 3}, {0}) ==
        "columns: [1000,3] over 0; roots 0; 4 per thread, 3 x 50 threads, 4 rows at once; grid 1, block 150, "
        "shared 2580");
  // Of several slices only those of whole vectors.
  CHECK(columnTilings(ElementType::F32, {5, 1000, 3}).front().rowsPerRun == 4);
  CHECK(columnTilings(ElementType::F32, {5, 1001, 3}).front().rowsPerRun == 1);
}

TEST_CASE("long columns are made in parts where they are few") {
  CHECK(rowPlan(ElementType::F32, {16384, 256}, {0}) ==
        "scratch 0: f32[128,256]{1,0}\n"
        "columns: [16384,256] over 0; roots 0; 4 per thread, 32 x 8 threads, 128 parts of 128 rows, up to 88 "
        "registers for 16 loads in flight; grid 256, block 256, shared 4096\n"
        "columns: 128 parts of each of [16384,256] over 0; roots 0; 32 x 8 threads; grid 8, block 256, shared 1024");
  // No block more than all multiprocessors have room for at once.
  ColumnTiling tiling = columnTilings(ElementType::F32, {200000, 1280}).front();
  CHECK(tiling.splits > 1);
  CHECK(tiling.blocks() <= 264);
}

TEST_CASE("whole columns of half the multiprocessors read as fast as parts of all, and need no second kernel") {
  CHECK(rowPlan(ElementType::F32, {4096, 1024}, {0}) ==
        "columns: [4096,1024] over 0; roots 0; 4 per thread, 4 x 256 threads; grid 64, block 1024, shared 17408");
  // As wide as leaves each a block, or two smaller ones.
  CHECK(rowPlan(ElementType::BF16, {4096, 14336}, {0}) ==
        "columns: [4096,14336] over 0; roots 0; 8 per thread, 16 x 64 threads; grid 112, block 1024, shared 36992");
  CHECK(rowPlan(ElementType::F32, {700, 12288}, {0}) ==
        "columns: [700,12288] over 0; roots 0; 4 per thread, 16 x 32 threads; grid 192, block 512, shared 8192");
  // Single elements of four bytes in odd rows, not of two.
  CHECK(rowPlan(ElementType::F32, {1000, 4097}, {0}) ==
        "columns: [1000,4097] over 0; roots 0; 1 per thread, 32 x 32 threads; grid 129, block 1024, shared 4096");
  CHECK(rowPlan(ElementType::BF16, {2000, 4097}, {0}).starts_with("scratch"));
  // So much that a second kernel is nothing beside it.
  CHECK(rowPlan(ElementType::F32, {16384, 16384}, {0}).starts_with("scratch"));
  // A vector is one element of 16 bytes: lanes with two leave gaps in each access.
  CHECK(rowPlan(ElementType::C128, {2048, 128}, {0}).find("; 1 per thread, ") != std::string::npos);
}

TEST_CASE("tilings of any size cover the operand and fit the device") {
  TargetInfo target = *findTarget("sm_90");
  const ElementType types[] = {ElementType::S8, ElementType::BF16, ElementType::F32, ElementType::C128};
  const int64_t manySlices[] = {1, 3, 700}, manyRows[] = {2, 31, 129, 4096, 100003},
                manyColumns[] = {2, 3, 12, 33, 65, 96, 256, 257, 1000, 4097};
  for (ElementType type : types)
    for (int64_t slices : manySlices)
      for (int64_t rows : manyRows)
        for (int64_t columns : manyColumns)
          for (const ColumnTiling &tiling : columnTilings(type, {slices, rows, columns})) {
            INFO(slices << " x " << rows << " x " << columns << ", " << text(type).str());
            CHECK(tiling.threads() <= int64_t(target.maxThreadsPerBlock));
            CHECK(tiling.slicesPerBlock <= tiling.slices);
            CHECK((tiling.rowsPerRun == 1 || tiling.tiles == 1));
            CHECK((tiling.slices == 1 || tiling.rows % tiling.rowsPerRun == 0));
            // Whole vectors, no tile and no split in vain.
            CHECK(tiling.columns * tiling.rowsPerRun % tiling.perThread == 0);
            CHECK(tiling.tiles * tiling.runElements() >= tiling.columns * tiling.rowsPerRun);
            CHECK((tiling.tiles - 1) * tiling.runElements() < tiling.columns * tiling.rowsPerRun);
            CHECK(tiling.splits * tiling.chunksPerSplit >= tiling.wholeChunks());
            CHECK((tiling.splits == 1 || (tiling.splits - 1) * tiling.chunksPerSplit < tiling.wholeChunks()));
            // Enough blocks for large operands, as far as rows go round. Of c128, whose vectors are one element, nearly
            // half of the multiprocessors will do: they read as fast as memory can (leavesIdle), and no second kernel
            // follows.
            bool isLarge = double(slices) * double(rows) * double(columns) * bitWidth(type) >= 8.0 * (8 << 20);
            const int64_t percent = type == ElementType::C128 && tiling.splits == 1 ? 45 : 100;
            if (tiling.rows == rows && isLarge && slices * rows >= 100000)
              CHECK(tiling.blocks() * 100 >= int64_t(target.multiprocessors) * percent);
          }
}

TEST_CASE("short pieces of rows are columns") {
  // Where a row is several pieces that lie apart, the lanes of a warp go on with the next row's.
  CHECK(rowPlan(ElementType::F32, {64, 20000, 3}, {0, 2}) ==
        "columns: [64,20000,3] over 0,2; roots 0; 4 per thread, 48 x 5 threads; grid 313, block 240, shared 3840");
  CHECK(rowPlan(ElementType::BF16, {8, 65536, 7}, {0, 2}) ==
        "columns: [8,65536,7] over 0,2; roots 0; 8 per thread, 56 x 2 threads; grid 1024, block 112, shared 3712");
  CHECK(rowPlan(ElementType::F32, {32, 4096, 49}, {0, 2}) ==
        "columns: [32,4096,49] over 0,2; roots 0; 4 per thread, 49 x 3 threads; grid 1024, block 147, shared 2560");
  CHECK(rowPlan(ElementType::F16, {205, 1615, 4}, {0, 2}) ==
        "columns: [205,1615,4] over 0,2; roots 0; 4 per thread, 16 x 41 threads; grid 101, block 656, shared 3072");
  CHECK(rowPlan(ElementType::F32, {50000, 2, 3}, {0, 2}) ==
        "scratch 0: f32[36,2]{1,0}\n"
        "columns: [50000,2,3] over 0,2; roots 0; 4 per thread, 3 x 85 threads, 2 rows at once, 36 parts of 1360 rows, "
        "up to 88 registers for 16 loads in flight; grid 36, block 255, shared 4264\n"
        "columns: 36 parts of each of [50000,2,3] over 0,2; roots 0; 2 x 9 threads; grid 1, block 18, shared 72");
  CHECK(rowPlan(ElementType::F32, {700, 3, 5, 7}, {1, 3}) ==
        "columns: [700,3,5,7] over 1,3; roots 0; 1 per thread, 35 x 1 threads for each of 2 slices; grid 350, block "
        "70, shared 280");
  CHECK(rowPlan(ElementType::BF16, {1031, 1367, 3}, {0, 2}) ==
        "scratch 0: f32[8,1367]{1,0}\n"
        "columns: [1031,1367,3] over 0,2; roots 0; 8 per thread, 24 x 10 threads, 8 rows as one, 8 parts of 80 rows; "
        "grid 171, block 240, shared 7808\n"
        "columns: 8 parts of each of [1031,1367,3] over 0,2; roots 0; 32 x 2 threads; grid 43, block 64, shared 256");
  // Whole sectors: pieces, or those of the neighbouring rows of a warp. Long ones, and of dimensions that take turns.
  for (int64_t piece : {2, 4, 8, 16, 65, 129})
    CHECK(rowPlan(ElementType::F32, {16, 100000, piece}, {0, 2}).starts_with("rows"));
  CHECK(rowPlan(ElementType::F32, {16, 100, 10, 100, 3}, {0, 2, 4}).starts_with("rows"));
  CHECK(rowPlan(ElementType::F32, {100, 10, 100, 10, 3}, {1, 3, 4}) ==
        "columns: [100,10,100,30] over 1,3; roots 0; 4 per thread, 45 x 2 threads for each of 2 slices; grid 850, "
        "block 180, shared 1440");
  Program p;
  CHECK(rejection(p, p.reduce(p.parameter(Shape::array(ElementType::F32, {64, 20000, 3})), {0, 2})) ==
        "rows are short pieces that lie apart: they are columns");
}

TEST_CASE("tiles of pieces have whole ones") {
  for (ElementType type : {ElementType::S8, ElementType::BF16, ElementType::F32, ElementType::C128})
    for (int64_t rows : {2, 31, 4096})
      for (int64_t kept : {2, 31, 257, 4096, 100003})
        for (int64_t piece : {2, 3, 4, 7, 12, 24, 33, 49, 63}) {
          Program p;
          FusionPlan plan = p.plan(p.reduce(p.parameter(Shape::array(type, {rows, kept, piece})), {0, 2}));
          const auto *columns = std::get_if<ColumnReductionPlan>(&std::get<KernelPlan>(plan.steps.front()).plan);
          if (!columns)
            continue;
          INFO(rows << " x " << kept << " x " << piece << ", " << text(type).str());
          const ColumnTiling &tiling = columns->tiling;
          ColumnPieces pieces = piecesOf(*columns);
          CHECK(pieces.size == piece);
          CHECK(tiling.columns % (kept * piece) == 0);
          CHECK(tiling.blockColumns() % piece == 0);
          CHECK(tiling.perThread % pieces.own == 0);
          CHECK(piece % pieces.own == 0);
          CHECK(pieces.few <= pieces.parts);
          CHECK(tiling.threads() <= 1024);
        }
}

TEST_CASE("what is no row reduction") {
  Shape matrix = Shape::array(ElementType::F32, {64, 512});
  SECTION("columns") {
    Program p;
    CHECK(rejection(p, p.reduce(p.parameter(matrix), {0})) == "the minor dimension is kept");
  }
  SECTION("no reduction") {
    Program p;
    CHECK(rejection(p, p.unary(Opcode::Negate, p.parameter(matrix))) == "no output reads a reduction elementwise");
  }
  SECTION("a reducer that depends on the order") {
    Program p;
    CHECK(rejection(p, p.reduce(p.parameter(matrix), {1}, Opcode::Subtract)) ==
          "the order in which `reduce.1.anon` applies its reducer may matter");
  }
  SECTION("products of narrow floats") {
    Program p;
    CHECK(rejection(p, p.reduce(p.parameter(matrix.withElementType(ElementType::F16)), {1}, Opcode::Multiply)) ==
          "the order in which `reduce.1.anon` applies its reducer may matter");
  }
  SECTION("nothing to reduce") {
    Program p;
    CHECK(rejection(p, p.reduce(p.parameter(Shape::array(ElementType::F32, {64, 0})), {1})) ==
          "there is nothing to reduce");
  }
  SECTION("one element each") {
    Program p;
    CHECK(rejection(p, p.reduce(p.parameter(Shape::array(ElementType::F32, {64, 1})), {1})) ==
          "each result has one element");
  }
  SECTION("read back at every element") {
    Program p;
    HloInstruction *x = p.parameter(matrix), *sum = p.reduce(x, {1});
    HloInstruction *broadcast = p.b.add(Opcode::Broadcast, matrix, {sum}, {p.b.ints(AttributeKey::Dimensions, {0})});
    CHECK(rejection(p, p.b.tuple({sum, p.b.add(Opcode::Divide, matrix, {x, broadcast})})) ==
          "`broadcast.2.anon` reads a reduction at other indices than its own");
  }
  SECTION("reductions of reductions") {
    Program p;
    CHECK(rejection(p, p.reduce(p.reduce(p.parameter(Shape::array(ElementType::F32, {8, 64, 512})), {2}), {1})) ==
          "what is reduced or computed of it depends on another reduction, `reduce.1.anon`");
  }
  SECTION("reductions of different shapes") {
    Program p;
    HloInstruction *x = p.parameter(matrix);
    CHECK(rejection(p, p.b.tuple({p.reduce(x, {1}), p.reduce(x, {0, 1})})) == "reductions of different shapes");
  }
  SECTION("outputs of another size") {
    Program p;
    HloInstruction *x = p.parameter(matrix), *y = p.parameter(Shape::array(ElementType::F32, {100}));
    CHECK(rejection(p, p.b.tuple({p.reduce(x, {1}), p.unary(Opcode::Negate, y)})) ==
          "output 1 has neither as many elements as the reduction nor as its operand");
  }
}
