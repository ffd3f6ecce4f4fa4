#include "hloc/fusion/Recomputation.h"

#include "hloc/parser/Parser.h"

#include "fmt/format.h"
#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

struct Fusion {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module;
  std::optional<FusionGraph> graph;
  KernelPlan kernel;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};

  explicit Fusion(const std::string &entry) {
    std::string text =
        "HloModule m\nmax { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n"
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
        "product { a = f64[] parameter(0) b = f64[] parameter(1) ROOT c = f64[] multiply(a, b) }\n"
        "ENTRY e { one = f64[] constant(1) zero = f32[] constant(0) ninf = f32[] constant(-inf) " +
        entry + " }";
    module = parseHloModule(std::make_shared<const SourceFile>("m.hlo", text), diagnostics);
    INFO((diagnostics.hasErrors() ? diagnostics.diagnostics().front().message : ""));
    REQUIRE(module);
    graph = *FusionGraph::build(*module->entry(), diagnostics);
    llvm::FailureOr<FusionPlan> plan = planFusion(*graph, {}, *findTarget("sm_90"), diagnostics);
    REQUIRE(succeeded(plan));
    kernel = std::get<KernelPlan>(plan->steps.front());
  }

  double count(llvm::StringRef name) {
    for (const Evaluation &evaluation : evaluations(*graph, kernel, &context))
      if (evaluation.instr->name() == name)
        return evaluation.count;
    return 0;
  }
  std::string remarks() {
    std::string text;
    for (const KernelRemark &remark : remarksOn(*graph, kernel, &context))
      text += fmt::format("{} {} {}: {}\n", remark.kind, remark.instruction, remark.factor, remark.message);
    return text;
  }
};

/// (Products of f64 keep their order: no hero makes them.)
const std::string normal =
    "p = f64[256,2048] parameter(0) m = f64[2048] reduce(p, one), dimensions={0}, to_apply=product "
    "mb = f64[256,2048] broadcast(m), dimensions={1} d = f64[256,2048] subtract(p, mb) "
    "x = f64[256,2048] exponential(d) "
    "s = f64[2048] reduce(x, one), dimensions={0}, to_apply=product "
    "sb = f64[256,2048] broadcast(s), dimensions={1} ROOT r = f64[256,2048] divide(x, sb)";

} // namespace

// The emulator counts 257 exponentials and 513 loads for each element of this kernel.
TEST_CASE("reductions inside every element of the output") {
  Fusion f(normal);
  constexpr double elements = 2048 * 256;
  CHECK(f.count("x") == 257 * elements);
  CHECK(f.count("s") == elements);
  CHECK(f.count("m") == elements); // of no loop's variables: once for an element, not once for each of its steps
  CHECK(f.remarks() == "recomputation m 256: `m` is computed 256 times for each of its 2048 elements, in a loop of 256 "
                       "steps\n"
                       "recomputation s 256: `s` is computed 256 times for each of its 2048 elements, in a loop of 256 "
                       "steps\n");
}

TEST_CASE("contractions in one thread each, and what they recompute") {
  Fusion tiles("a = f32[4096,4096] parameter(0) b = f32[4096,4096] parameter(1) "
               "ROOT r = f32[4096,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  CHECK(tiles.remarks() == "");
  Fusion plain("a = c64[4096,4096] parameter(0) b = c64[4096,4096] parameter(1) "
               "ROOT r = c64[4096,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  CHECK(plain.remarks() ==
        "serial-reduction r 4096: each of the 16777216 elements of `r` is made by one thread in a loop "
        "of 4096 steps; each element of `a` is read 4096 times\n");
  Fusion tanh("a = f32[64,64] parameter(0) b = f32[64,64] parameter(1) c = f32[64,64] abs(a) t = f32[64,64] tanh(c) "
              "u = f32[64,64] transpose(t), dimensions={1,0} "
              "ROOT r = f32[64,64] dot(u, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  CHECK(tanh.count("t") == 64.0 * 64 * 64);
  CHECK(tanh.remarks() ==
        "recomputation t 64: `t` is computed 64 times for each of its 4096 elements\n"
        "serial-reduction r 64: each of the 4096 elements of `r` is made by one thread in a loop of 64 "
        "steps; each element of `u` is read 64 times\n");
}

TEST_CASE("what is cheap beside the memory that has to be moved is not mentioned") {
  CHECK(Fusion("p = f32[512,512] parameter(0) b = f32[512] parameter(1) l = f32[512] log(b) "
               "lb = f32[512,512] broadcast(l), dimensions={1} ROOT r = f32[512,512] add(p, lb)")
            .remarks() == "");
  CHECK(
      Fusion("p = f32[512,8] parameter(0) ROOT r = f32[512] reduce(p, zero), dimensions={1}, to_apply=add").remarks() ==
      "");
}

TEST_CASE("a value read at several indices is computed for each; doubled again and again it is a remark") {
  std::string text = "p = f32[64] parameter(0) v0 = f32[64] tanh(p) ";
  for (int i = 0; i < 5; ++i)
    text += fmt::format("r{0} = f32[64] slice(v{0}), slice={{[0:64]}} w{0} = f32[64] reverse(r{0}), dimensions={{0}} "
                        "m{0} = f32[64] multiply(w{0}, w{0}) d{0} = f32[64] slice(m{0}), slice={{[0:64]}} "
                        "{2}v{1} = f32[64] subtract(v{0}, d{0}) ",
                        i, i + 1, i == 4 ? "ROOT " : "");
  // Twice reversed is as it was: two ways to read, however many there are to write it.
  CHECK(Fusion(text).count("v0") == 2 * 64);
  std::string shifts = "p = f32[640] parameter(0) v0 = f32[640] tanh(p) ";
  for (int i = 0; i < 6; ++i)
    shifts += fmt::format(
        "x{0} = f32[{3}] slice(v{0}), slice={{[{2}:{4}]}} y{0} = f32[{3}] slice(v{0}), slice={{[0:{3}]}} "
        "{5}v{1} = f32[{3}] subtract(x{0}, y{0}) ",
        i, i + 1, 1 << i, 640 - (1 << (i + 1)) + 1, 640 - (1 << (i + 1)) + 1 + (1 << i), i == 5 ? "ROOT " : "");
  Fusion six(shifts);
  CHECK(six.count("v0") == 64.0 * 577); // 2^6 ways
  CHECK(six.remarks().find("recomputation v0") != std::string::npos);
}

TEST_CASE("what a transposition keeps in shared memory is computed once") {
  Fusion f("p = f32[256,512] parameter(0) x = f32[256,512] tanh(p) t = f32[512,256] transpose(x), dimensions={1,0} "
           "a = f32[512,256] abs(t) ROOT r = (f32[512,256], f32[256,512]) tuple(a, x)");
  REQUIRE(f.kernel.hero() == Hero::Transpose);
  CHECK(f.count("x") == 256 * 512);
  CHECK(f.remarks() == "");
}

TEST_CASE("of concatenated and padded arrays the part that is read counts") {
  Fusion f("p = f32[100] parameter(0) x = f32[100] tanh(p) y = f32[300] pad(x, zero), padding=100_100 "
           "z = f32[100] abs(p) ROOT r = f32[400] concatenate(y, z), dimensions={0}");
  CHECK(f.count("x") == 100);
  CHECK(f.count("z") == 100);
}
