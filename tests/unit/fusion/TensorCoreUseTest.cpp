#include "hloc/fusion/TensorCoreUse.h"

#include "unit/fusion/PlannedEntry.h"

#include "fmt/format.h"

using namespace hloc;

namespace {

std::string remarksOf(const std::string &body, const char *target = "sm_90") {
  const test::PlannedEntry entry(body, {}, target);
  std::string result;
  for (const FusionStep &step : entry.plan.steps)
    if (const auto *kernel = std::get_if<KernelPlan>(&step))
      for (const KernelRemark &remark :
           remarksOnTensorCores(kernel->graphOf(*entry.graph), entry.plan, *kernel, *findTarget(target)))
        result += remark.message + "\n";
  return result;
}

std::string dotOf(const char *type, int rows, int columns, int terms, const char *more = "") {
  return fmt::format("a = {0}[{1},{3}] parameter(0)  b = {0}[{3},{2}] parameter(1)\n"
                     "ROOT r = {0}[{1},{2}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{4}",
                     type, rows, columns, terms, more);
}

/// Rows, columns, terms.
std::array<int64_t, 3> shapeOf(const std::string &body) {
  const test::PlannedEntry entry(body);
  const ProductShape shape = productShapeOf(*entry.parsed.module->entry()->root());
  return {shape.rows, shape.columns, shape.terms};
}

} // namespace

TEST_CASE("what tensor cores multiply has no remark") {
  CHECK(remarksOf(dotOf("bf16", 512, 512, 512)).empty());
  CHECK(remarksOf(dotOf("f16", 512, 512, 512), "sm_75").empty());
}

TEST_CASE("what another kernel of the fusion has made on tensor cores has none") {
  const std::string added =
      "a = f16[2048,64] parameter(0)  b = f16[64,1024] parameter(1)  u = f32[5,1024] parameter(2)\n"
      "i = s32[5,1] parameter(3)\n"
      "d = f32[2048,1024] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT r = f32[2048,1024] scatter(d, i, u), update_window_dims={1}, inserted_window_dims={0}, "
      "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add";
  const test::PlannedEntry entry(added);
  REQUIRE(entry.plan.steps.size() == 2);
  REQUIRE(entry.kernel().hero() == Hero::Contraction);
  CHECK(remarksOf(added).empty());
}

TEST_CASE("what they have no types for, or that is small, has none either") {
  CHECK(remarksOf(dotOf("f32", 512, 512, 512)).empty());
  CHECK(remarksOf(dotOf("bf16", 512, 512, 512), "sm_75").empty());
  CHECK(remarksOf(dotOf("bf16", 512, 512, 512), "sm_70").empty());
  CHECK(remarksOf(dotOf("bf16", 512, 8, 512)).empty());
}

TEST_CASE("other kernels say why they do not") {
  const std::string symmetric = "a = bf16[64,32] parameter(0)  b = bf16[32,64] parameter(1)\n"
                                "d = bf16[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                                "t = bf16[64,64] transpose(d), dimensions={1,0}  ROOT r = bf16[64,64] add(d, t)";
  CHECK(remarksOf(symmetric) == "64 rows by 64 columns of 32 terms of `d` are not multiplied on tensor cores: it is no "
                                "contraction, since `d` is read at several places, or not as a whole\n");
  CHECK(remarksOf(symmetric, "sm_75").empty());
}

TEST_CASE("of two kernels, the one that multiplies says why it does not, and says it once") {
  const std::string split = "a = f32[32,500] parameter(0)  b = f32[700,500] parameter(1)\n"
                            "ROOT r = f32[32,700] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
                            "algorithm=dot_tf32_tf32_f32";
  const test::PlannedEntry entry(split, {}, "sm_90");
  REQUIRE(entry.plan.steps.size() == 2);
  REQUIRE_FALSE(std::get<ContractionPlan>(entry.kernel().plan).tile.onTensorCores);
  CHECK(remarksOf(split) ==
        "32 rows by 700 columns of 500 terms of `r` are not multiplied on tensor cores: threads that "
        "multiply as f32 take no longer, by the cost model\n");
}

TEST_CASE("products as matrices") {
  CHECK(shapeOf(dotOf("f32", 40, 50, 60)) == std::array<int64_t, 3>{40, 50, 60});
  CHECK(shapeOf("a = f32[3,40,60] parameter(0)  b = f32[3,60,50] parameter(1)\n"
                "ROOT r = f32[3,40,50] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                "rhs_contracting_dims={1}") == std::array<int64_t, 3>{40, 50, 60});
  CHECK(shapeOf("p = f32[2,16,16,32] parameter(0)  w = f32[3,3,8,64] parameter(1)\n"
                "ROOT r = f32[2,14,14,64] convolution(p, w), window={size=3x3}, dim_labels=b01f_01io->b01f, "
                "feature_group_count=4") == std::array<int64_t, 3>{2 * 14 * 14, 16, 3 * 3 * 8});
  CHECK(shapeOf("a = f32[64,32] parameter(0)  b = f32[4,32,48] parameter(1)  g = s32[4] parameter(2)\n"
                "ROOT r = f32[64,48] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
                "lhs_ragged_dims={0}, rhs_group_dims={0}") == std::array<int64_t, 3>{64, 48, 32});
  CHECK(shapeOf("a = bf16[64,32] parameter(0)  b = bf16[0,32,48] parameter(1)  g = s32[0] parameter(2)\n"
                "ROOT r = bf16[64,48] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
                "lhs_ragged_dims={0}, rhs_group_dims={0}") == std::array<int64_t, 3>{0, 0, 0});
  CHECK(shapeOf("a = f32[0,32] parameter(0)  b = f32[32,48] parameter(1)\n"
                "ROOT r = f32[0,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}") ==
        std::array<int64_t, 3>{0, 0, 0});
}
