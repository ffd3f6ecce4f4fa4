#include "hloc/fusion/PlanCounts.h"
#include "hloc/fusion/Recomputation.h"
#include "hloc/fusion/TileCandidates.h"

#include "unit/fusion/PlannedEntry.h"

#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Planned : test::PlannedEntry {
  explicit Planned(const std::string &entry, const char *target = "sm_90") : PlannedEntry(entry, {}, target) {}
  const ContractionPlan &contraction() const { return std::get<ContractionPlan>(kernel().plan); }
  std::string rejection() const { return PlannedEntry::rejection("contraction"); }
};

/// dot of [m,k] by [k,n].
std::string product(int64_t m, int64_t n, int64_t k, const std::string &type = "f32") {
  auto shape = [&](int64_t a, int64_t b) { return type + "[" + std::to_string(a) + "," + std::to_string(b) + "]"; };
  return "a = " + shape(m, k) + " parameter(0) b = " + shape(k, n) + " parameter(1) ROOT d = " + shape(m, n) +
         " dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
}

std::string convolution(const std::string &x, const std::string &kernel, const std::string &result,
                        const std::string &attributes) {
  return "x = f32[" + x + "] parameter(0) k = f32[" + kernel + "] parameter(1) ROOT c = f32[" + result +
         "] convolution(x, k), " + attributes;
}

bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("contraction: large products have large tiles, and few blocks make them smaller") {
  CHECK(Planned(product(4096, 4096, 512)).text() ==
        "product of 4096 rows (operand 0) by 4096 columns (operand 1), 512 terms in 32 steps; tiles of 128x128, 8x8 a "
        "thread, 16 terms a step; read by 4 terms and 4 neighbours; roots 0; grid 1024, block 256, shared 16640");
  for (int64_t size : {256, 512, 1024, 2048}) {
    Planned planned(product(size, size, 512));
    INFO(planned.text());
    CHECK(planned.contraction().blocks() >= 64);
    CHECK(planned.kernel().plannedRegisters() <= 160);
  }
  // The last tiles of each side are not whole.
  Planned odd(product(4097, 4090, 515));
  CHECK(odd.contraction().rowTiles() * odd.contraction().tile.rows() >= 4097);
  CHECK(odd.contraction().columnTiles() * odd.contraction().tile.columns() >= 4090);
  CHECK(odd.contraction().steps() == 33);
  CHECK(odd.contraction().rows.vector == 1);
  CHECK(odd.contraction().columns.vector == 2);
}

TEST_CASE("contraction: threads take small products in small tiles and few steps") {
  for (auto [m, n, k] : {std::tuple(33, 65, 129), {31, 33, 127}, {64, 64, 256}, {127, 127, 127}, {17, 16, 127}}) {
    Planned planned(product(m, n, k), "sm_80");
    INFO(planned.text());
    const ContractionPlan &made = planned.contraction();
    CHECK_FALSE(made.tile.onTensorCores);
    CHECK(made.splits == 1); // a second kernel takes longer to start
    CHECK(made.steps() <= 4);
    CHECK(made.tile.threadRows * made.tile.threadColumns <= 8);
    // Each element is read once for every tile beside it: by few of them.
    CHECK(made.rowTiles() <= 8);
    CHECK(made.columnTiles() <= 8);
  }
  // Many sums of a thread have no registers beside them for more.
  CHECK(Planned(product(4096, 4096, 4096), "sm_80").contraction().tile.depth == 16);
}

