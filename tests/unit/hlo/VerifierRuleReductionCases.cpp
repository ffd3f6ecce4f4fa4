#include "VerifierRuleCases.h"

namespace hloc {

llvm::ArrayRef<RuleCase> reductionRuleCases() {
  using R = VerifierRule;
  static const RuleCase cases[] = {
      {R::window_c1, "p = f32[4,4] parameter(0) z = f32[] parameter(1) ROOT r = f32[3,4] reduce-window(p, z), "
                     "window={size=2}, to_apply=sum"},
      {R::window_c2, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[3] reduce-window(p, z), "
                     "window={size=0}, to_apply=sum"},
      {R::window_c2, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[3] reduce-window(p, z), "
                     "window={size=2 stride=0}, to_apply=sum"},
      {R::window_c2, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[3] reduce-window(p, z), "
                     "window={size=2 rhs_dilate=0}, to_apply=sum"},
      {R::window_c3, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[3] reduce-window(p, z), "
                     "window={size=2 pad=-5_0}, to_apply=sum"},
      {R::window_c3, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[3] reduce-window(p, z), "
                     "window={size=2 lhs_dilate=9223372036854775807}, to_apply=sum"},
      {R::reduce_c2, "p = f32[4] parameter(0) q = f32[5] parameter(1) z = f32[] parameter(2) "
                     "ROOT r = (f32[], f32[]) reduce(p, q, z, z), dimensions={0}, to_apply=sum"},
      {R::reduce_c3, "p = f32[4] parameter(0) z = f32[1] parameter(1) ROOT r = f32[] reduce(p, z), dimensions={0}, "
                     "to_apply=sum"},
      {R::reduce_c3, "p = f32[4] parameter(0) z = s32[] parameter(1) ROOT r = f32[] reduce(p, z), dimensions={0}, "
                     "to_apply=sum"},
      {R::reduce_c4, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[] reduce(p, z), dimensions={1}, "
                     "to_apply=sum"},
      {R::reduce_c4, "p = f32[4,4] parameter(0) z = f32[] parameter(1) ROOT r = f32[4] reduce(p, z), "
                     "dimensions={0,0}, to_apply=sum"},
      {R::reduce_c5, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[] reduce(p, z), dimensions={0}, "
                     "to_apply=lt"},
      {R::reduce_c5, "p = s32[4] parameter(0) z = s32[] parameter(1) ROOT r = s32[] reduce(p, z), dimensions={0}, "
                     "to_apply=sum"},
      {R::reduce_c5, "p = bf16[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[] reduce(p, z), dimensions={0}, "
                     "to_apply=narrows"},
      {R::instruction_c4, "p = f32[4,5] parameter(0) z = f32[] parameter(1) ROOT r = f32[5] reduce(p, z), "
                          "dimensions={1}, to_apply=sum"},
      {R::reducer_c1,
       "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[] reduce(p, z), dimensions={0}, "
       "to_apply=noisy",
       "noisy { a = f32[] parameter(0) b = f32[] parameter(1) n = f32[] rng(a, b), distribution=rng_uniform "
       "ROOT s = f32[] add(a, n) }"},
      {R::reduce_window_c2, "p = f32[4] parameter(0) q = f32[5] parameter(1) z = f32[] parameter(2) "
                            "ROOT r = (f32[3], f32[3]) reduce-window(p, q, z, z), window={size=2}, to_apply=sum"},
      {R::reduce_window_c3, "p = f32[4] parameter(0) z = s32[] parameter(1) ROOT r = f32[3] reduce-window(p, z), "
                            "window={size=2}, to_apply=sum"},
      {R::reduce_window_c4, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[3] reduce-window(p, z), "
                            "window={size=2}, to_apply=isum"},
      {R::instruction_c4, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[4] reduce-window(p, z), "
                          "window={size=2}, to_apply=sum"},
#define SELECT_AND_SCATTER(source, init, select, scatter)                                                              \
  "p = f32[4] parameter(0) s = " source " parameter(1) z = " init " parameter(2) ROOT r = f32[4] "                     \
  "select-and-scatter(p, s, z), window={size=2 stride=2}, select=" select ", scatter=" scatter
      {R::select_and_scatter_c1, SELECT_AND_SCATTER("f32[3]", "f32[]", "lt", "sum")},
      {R::select_and_scatter_c2, SELECT_AND_SCATTER("f32[2]", "f32[1]", "lt", "sum")},
      {R::select_and_scatter_c3, SELECT_AND_SCATTER("f32[2]", "f32[]", "sum", "sum")},
      {R::select_and_scatter_c4, SELECT_AND_SCATTER("f32[2]", "f32[]", "lt", "lt")},
      {R::map_c1, "p = f32[4] parameter(0) q = f32[5] parameter(1) ROOT r = f32[4] map(p, q), dimensions={0}, "
                  "to_apply=sum"},
      {R::map_c2, "p = f32[4] parameter(0) ROOT r = f32[4] map(p, p), dimensions={1}, to_apply=sum"},
      {R::map_c3, "p = s32[4] parameter(0) ROOT r = s32[4] map(p, p), dimensions={0}, to_apply=sum"},
      {R::map_c3, "p = f32[4] parameter(0) ROOT r = f32[4] map(p), dimensions={0}, to_apply=sum"},
      {R::scan_c1, "p = f32[4] parameter(0) ROOT r = f32[4] scan(p), dimensions={0}, num_carries=2, to_apply=sum"},
      {R::scan_c2, "p = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = (f32[4], f32[]) scan(p, z), "
                   "dimensions={1}, num_carries=1, to_apply=sum"},
      {R::scan_c3, "p = f32[4] parameter(0) z = s32[] parameter(1) ROOT r = (f32[4], s32[]) scan(p, z), "
                   "dimensions={0}, num_carries=1, to_apply=sum"},
  };
  return cases;
}

llvm::ArrayRef<RuleCase> contractionRuleCases() {
  using R = VerifierRule;
  static const RuleCase cases[] = {
#define DOT(a, b, result) "a = " a " parameter(0) b = " b " parameter(1) ROOT r = " result " dot(a, b), "
      {R::dot_c1, DOT("f32[2,3]", "f32[3,4]", "f32[2,4]") "lhs_contracting_dims={2}, rhs_contracting_dims={0}"},
      {R::dot_c1, DOT("f32[3,3]", "f32[3,3]", "f32[3]") "lhs_contracting_dims={1,1}, rhs_contracting_dims={0,1}"},
      {R::dot_c1, DOT("f32[3,3]", "f32[3,3]", "f32[3]") "lhs_batch_dims={0}, rhs_batch_dims={0}, "
                                                        "lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
      {R::dot_c2, DOT("f32[2,3]", "f32[3,4]", "f32[2,4]") "lhs_contracting_dims={1}, rhs_contracting_dims={}"},
      {R::dot_c3, DOT("f32[2,3]", "f32[3,4]", "f32[2,4]") "lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
      {R::dot_c4, DOT("c64[2,3]", "c64[3,4]", "f32[2,4]") "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {R::instruction_c4, DOT("f32[2,3]", "f32[3,4]", "f32[4,2]") "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
#define SCALED_DOT(s, t)                                                                                               \
  "a = f8e4m3fn[4,64] parameter(0) b = f8e4m3fn[64,4] parameter(1) s = " s " parameter(2) t = " t                      \
  " parameter(3) ROOT r = f32[4,4] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
      {R::scaled_dot_c1, SCALED_DOT("f8e8m0fnu[4,3]", "f8e8m0fnu[2,4]")},
      {R::scaled_dot_c1, SCALED_DOT("f8e8m0fnu[4]", "f8e8m0fnu[2,4]")},
      {R::scaled_dot_c2, SCALED_DOT("bf16[]", "bf16[]")},
#define RAGGED_DOT(groups, attributes)                                                                                 \
  "a = f32[8,3] parameter(0) b = f32[2,3,4] parameter(1) g = " groups                                                  \
  " parameter(2) ROOT r = f32[8,4] ragged-dot(a, b, g), lhs_contracting_dims={1}, "                                    \
  "rhs_contracting_dims={1}, " attributes
      {R::ragged_dot_c1, RAGGED_DOT("s32[2]", "lhs_ragged_dims={2}, rhs_group_dims={0}")},
      {R::ragged_dot_c2, RAGGED_DOT("s32[2]", "lhs_ragged_dims={0}")},
      {R::ragged_dot_c2, RAGGED_DOT("s32[2]", "lhs_ragged_dims={0}, rhs_group_dims={1}")},
      {R::ragged_dot_c3, RAGGED_DOT("s32[3]", "lhs_ragged_dims={0}, rhs_group_dims={0}")},
      {R::ragged_dot_c3, RAGGED_DOT("f32[2]", "lhs_ragged_dims={0}, rhs_group_dims={0}")},
#define CONVOLUTION(x, k, attributes)                                                                                  \
  "x = " x " parameter(0) k = " k " parameter(1) ROOT r = f32[1,6,4] convolution(x, k), " attributes
      {R::convolution_c1, CONVOLUTION("f32[1,8,2,1]", "f32[3,2,4]", "window={size=3}, dim_labels=b0f_0io->b0f")},
      {R::convolution_c2, CONVOLUTION("f32[1,8,2]", "f32[3,2,4]", "window={size=2}, dim_labels=b0f_0io->b0f")},
      {R::convolution_c2, CONVOLUTION("f32[1,8,2]", "f32[3,2,4]", "window={size=3x1}, dim_labels=b0f_0io->b0f")},
      {R::convolution_c3,
       CONVOLUTION("f32[1,8,2]", "f32[3,2,4]", "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=0")},
      {R::convolution_c3, CONVOLUTION("f32[2,8,2]", "f32[3,1,4]",
                                      "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2, "
                                      "batch_group_count=2")},
      {R::convolution_c4, CONVOLUTION("f32[1,8,2]", "f32[3,3,4]", "window={size=3}, dim_labels=b0f_0io->b0f")},
      {R::convolution_c5,
       CONVOLUTION("f32[1,8,3]", "f32[3,1,4]", "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=3")},
      {R::convolution_c6,
       CONVOLUTION("f32[3,8,2]", "f32[3,2,4]", "window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2")},
      {R::instruction_c4, CONVOLUTION("f32[1,9,2]", "f32[3,2,4]", "window={size=3}, dim_labels=b0f_0io->b0f")},
#define BATCH_NORM(x, s, attributes)                                                                                   \
  "x = " x " parameter(0) s = " s " parameter(1) ROOT r = (f32[4,3], f32[3], f32[3]) batch-norm-training(x, s, s), "   \
  "epsilon=0.001, " attributes
      {R::batch_norm_c1, BATCH_NORM("f32[4,3]", "f32[3]", "feature_index=2")},
      {R::batch_norm_c2, BATCH_NORM("s32[4,3]", "f32[3]", "feature_index=1")},
      {R::batch_norm_c3, BATCH_NORM("f32[4,3]", "f32[4]", "feature_index=1")},
      {R::batch_norm_c4, "x = f32[4,3] parameter(0) s = f32[3] parameter(1) g = f32[3,4] parameter(2) ROOT r = "
                         "(f32[4,3], f32[3], f32[3]) "
                         "batch-norm-grad(x, s, s, s, g), epsilon=0.001, feature_index=1"},
      {R::fft_c1, "p = c64[4] parameter(0) ROOT r = c64[4] fft(p), fft_type=FFT, fft_length={}"},
      {R::fft_c1, "p = c64[4] parameter(0) ROOT r = c64[4] fft(p), fft_type=FFT, fft_length={4,4}"},
      {R::fft_c2, "p = f32[4] parameter(0) ROOT r = c64[4] fft(p), fft_type=FFT, fft_length={4}"},
      {R::fft_c2, "p = f16[4] parameter(0) ROOT r = c64[3] fft(p), fft_type=RFFT, fft_length={4}"},
      {R::fft_c4, "p = c64[4] parameter(0) ROOT r = c64[4] fft(p), fft_type=FFT, fft_length={5}"},
      {R::fft_c3, "p = c64[4] parameter(0) ROOT r = f32[4] fft(p), fft_type=IRFFT, fft_length={4}"},
      {R::instruction_c4, "p = f32[4] parameter(0) ROOT r = c64[4] fft(p), fft_type=RFFT, fft_length={4}"},
      {R::cholesky_c1, "p = s32[4,4] parameter(0) ROOT r = s32[4,4] cholesky(p)"},
      {R::cholesky_c2, "p = f32[4,5] parameter(0) ROOT r = f32[4,5] cholesky(p)"},
#define SOLVE(a, b)                                                                                                    \
  "a = " a " parameter(0) b = " b " parameter(1) ROOT r = " b                                                          \
  " triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"
      {R::triangular_solve_c1, SOLVE("f32[4,4]", "f64[4,2]")},
      {R::triangular_solve_c2, SOLVE("f32[4,3]", "f32[4,2]")},
      {R::triangular_solve_c3, SOLVE("f32[4,4]", "f32[2,4]")},
      {R::triangular_solve_c3, SOLVE("f32[2,4,4]", "f32[3,4,2]")},
  };
  return cases;
}

} // namespace hloc