TEST_CASE("contraction: operands are read along what is their minor dimension") {
  auto plan = [](const char *a, const char *b, const char *dims) {
    return Planned("a = f32[" + std::string(a) + "] parameter(0) b = f32[" + b +
                   "] parameter(1) ROOT d = f32[1024,1024] dot(a, b), " + dims);
  };
  CHECK(has(plan("512,1024", "512,1024", "lhs_contracting_dims={0}, rhs_contracting_dims={0}").text(),
            "read by 4 neighbours and 4 neighbours"));
  CHECK(has(plan("1024,512", "1024,512", "lhs_contracting_dims={1}, rhs_contracting_dims={1}").text(),
            "read by 4 terms and 4 terms"));
  // What the operand is computed of decides.
  CHECK(has(Planned("p = bf16[512,1024] parameter(0) t = bf16[1024,512] transpose(p), dimensions={1,0} "
                    "a = f32[1024,512] convert(t) b = f32[512,1024] parameter(1) ROOT d = f32[1024,1024] dot(a, b), "
                    "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
                .text(),
            "neighbours and 4 neighbours"));
  // Columns are what is minor in the result.
  Planned turned(
      "a = f32[1024,512] parameter(0) b = f32[512,1024] parameter(1) ROOT d = f32[1024,1024]{0,1} dot(a, b), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  CHECK(turned.contraction().columns.operand == 0);
  CHECK(turned.contraction().rows.operand == 1);
  // Or in all outputs; parts of a sum would lie as the result does.
  Planned behind("a = bf16[96,20000] parameter(0) b = bf16[20000,64] parameter(1) d = bf16[96,64] dot(a, b), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={0} t = bf16[64,96] transpose(d), dimensions={1,0} "
                 "n = bf16[64,96] negate(t) ROOT r = (bf16[64,96], bf16[64,96]) tuple(t, n)");
  CHECK(behind.contraction().columns.operand == 0);
  CHECK(behind.contraction().outputVector == 8);
  CHECK(behind.contraction().splits == 1);
}

TEST_CASE("contraction: how many sectors a side's elements are in") {
  // Rows of 16 terms are two sectors of f32, of 4 terms half a one.
  CHECK(Planned(product(1024, 1024, 512)).contraction().rows.spread == 1);
  CHECK(Planned("a = f32[1024,4] parameter(0) b = f32[4,1024] parameter(1) ROOT d = f32[1024,1024] dot(a, b), "
                "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
            .contraction()
            .rows.spread == 2);
  // Every second position of an image, with one feature.
  Planned strided(convolution("1,512,512,4", "1,1,4,128", "1,256,256,128",
                              "window={size=1x1 stride=2x2}, dim_labels=b01f_01io->b01f"));
  CHECK(strided.contraction().rows.spread == 2);
}

TEST_CASE("contraction: what is behind tests in a loop is read by neighbouring lanes") {
  auto pooled = [](const char *pad, const char *size) {
    return Planned("x = f32[1,112,112,64] parameter(0) z = f32[] constant(0) k = f32[1,1,64,256] parameter(1) "
                   "p = f32[1,114,114,64] pad(x, z), padding=" +
                   std::string(pad) + " w = f32[1,56,56,64] reduce-window(p, z), window={size=" + size +
                   " stride=1x2x2x1}, to_apply=add ROOT c = f32[1,56,56,256] convolution(w, k), window={size=1x1}, "
                   "dim_labels=b01f_01io->b01f");
  };
  Planned tested = pooled("0_0x1_1x1_1x0_0", "1x3x3x1");
  CHECK(tested.contraction().rows.branches());
  CHECK(tested.contraction().rows.vector == 1);
  CHECK_FALSE(tested.contraction().columns.branches());
  CHECK(tested.contraction().columns.vector == 4);
}

TEST_CASE("contraction: 16-bit floats are multiplied on tensor cores, where there are any") {
  auto tileOf = [](const std::string &type, const char *target = "sm_90") {
    return Planned(product(512, 512, 512, type), target).contraction().tile;
  };
  for (const char *type : {"bf16", "f16", "f8e4m3fn", "f8e5m2"})
    for (const char *target : {"sm_80", "sm_90", "sm_100", "sm_120"})
      CHECK(tileOf(type, target).onTensorCores);
  CHECK_FALSE(tileOf("bf16", "sm_75").onTensorCores);
  for (const char *type : {"f64", "s8", "u8"})
    CHECK(tileOf(type).onTensorCores);
  for (const char *type : {"f32", "s16", "s32"})
    CHECK_FALSE(tileOf(type).onTensorCores);
  Planned large(product(4096, 4096, 4096, "bf16"));
  CHECK(has(large.text(), "tiles of 128x256, 8x16 a thread on tensor cores, 64 terms a step"));
  CHECK(large.contraction().splits == 1);
  // A tile of factors as they are stored, and a quarter of the results at a time, rows 8 elements apart.
  CHECK(large.contraction().outputVector == 8);
  CHECK(large.contraction().outputLinesOfThread() == 2);
  const int64_t stages = large.contraction().tile.stages;
  CHECK(stages > 1);
  CHECK(large.contraction().sharedBytes() == uint64_t(stages * (128 + 256) * 64 * 2 + 32 * 264 * 2));
  CHECK(large.kernel().plannedRegisters() > 200);
}

TEST_CASE("contraction: tensor cores multiply types that have all values of the factors") {
  using enum ElementType;
  using Types = std::optional<std::array<ElementType, 2>>;
  auto types = [](const std::string &a, const std::string &b, const std::string &result,
                  const std::string &convert = "") -> Types {
    auto factor = [&](const std::string &name, const std::string &type, const char *number) {
      std::string text = name + "0 = " + type + "[512,512] parameter(" + number + ") ";
      return text + name + " = " + (convert.empty() ? type + "[512,512] copy(" : convert + "[512,512] convert(") +
             name + "0) ";
    };
    Planned planned(factor("a", a, "0") + factor("b", b, "1") + "ROOT d = " + result +
                    "[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
    Types made = ContractionPlan::fragmentTypes(*planned.graph->roots()[0].instr);
    CHECK(planned.contraction().tile.onTensorCores == made.has_value());
    return made;
  };
  CHECK(types("bf16", "bf16", "f32") == Types({BF16, BF16}));
  CHECK(types("f8e5m2", "f8e4m3fn", "f32") == Types({F16, F16}));
  CHECK(types("f8e4m3fn", "bf16", "f32") == Types({BF16, BF16}));
  CHECK(types("f16", "f8e5m2", "f16") == Types({F16, F16}));
  CHECK(types("bf16", "f16", "f32") == Types({F32, F32}));
  CHECK_FALSE(types("f32", "f32", "f32"));
  CHECK(types("f32", "bf16", "f32") == Types({BF16, BF16}));
  CHECK_FALSE(types("f32", "f16", "f32"));
  // Factors are those of the result's type.
  CHECK(types("f32", "bf16", "bf16") == Types({BF16, BF16}));
  CHECK(types("f32", "f64", "f64") == Types({F64, F64}));
  // What has been widened is as it was before; integers are if they fit.
  CHECK(types("bf16", "bf16", "f32", "f32") == Types({BF16, BF16}));
  CHECK(types("s8", "bf16", "f32", "f32") == Types({BF16, BF16}));
  CHECK(types("s8", "f16", "f32", "f32") == Types({F16, F16}));
  CHECK_FALSE(types("s16", "bf16", "f32", "f32"));
  CHECK_FALSE(types("f64", "f64", "f32", "f32"));
  // Bytes have a sign of their own each, and sums of any width up to 32 bits wrap.
  CHECK(types("s8", "u8", "s32") == Types({S8, U8}));
  CHECK(types("u4", "s4", "u8") == Types({U8, S8}));
  CHECK(types("u8", "s8", "s32", "s32") == Types({U8, S8}));
  CHECK_FALSE(types("s8", "s8", "s64"));
  CHECK(types("u8", "u8", "s32", "s8") == Types({S8, S8})); // no longer what they were
}

TEST_CASE("contraction: an algorithm has f32 multiplied as narrower factors, one or several") {
  using enum ElementType;
  auto planned = [](const std::string &algorithm, const std::string &type = "f32") {
    return std::make_unique<Planned>("a = " + type +
                                     "[1024,1024] parameter(0) b = f32[1024,1024] parameter(1) ROOT d = "
                                     "f32[1024,1024] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                                     "algorithm=" +
                                     algorithm);
  };
  struct Row {
    const char *algorithm;
    ElementType type;
    unsigned pieces, products;
  };
  for (auto [algorithm, type, pieces, products] : {Row{"dot_tf32_tf32_f32", F32, 1, 1},
                                                   {"dot_tf32_tf32_f32_x3", F32, 2, 3},
                                                   {"dot_bf16_bf16_f32", BF16, 1, 1},
                                                   {"dot_bf16_bf16_f32_x3", BF16, 2, 3},
                                                   {"dot_bf16_bf16_f32_x6", BF16, 3, 6},
                                                   {"dot_bf16_bf16_f32_x9", BF16, 3, 9}}) {
    INFO(algorithm);
    auto kept = planned(algorithm);
    const ContractionPlan &plan = kept->contraction();
    CHECK(plan.tile.onTensorCores);
    CHECK(plan.fragmentType(plan.rows) == type);
    CHECK(plan.pieces().ofOperand == std::array{pieces, pieces});
    CHECK(plan.pieces().products() == products);
    // All pieces are in shared memory, and products of rests are sums of their own.
    CHECK(plan.sharedBytes() ==
          uint64_t(plan.tile.stages * (plan.pieceElements(plan.rows) + plan.pieceElements(plan.columns)) * pieces *
                   plan.factorBits() / 8));
    CHECK(plan.sums() == plan.tile.threadRows * plan.tile.threadColumns * (pieces > 1 ? 2 : 1));
    CHECK(plan.sums() <= 128);
    CHECK(plan.heldBits(plan.rows) == (pieces > 1 ? 32 : plan.factorBits()));
  }
  CHECK_FALSE(planned("dot_f32_f32_f32")->contraction().tile.onTensorCores);
  // What has no more bits is one piece.
  Planned narrow("a = bf16[1024,1024] parameter(0) b = f16[1024,1024] parameter(1) ROOT d = f32[1024,1024] dot(a, b), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32_x3");
  CHECK_FALSE(narrow.contraction().pieces().areSeveral());
  CHECK(narrow.contraction().fragmentType(narrow.contraction().rows) == F32);
}

TEST_CASE("contraction: an f32 has all of its bits in three pieces, where the other factor is a bf16") {
  auto planned = [](const char *left, const char *right, const std::string &further = "") {
    return std::make_unique<Planned>(std::string("a = ") + left + "[1024,1024] parameter(0) b = " + right +
                                     "[1024,1024] parameter(1) c = f32[1024,1024] convert(b) ROOT d = "
                                     "f32[1024,1024] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}" +
                                     further);
  };
  for (const char *narrow : {"bf16", "f8e4m3fn", "s8", "u4"}) {
    INFO(narrow);
    auto kept = planned("f32", narrow);
    const ContractionPlan &plan = kept->contraction();
    CHECK(plan.tile.onTensorCores);
    CHECK(plan.fragmentType(plan.rows) == ElementType::BF16);
    CHECK(plan.piecesOf(plan.rows) == 3);
    CHECK(plan.piecesOf(plan.columns) == 1);
    CHECK(plan.pieces().products() == 3);
    CHECK(plan.tileElements(plan.rows) == 3 * plan.pieceElements(plan.rows));
    CHECK(plan.heldBits(plan.rows) == 32);
    CHECK(plan.heldBits(plan.columns) == 16);
  }
  // Of others there would be more, and who says what is multiplied gets that.
  for (const char *other : {"f32", "f16", "s16"})
    CHECK_FALSE(planned("f32", other)->contraction().tile.onTensorCores);
  CHECK_FALSE(planned("f32", "bf16", ", algorithm=dot_f32_f32_f32")->contraction().tile.onTensorCores);
  CHECK(planned("f32", "bf16", ", algorithm=dot_bf16_bf16_f32_x6")->contraction().pieces().products() == 6);
}

TEST_CASE("contraction: what an algorithm would make of a product is what it makes of it") {
  PlanContext plans;
  const std::string tf32 = ", algorithm=dot_tf32_tf32_f32";
  auto fastest = [&](const Planned &planned, const char *target, std::optional<DotAlgorithm> asIf = std::nullopt) {
    return tileCandidates(*planned.graph, *findTarget(target), plans, asIf).front().seconds;
  };
  for (int64_t size : {64, 1024}) {
    Planned plain(product(size, size, size)), chosen(product(size, size, size) + tf32);
    const double before = fastest(plain, "sm_80"), after = fastest(chosen, "sm_80");
    CHECK(fastest(plain, "sm_80", DotAlgorithm::TF32TF32F32) == after);
    CHECK((size == 64 ? after <= before : after < 0.6 * before));
    CHECK(fastest(plain, "sm_75", DotAlgorithm::TF32TF32F32) == fastest(plain, "sm_75"));
  }
  // f32 is right as well, and faster where there is so little to multiply that what counts is how long a block takes.
  Planned small(convolution("1,14,14,96", "3,3,96,32", "1,14,14,32",
                            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f") +
                tf32);
  CHECK(fastest(small, "sm_80") <= fastest(small, "sm_80", DotAlgorithm::Unset));
}

TEST_CASE("contraction: fragments of all widths are eight registers of four lanes deep") {
  for (auto [type, bits, depth] : {std::tuple("s8", 8u, 32), {"bf16", 16u, 16}, {"f64", 64u, 8}}) {
    Planned planned(product(4096, 4096, 4096, type));
    const ContractionPlan &made = planned.contraction();
    CHECK(made.factorBits() == bits);
    CHECK(made.fragmentDepth() == depth);
    CHECK(made.tile.depth == (bits == 16 ? 4 : 2) * depth);
    CHECK_FALSE(made.isInterleaved(made.rows)); // they lie along their sums
    CHECK(made.isInterleaved(made.columns) == (bits != 16));
    CHECK(made.columns.vector == 128 / bits);
    // A thread's sums leave registers to its factors.
    CHECK(made.tile.threadRows * made.tile.threadColumns <= (bits == 64 ? 64 : 128));
  }
}

TEST_CASE("contraction: what goes through registers has more terms of a step where it is narrow") {
  auto planned = [](const std::string &a, const std::string &b) {
    return Planned(a + " " + b + " ROOT d = f32[256,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
                   "sm_80");
  };
  // Bytes are on their way as they are stored, and wider ones when they are put into shared memory.
  const Planned bytes = planned("a = f8e4m3fn[256,512] parameter(0)", "b = f8e5m2[512,512] parameter(1)");
  const ContractionPlan &plan = bytes.contraction();
  CHECK(plan.tile.onTensorCores);
  CHECK(plan.heldBits(plan.rows) == 8);
  CHECK(plan.factorBits() == 16);
  CHECK(plan.tile.depth == 128);
  CHECK(plan.loadedWords() <= 32);
  CHECK(plan.splits == 1);
  // Of what is computed of bytes a thread has the results; of f32, more than it has registers for.
  auto computed = [&](const std::string &type) {
    return planned("x = " + type + "[256,512] parameter(0) a = bf16[256,512] convert(x)",
                   "y = " + type + "[512,512] parameter(1) b = bf16[512,512] convert(y)");
  };
  const Planned integers = computed("s8"), floats = computed("f32");
  CHECK(integers.contraction().heldBits(integers.contraction().rows) == 16);
  CHECK(integers.contraction().tile.depth == 64);
  CHECK(floats.contraction().tile.depth == 32);
}

TEST_CASE("contraction: what is stored as tensor cores want it is copied several steps ahead") {
  auto planOf = [](const std::string &a, const std::string &b, const char *target = "sm_80") {
    return Planned(a + " " + b + " ROOT d = f32[1024,1024] dot(a, b), lhs_contracting_dims={1}, " +
                       "rhs_contracting_dims={0}",
                   target)
        .contraction();
  };
  const std::string a = "a = bf16[1024,512] parameter(0)", b = "b = bf16[512,1024] parameter(1)";
  ContractionPlan plain = planOf(a, b);
  CHECK((plain.rows.copied && plain.columns.copied));
  CHECK((plain.rows.vector == 8 && plain.columns.vector == 8));
  CHECK(plain.tile.stages > 1);
  // Views of parameters are; what is computed is not, nor what has another type.
  for (const char *view :
       {"p = bf16[512,1024] parameter(0) a = bf16[1024,512] transpose(p), dimensions={1,0}",
        "p = bf16[1024,4,128] parameter(0) a = bf16[1024,512] reshape(p)",
        "p = bf16[1024,1024] parameter(0) a = bf16[1024,512] slice(p), slice={[0:1024], [64:576]}"}) {
    INFO(view);
    CHECK(planOf(view, b).rows.copied);
  }
  CHECK(Planned("p = bf16[512,512] parameter(0) a = bf16[4,512,512] broadcast(p), dimensions={1,2} "
                "b = bf16[4,512,512] parameter(1) ROOT d = bf16[4,512,512] dot(a, b), lhs_batch_dims={0}, "
                "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")
            .contraction()
            .rows.copied);
  for (const char *computed :
       {"p = bf16[1024,512] parameter(0) a = bf16[1024,512] negate(p)",
        "p = f32[1024,512] parameter(0) a = bf16[1024,512] convert(p)",
        "p = f16[1024,512] parameter(0) a = bf16[1024,512] bitcast-convert(p)",
        "p = bf16[1024,256] parameter(0) z = bf16[] constant(0) a = bf16[1024,512] pad(p, z), padding=0_0x0_256"}) {
    INFO(computed);
    const ContractionPlan plan = planOf(computed, b);
    CHECK_FALSE(plan.rows.copied);
    CHECK(plan.columns.copied == (plan.tile.stages > 1));
  }
  // Pieces are as large as every one of them is aligned, and no smaller than a word.
  auto sliced = [&](int64_t start) {
    return planOf("p = bf16[1024,1032] parameter(0) a = bf16[1024,512] slice(p), slice={[0:1024], [" +
                      std::to_string(start) + ":" + std::to_string(start + 512) + "]}",
                  b);
  };
  CHECK((sliced(8).rows.copied && sliced(8).rows.vector == 8));
  CHECK((sliced(4).rows.copied && sliced(4).rows.vector == 4));
  CHECK((sliced(6).rows.copied && sliced(6).rows.vector == 2));
  CHECK_FALSE(sliced(5).rows.copied);
  Planned odd(product(1000, 1023, 777, "bf16"));
  CHECK_FALSE((odd.contraction().rows.copied || odd.contraction().columns.copied));
  CHECK(odd.contraction().tile.stages <= 2);
  // Without the instruction, and without tensor cores, nothing is.
  CHECK_FALSE(planOf(a, b, "sm_75").rows.copied);
  CHECK_FALSE(Planned(product(1024, 1024, 512)).contraction().rows.copied);
  CHECK_FALSE(Planned(product(1024, 1024, 512, "f8e5m2")).contraction().rows.copied);
}

TEST_CASE("contraction: all tiles by time, and one that is asked for") {
  CHECK(TileSizes::parse("128x256x32/3") == TileSizes{128, 256, 32, 3});
  CHECK(TileSizes{128, 256, 32, 3}.toString() == "128x256x32/3");
  for (const char *text : {"", "128", "128x256", "128x256x32", "128x256x32/", "128x256x32/0", "-1x256x32/1",
                           "128x256x32x1/1", "128x256x32/3/1", "9999999x1x1/1"})
    CHECK_FALSE(TileSizes::parse(text));
  Planned best(product(1024, 1024, 512, "bf16"));
  PlanContext plans;
  const std::vector<TileCandidate> all = tileCandidates(*best.graph, *findTarget("sm_90"), plans);
  REQUIRE(all.size() > 20);
  CHECK(all.front().tile == best.contraction().tile.sizes());
  CHECK(all.front().parts == best.contraction().splits);
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [](const TileCandidate &a, const TileCandidate &b) { return a.seconds < b.seconds; }));
  DiagnosticEngine diagnostics;
  plans.choices.tile = all.back().tile;
  llvm::FailureOr<FusionPlan> asked = planFusion(*best.graph, {}, *findTarget("sm_90"), diagnostics, plans);
  REQUIRE(succeeded(asked));
  CHECK(std::get<ContractionPlan>(std::get<KernelPlan>(asked->steps.front()).plan).tile.sizes() == all.back().tile);
  plans.choices.tile = TileSizes{100, 100, 32, 1};
  CHECK(failed(planFusion(*best.graph, {}, *findTarget("sm_90"), diagnostics, plans)));
  CHECK(diagnostics.exitCode() == ExitCode::InvalidUsage);
  // What is no contraction has none.
  Planned other("a = f32[64] parameter(0) ROOT n = f32[64] negate(a)");
  CHECK(tileCandidates(*other.graph, *findTarget("sm_90"), plans).empty());
}

TEST_CASE("contraction: beyond 48 KiB shared memory is asked for at the launch") {
  Planned large(product(4096, 4096, 4096, "bf16"));
  REQUIRE(large.kernel().launch.sharedBytes > 49152);
  CHECK(has(large.text(), "dynamic shared "));
  KernelSpec spec = describeKernel(*large.graph, large.plan, large.kernel(), "k");
  CHECK(spec.staticSharedBytes == 0);
  CHECK(spec.dynamicSharedBytes == large.kernel().launch.sharedBytes);
  Planned small(product(4096, 4096, 512));
  spec = describeKernel(*small.graph, small.plan, small.kernel(), "k");
  CHECK(spec.staticSharedBytes == small.kernel().launch.sharedBytes);
  CHECK(spec.dynamicSharedBytes == 0);
  // No more than a block may have.
  for (const char *target : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_120"})
    CHECK(Planned(product(4096, 4096, 4096, "bf16"), target).kernel().launch.sharedBytes <=
          findTarget(target)->maxSharedBytes);
}

TEST_CASE("contraction: results that fill sectors as fragments are stored as they are") {
  auto outputs = [](const std::string &root) {
    return Planned("a = bf16[4096,512] parameter(0) b = bf16[512,4096] parameter(1) d = f32[4096,4096] dot(a, b), "
                   "lhs_contracting_dims={1}, rhs_contracting_dims={0} " +
                   root)
        .contraction()
        .outputVector;
  };
  CHECK(Planned("a = bf16[4096,512] parameter(0) b = bf16[512,4096] parameter(1) ROOT d = f32[4096,4096] dot(a, b), "
                "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
            .contraction()
            .outputVector == 0);
  CHECK(outputs("ROOT n = f32[4096,4096] negate(d)") == 4);
  CHECK(outputs("ROOT c = bf16[4096,4096] convert(d)") == 8);
  CHECK(Planned(product(513, 1026, 512, "bf16")).contraction().outputVector == 2);
}

TEST_CASE("contraction: batches and several contracting dimensions") {
  Planned batch(
      "a = f32[3,256,4,64] parameter(0) b = f32[4,64,3,256] parameter(1) ROOT d = f32[4,3,256,256] dot(a, b), "
      "lhs_batch_dims={2,0}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1}");
  CHECK(batch.contraction().batchSize == 12);
  CHECK(batch.contraction().rows.size == 256);
  CHECK(batch.contraction().columns.size == 256);
  Planned several("a = f32[256,5,7,16] parameter(0) b = f32[7,16,5,512] parameter(1) ROOT d = f32[256,512] dot(a, b), "
                  "lhs_contracting_dims={1,2,3}, rhs_contracting_dims={2,0,1}");
  // One value of the outer ones, and all of the minor one, a step.
  CHECK(several.contraction().outerDepth == 2);
  CHECK(several.contraction().steps() == 35);
}

TEST_CASE("contraction: a convolution's rows are positions, its terms the window by the features") {
  const std::string padded = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
  Planned same(convolution("8,56,56,64", "3,3,64,64", "8,56,56,64", padded));
  CHECK(same.contraction().rows.size == 8 * 56 * 56);
  CHECK(same.contraction().columns.size == 64);
  CHECK(same.contraction().outerDepth == 2);
  CHECK(same.contraction().steps() * same.contraction().tile.depth == 3 * 3 * 64);
  CHECK(has(same.text(), "read by 4 terms and 4 neighbours"));
  // Few features: the window is taken along.
  Planned stem(convolution("8,224,224,3", "7,7,3,64", "8,112,112,64",
                           "window={size=7x7 stride=2x2 pad=3_3x3_3}, dim_labels=b01f_01io->b01f"));
  CHECK(stem.contraction().innerDepth() > 16);
  CHECK(stem.contraction().steps() < 14);
  // Each feature by itself: nothing is shared.
  Planned depthwise(convolution("8,56,56,64", "3,3,1,64", "8,56,56,64", padded + ", feature_group_count=64"));
  CHECK(depthwise.rejection() == "one side has a single row");
}

TEST_CASE("contraction: dimensions of a convolution's result in two parts") {
  const std::string halves = "window={size=3x3 pad=2_1x2_1 lhs_dilate=2x2}, dim_labels=";
  // A gradient: positions take turns, and each kind has taps of its own, two at most along each dimension.
  Planned gradient(convolution("8,28,28,64", "3,3,64,64", "8,56,56,64", halves + "b01f_01io->b01f"));
  const ContractionPlan &turns = gradient.contraction();
  CHECK(turns.batchSize == 4);
  CHECK(turns.rows.size == 8 * 28 * 28);
  CHECK(turns.columns.size == 64);
  CHECK(turns.depthSizes[0] * turns.depthSizes[1] * turns.depthSizes[2] == 2 * 2 * 64);
  // Groups have features of their own.
  Planned groups(convolution("8,28,28,128", "3,3,32,128", "8,28,28,128",
                             "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4"));
  CHECK(groups.contraction().batchSize == 4);
  CHECK(groups.contraction().columns.size == 32);
  CHECK(groups.contraction().columns.vector == 4);
  Planned batches(convolution("32,28,28,64", "3,3,64,128", "8,26,26,128",
                              "window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=4"));
  CHECK(batches.contraction().batchSize == 4);
  CHECK(batches.contraction().columns.size == 32);

  auto dims = [](const std::string &x, const std::string &kernel, const std::string &result,
                 const std::string &attributes) {
    const Shape shape =
        ContractionSpace(*Planned(convolution(x, kernel, result, attributes)).graph->roots().front().instr).shape();
    return shape.toString();
  };
  CHECK(dims("8,28,28,64", "3,3,64,64", "8,56,56,64", halves + "b01f_01io->b01f") ==
        "f32[8,28,2,28,2,64]{5,4,3,2,1,0}");
  // What lies side by side stays so, and what is no whole number of turns stays whole.
  CHECK(dims("8,64,28,28", "64,64,3,3", "8,64,56,56", halves + "bf01_oi01->bf01") == "f32[8,64,28,2,56]{4,3,2,1,0}");
  CHECK(dims("8,28,28,64", "2,2,64,64", "8,56,57,64",
             "window={size=2x2 pad=1_1x1_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f") ==
        "f32[8,28,2,57,64]{4,3,2,1,0}");
  // Every third position in turn, if steps of two are taken between elements of every third.
  CHECK(dims("8,6,6,64", "3,3,64,64", "8,8,9,64",
             "window={size=3x3 stride=2x2 pad=1_1x2_3 lhs_dilate=3x3}, dim_labels=b01f_01io->b01f") ==
        "f32[8,8,3,3,64]{4,3,2,1,0}");
}

TEST_CASE("contraction: rows of a ragged-dot's groups, and its terms") {
  auto ragged = [](const std::string &x, const std::string &y, const std::string &result,
                   const std::string &attributes) {
    return Planned("x = bf16[" + x + "] parameter(0) y = bf16[" + y +
                   "] parameter(1) g = s32[8] parameter(2) ROOT d = " + result + " ragged-dot(x, y, g), " + attributes);
  };
  Planned rows = ragged("8192,4096", "8,4096,1024", "f32[8192,1024]",
                        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}");
  const ContractionPlan &ofRows = rows.contraction();
  CHECK(has(rows.text(), "8 groups of rows"));
  CHECK(ofRows.tile.onTensorCores);
  CHECK(ofRows.rows.copied);
  CHECK(ofRows.columns.copied);
  // A group more, of the rows that are in none. Every group but one begins and ends within a tile, at worst.
  const int64_t tile = ofRows.tile.rows();
  CHECK(ofRows.rowTiles() == (8192 + 9 * (tile - 1)) / tile);
  CHECK(ofRows.busyTiles() == double(8 * (1024 / tile) * ofRows.columnTiles() * ofRows.splits));
  // Each group has results of its own; a block has the steps of its group.
  Planned terms = ragged("8192,512", "8192,1024", "f32[8,512,1024]",
                         "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}");
  const ContractionPlan &ofTerms = terms.contraction();
  CHECK(has(terms.text(), "8 groups of terms"));
  CHECK(ofTerms.batchSize == 8);
  CHECK(ofTerms.splits == 1);
  CHECK(ofTerms.busySteps() == double(ofTerms.steps()) / 8 + 1);
  CHECK(ofTerms.rows.copied);
  // Neighbours in memory are not aligned where groups begin anywhere among them.
  Planned turned =
      ragged("4096,8192", "8,4096,1024", "f32[8192,1024]",
             "lhs_contracting_dims={0}, rhs_contracting_dims={1}, lhs_ragged_dims={1}, rhs_group_dims={0}");
  CHECK(turned.contraction().rows.vector == 1);
  CHECK_FALSE(turned.contraction().rows.copied);
  CHECK(turned.contraction().columns.copied);
  Planned alongTerms = ragged("512,8192", "8192,1024", "f32[8,512,1024]",
                              "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}");
  CHECK(alongTerms.contraction().rows.vector == 1);
  CHECK_FALSE(alongTerms.contraction().rows.copied);
  CHECK(ragged("4096,512", "8,512,1024", "f32[4096,1024]{0,1}",
               "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}")
            .rejection() == "its groups are of what lies side by side in the result");
  CHECK(ragged("8,512,512", "8,512,512", "f32[8,512,512]",
               "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, "
               "lhs_ragged_dims={0}")
            .rejection() == "the groups of `d` are of a batch, or others in each");
}

namespace {

/// `a` and `b` of bf16[512,256] and two of [256,n], and what is made of them.
std::string twins(const std::string &further, const std::string &type = "bf16") {
  const std::string shape = type + "[512,512]";
  return "x = " + type + "[512,256] parameter(0) g = " + type + "[256,512] parameter(1) u = " + type +
         "[256,512] parameter(2) a = " + shape +
         " dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0} b = " + shape +
         " dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0} " + further;
}

} // namespace

TEST_CASE("contraction: products of one operand have sums of their own and share its tile") {
  Planned gated(twins("l = bf16[512,512] logistic(a) m = bf16[512,512] multiply(a, l) "
                      "ROOT r = bf16[512,512] multiply(m, b)"));
  INFO(gated.text());
  const ContractionPlan &plan = gated.contraction();
  CHECK(has(gated.text(), "2 products of 512 rows (operand 0) by 512 columns (operand 1)"));
  REQUIRE(plan.numProducts() == 2);
  CHECK(plan.heroes()[1]->name() == "b");
  CHECK(plan.twins.front().side.operand == 1);
  CHECK(plan.sums() == 2 * plan.results());
  // A tile of rows, two of columns, and results of both.
  const ContractionTile &tile = plan.tile;
  CHECK(plan.sharedBytes() ==
        uint64_t(2 * (tile.stages * (tile.rows() + 2 * tile.columns()) * tile.depth + 2 * plan.outputElements())));
  const ContractionPlan second = plan.ofProduct(1);
  CHECK(second.hero == plan.heroes()[1]);
  CHECK(second.numProducts() == 1);
  // Rows are read once for both.
  const PlanCounts counts = countsOf(plan), alone = countsOf(plan.ofProduct(0));
  REQUIRE(counts.reads.size() == 3);
  CHECK(counts.reads[0].elements == alone.reads[0].elements);
  CHECK(counts.reads[2].instr == plan.heroes()[1]);
  CHECK(counts.products == 2 * alone.products);
  CHECK(counts.instructions < 2 * alone.instructions);

  CHECK(Planned(twins("ROOT r = (f32[512,512], f32[512,512]) tuple(a, b)", "f32")).contraction().numProducts() == 2);
  CHECK(Planned(twins("n = s32[512,512] negate(b) ROOT r = s32[512,512] multiply(a, n)", "s32"))
            .contraction()
            .numProducts() == 2);
  // Of columns.
  Planned turned("x = bf16[256,512] parameter(0) g = bf16[256,512] parameter(1) u = bf16[512,256] parameter(2) "
                 "a = bf16[512,512] dot(g, x), lhs_contracting_dims={0}, rhs_contracting_dims={0} "
                 "b = bf16[512,512] dot(u, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
                 "ROOT r = (bf16[512,512], bf16[512,512]) tuple(a, b)");
  REQUIRE(turned.contraction().numProducts() == 2);
  CHECK(turned.contraction().isOfRows(turned.contraction().twins.front().side));
  CHECK(turned.contraction().twins.front().side.alongDepth);
  CHECK_FALSE(turned.contraction().rows.alongDepth);
}

TEST_CASE("contraction: parts of sums of several products lie side by side in scratch memory") {
  Planned planned("x = bf16[96,20000] parameter(0) g = bf16[20000,64] parameter(1) u = bf16[20000,64] parameter(2) "
                  "a = f32[96,64] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
                  "b = f32[96,64] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
                  "ROOT r = f32[96,64] multiply(a, b)");
  CHECK(planned.contraction().splits > 1);
  CHECK(planned.plan.scratch.size() == 2);
  CHECK(has(planned.text(), "2 products: "));
}

TEST_CASE("contraction: what products of one kernel cannot differ in") {
  auto rejection = [](const std::string &g, const std::string &u, const std::string &b, const std::string &result) {
    return Planned(
               "x = bf16[512,256] parameter(0) g = " + g + " parameter(1) u = " + u +
               " parameter(2) a = bf16[512,512] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0} b = " +
               result + " " + b + " ROOT r = (bf16[512,512], " + result + ") tuple(a, b)")
        .rejection();
  };
  const std::string g = "bf16[256,512]";
  CHECK(rejection(g, "bf16[256,128]", "dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                  "bf16[512,128]") == "`a` and `b` are no contractions of one kind and size");
  CHECK(rejection(g, "bf16[512,256]", "dot(u, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                  "bf16[512,512]{0,1}") == "`a` and `b` are no contractions of one kind and size");
  CHECK(rejection(g, "bf16[512,512]", "dot(u, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                  "bf16[512,512]") == "there are several contractions, which share no operand");
  CHECK(Planned(twins("c = f32[512,512] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                      "algorithm=dot_bf16_bf16_f32 ROOT r = (f32[512,512], f32[512,512], f32[512,512]) tuple(a, b, c)",
                      "f32"))
            .rejection() == "`a` and `c` are no contractions of one kind and size");
  // The same array, across.
  CHECK(Planned("x = bf16[512,512] parameter(0) g = bf16[512,512] parameter(1) u = bf16[512,512] parameter(2) "
                "a = bf16[512,512] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
                "b = bf16[512,512] dot(x, u), lhs_contracting_dims={0}, rhs_contracting_dims={0} "
                "ROOT r = (bf16[512,512], bf16[512,512]) tuple(a, b)")
            .rejection() == "`b` reads `x` in another way than `a`");
  CHECK(
      Planned(twins("t = bf16[512,512] transpose(b), dimensions={1,0} ROOT r = bf16[512,512] add(a, t)")).rejection() ==
      "`a` is read at several places, or not as a whole");
  // Bytes along their sums are in other registers than across.
  CHECK(Planned("x = s8[512,256] parameter(0) g = s8[256,512] parameter(1) u = s8[512,256] parameter(2) "
                "a = s32[512,512] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
                "b = s32[512,512] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={1} "
                "ROOT r = (s32[512,512], s32[512,512]) tuple(a, b)")
            .rejection() == "products lie along and across their sums, so that tensor cores have their results in "
                            "different places");
}

TEST_CASE("contraction: what other heroes do as well or better") {
  CHECK(Planned(product(64, 64, 64)).rejection() == "a loop for each result is as fast");
  CHECK(Planned(product(1, 4096, 4096)).rejection() == "one side has a single row");
  CHECK(Planned(product(4096, 4096, 3)).rejection() == "sums of 3 terms are too short");
  CHECK(Planned(product(512, 512, 512, "c64")).rejection() == "the terms of `d` are no numbers of one register");
  CHECK(Planned(product(512, 512, 512, "s4")).rejection() == "output 0 shares bytes between elements");
  CHECK(Planned("a = f32[512,512] parameter(0) d = f32[512,512] dot(a, a), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0} t = f32[512,512] transpose(d), dimensions={1,0} "
                "ROOT r = (f32[512,512], f32[512,512]) tuple(t, d)")
            .rejection() == "output 0 has other neighbours than `d`");
  CHECK(Planned("a = f32[512,512] parameter(0) d = f32[512,512] dot(a, a), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0} ROOT e = f32[512,512] dot(a, d), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}")
            .rejection() == "`d` is read at several places, or not as a whole");
  CHECK(Planned("a = f32[512,512] parameter(0) ROOT n = f32[512,512] negate(a)").rejection() ==
        "there is no contraction");
}

TEST_CASE("contraction: elements of operands are computed once for each tile they are in") {
  Planned planned("p = f32[1024,512] parameter(0) a = f32[1024,512] tanh(p) b = f32[512,2048] parameter(1) "
                  "d = f32[1024,2048] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
                  "ROOT n = f32[1024,2048] exponential(d)");
  const ContractionPlan &plan = planned.contraction();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto factor = [&](llvm::StringRef name) {
    for (const Evaluation &evaluation : evaluations(*planned.graph, planned.kernel(), &context))
      if (evaluation.instr->name() == name)
        return evaluation.factor();
    return 0.0;
  };
  CHECK(factor("a") == double(plan.columnTiles()));
  CHECK(factor("n") == 1);
}

TEST_CASE("contraction: long sums of few results are several blocks'") {
  auto contraction = [](const Planned &planned, size_t step) {
    return std::get<ContractionPlan>(std::get<KernelPlan>(planned.plan.steps[step]).plan);
  };
  // A dense layer's gradient: 64 x 96 weights of 100,000 rows.
  Planned dense(product(64, 96, 100000));
  REQUIRE(dense.plan.steps.size() == 2);
  const ContractionPlan first = contraction(dense, 0), second = contraction(dense, 1);
  CHECK(first.stage == ReductionStage::Partial);
  CHECK(second.stage == ReductionStage::Combine);
  CHECK(first.splits == second.splits);
  CHECK(first.blocks() >= 128); // of 132 multiprocessors
  CHECK(first.stepsOfSplit() * first.splits >= first.steps());
  CHECK(first.stepsOfSplit() * (first.splits - 1) < first.steps()); // none has nothing
  REQUIRE(dense.plan.scratch.size() == 1);
  CHECK(dense.plan.scratch[0].shape == Shape::array(ElementType::F32, {first.splits, 64, 96}));
  // Enough blocks, and sums too short to be worth a second kernel.
  CHECK(Planned(product(4096, 4096, 4096)).contraction().splits == 1);
  CHECK(Planned(product(256, 256, 64)).contraction().splits == 1);
  // Few results as well as many; doubles and integers are added up in their types.
  CHECK(Planned(product(4, 4, 50000)).contraction().splits > 8);
  CHECK(Planned(product(64, 96, 100000, "f64")).plan.scratch[0].shape.elementType() == ElementType::F64);
  CHECK(Planned(product(64, 96, 100000, "bf16")).plan.scratch[0].shape.elementType() == ElementType::F32);
  CHECK(Planned(product(64, 96, 100000, "s8")).plan.scratch[0].shape.elementType() == ElementType::S32);
  // In the order of the result in memory.
  Planned turned("a = f32[64,100000] parameter(0) b = f32[100000,96] parameter(1) ROOT d = f32[64,96]{0,1} dot(a, b), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  CHECK(turned.plan.scratch[0].shape.minorToMajor() == llvm::ArrayRef<int64_t>{1, 2, 0});
  // The weights' gradient of a convolution: 9 windows of 64 features by 64, summed over 8 images.
  Planned weights(convolution("8,56,56,64", "8,56,56,64", "3,3,64,64",
                              "window={size=56x56 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf"));
  CHECK(weights.contraction().splits > 1);
}

TEST_CASE("contraction: results of several blocks are neighbours of a thread where there are many") {
  auto combined = [](const Planned &planned) {
    return std::get<ContractionPlan>(std::get<KernelPlan>(planned.plan.steps.back()).plan);
  };
  CHECK(combined(Planned(product(64, 96, 100000))).perThread == 1);
  ContractionPlan many = combined(Planned(product(1024, 768, 65536)));
  CHECK(many.stage == ReductionStage::Combine);
  CHECK(many.perThread == 4);
}
