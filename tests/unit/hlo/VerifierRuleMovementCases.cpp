#include "VerifierRuleCases.h"

namespace hloc {

llvm::ArrayRef<RuleCase> movementRuleCases() {
  using R = VerifierRule;
  static const RuleCase cases[] = {
      {R::iota_c1, "ROOT r = s32[4] iota(), iota_dimension=1"},
      {R::iota_c1, "ROOT r = s32[] iota(), iota_dimension=0"},
      {R::iota_c2, "ROOT r = pred[4] iota(), iota_dimension=0"},
      {R::bitcast_c1, "p = f32[4] parameter(0) ROOT r = f32[5] bitcast(p)"},
      {R::broadcast_c1, "p = f32[4] parameter(0) ROOT r = f32[4,4] broadcast(p), dimensions={0,1}"},
      {R::broadcast_c1, "p = f32[4] parameter(0) ROOT r = f32[4,4] broadcast(p), dimensions={}"},
      {R::broadcast_c2, "p = f32[4] parameter(0) ROOT r = f32[4,4] broadcast(p), dimensions={2}"},
      {R::broadcast_c2, "p = f32[4,4] parameter(0) ROOT r = f32[4,4] broadcast(p), dimensions={1,1}"},
      {R::broadcast_c2, "p = f32[4] parameter(0) ROOT r = f32[4,4] broadcast(p), dimensions={-1}"},
      {R::broadcast_c3, "p = f32[1] parameter(0) ROOT r = f32[4] broadcast(p), dimensions={0}"},
      {R::broadcast_c4, "p = f32[4] parameter(0) ROOT r = (f32[4]) broadcast(p), dimensions={0}"},
      {R::instruction_c4, "p = f32[] parameter(0) ROOT r = f16[4] broadcast(p), dimensions={}"},
      {R::concatenate_c1, "p = f32[4] parameter(0) ROOT r = f32[8] concatenate(p, p), dimensions={1}"},
      {R::concatenate_c2,
       "p = f32[4,2] parameter(0) q = f32[4,3] parameter(1) ROOT r = f32[8,2] concatenate(p, q), dimensions={0}"},
      {R::concatenate_c2,
       "p = f32[4] parameter(0) q = f32[4,3] parameter(1) ROOT r = f32[8] concatenate(p, q), dimensions={0}"},
      {R::concatenate_c3,
       "p = f32[4] parameter(0) q = s32[4] parameter(1) ROOT r = f32[8] concatenate(p, q), dimensions={0}"},
      {R::pad_c1, "p = f32[4] parameter(0) v = f32[1] parameter(1) ROOT r = f32[6] pad(p, v), padding=1_1"},
      {R::pad_c1, "p = f32[4] parameter(0) v = s32[] parameter(1) ROOT r = f32[6] pad(p, v), padding=1_1"},
      {R::pad_c2, "p = f32[4] parameter(0) v = f32[] parameter(1) ROOT r = f32[6] pad(p, v), padding=1_1x0_0"},
      {R::pad_c3, "p = f32[4] parameter(0) v = f32[] parameter(1) ROOT r = f32[6] pad(p, v), padding=-5_0"},
      {R::shape_c1,
       "p = f32[4] parameter(0) v = f32[] parameter(1) ROOT r = f32[6] pad(p, v), padding=1_0_9223372036854775807"},
      {R::reshape_c1, "p = f32[4] parameter(0) ROOT r = s32[4] reshape(p)"},
      {R::dynamic_reshape_c1,
       "p = f32[4] parameter(0) n = s32[] parameter(1) ROOT r = f32[<=2,2] dynamic-reshape(p, n)"},
      {R::dynamic_reshape_c1, "p = f32[4] parameter(0) n = f32[] parameter(1) ROOT r = f32[<=4] dynamic-reshape(p, n)"},
      {R::reverse_c1, "p = f32[4] parameter(0) ROOT r = f32[4] reverse(p), dimensions={0,0}"},
      {R::reverse_c1, "p = f32[4] parameter(0) ROOT r = f32[4] reverse(p), dimensions={1}"},
      {R::slice_c1, "p = f32[4,4] parameter(0) ROOT r = f32[2] slice(p), slice={[0:2]}"},
      {R::slice_c2, "p = f32[4] parameter(0) ROOT r = f32[5] slice(p), slice={[0:5]}"},
      {R::slice_c2, "p = f32[4] parameter(0) ROOT r = f32[2] slice(p), slice={[3:1]}"},
      {R::slice_c2, "p = f32[4] parameter(0) ROOT r = f32[2] slice(p), slice={[0:4:0]}"},
      {R::instruction_c4, "p = f32[4] parameter(0) ROOT r = f32[2] slice(p), slice={[0:3]}"},
      {R::transpose_c1, "p = f32[4,4] parameter(0) ROOT r = f32[4,4] transpose(p), dimensions={0,0}"},
      {R::transpose_c1, "p = f32[4,4] parameter(0) ROOT r = f32[4,4] transpose(p), dimensions={0}"},
      {R::get_dimension_size_c1, "p = f32[4] parameter(0) ROOT r = s32[] get-dimension-size(p), dimensions={1}"},
      {R::set_dimension_size_c1,
       "p = f32[4] parameter(0) n = u32[] parameter(1) ROOT r = f32[<=4] set-dimension-size(p, n), dimensions={0}"},
  };
  return cases;
}

llvm::ArrayRef<RuleCase> indexedRuleCases() {
  using R = VerifierRule;
  static const RuleCase cases[] = {
      {R::dynamic_slice_c1, "p = f32[4,4] parameter(0) i = s32[3] parameter(1) ROOT r = f32[2,2] dynamic-slice(p, i), "
                            "dynamic_slice_sizes={2,2}"},
      {R::dynamic_slice_c1, "p = f32[4] parameter(0) i = s32[1,1] parameter(1) ROOT r = f32[2] dynamic-slice(p, i), "
                            "dynamic_slice_sizes={2}"},
      {R::dynamic_slice_c2, "p = f32[4,4] parameter(0) i = s32[] parameter(1) j = s64[] parameter(2) "
                            "ROOT r = f32[2,2] dynamic-slice(p, i, j), dynamic_slice_sizes={2,2}"},
      {R::dynamic_slice_c2, "p = f32[4] parameter(0) i = f32[] parameter(1) ROOT r = f32[2] dynamic-slice(p, i), "
                            "dynamic_slice_sizes={2}"},
      {R::dynamic_slice_c3, "p = f32[4] parameter(0) i = s32[] parameter(1) ROOT r = f32[5] dynamic-slice(p, i), "
                            "dynamic_slice_sizes={5}"},
      {R::dynamic_slice_c3, "p = f32[4] parameter(0) i = s32[] parameter(1) ROOT r = f32[2] dynamic-slice(p, i), "
                            "dynamic_slice_sizes={2,2}"},
      {R::dynamic_update_slice_c1, "p = f32[4] parameter(0) u = f32[5] parameter(1) i = s32[] parameter(2) "
                                   "ROOT r = f32[4] dynamic-update-slice(p, u, i)"},
      {R::dynamic_update_slice_c2, "p = f32[4] parameter(0) u = s32[2] parameter(1) i = s32[] parameter(2) "
                                   "ROOT r = f32[4] dynamic-update-slice(p, u, i)"},
#define GATHER(operand, indices, result)                                                                               \
  "t = " operand " parameter(0) i = " indices " parameter(1) ROOT r = " result " gather(t, i), "
      {R::gather_c1,
       GATHER("f32[10,8]", "f32[5,1]", "f32[5,8]") "offset_dims={1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"},
      {R::gather_c2,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0}, index_vector_dim=3, slice_sizes={1,8}"},
      {R::gather_c3,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,8}"},
      {R::gather_c3,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={2}, index_vector_dim=1, slice_sizes={1,8}"},
      {R::gather_c4,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5]") "offset_dims={}, collapsed_slice_dims={1,0}, "
                                                 "start_index_map={0}, index_vector_dim=1, slice_sizes={1,1}"},
      {R::gather_c5,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0}, index_vector_dim=1, slice_sizes={1,9}"},
      {R::gather_c6,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0}, index_vector_dim=1, slice_sizes={2,8}"},
      {R::gather_c7,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={2}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"},
      {R::gather_c7,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={0,1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"},
      {R::gather_c8,
       GATHER("f32[6,10,8]", "s32[5,1]", "f32[5,8]") "offset_dims={1}, collapsed_slice_dims={1}, "
                                                     "operand_batching_dims={0}, start_indices_batching_dims={0}, "
                                                     "start_index_map={1}, index_vector_dim=1, slice_sizes={1,1,8}"},
      {R::gather_c9,
       GATHER("f32[5,10]", "s32[5,1]", "f32[5,10]") "offset_dims={1}, collapsed_slice_dims={}, "
                                                    "operand_batching_dims={0}, start_indices_batching_dims={0}, "
                                                    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,10}"},
      {R::instruction_c4,
       GATHER("f32[10,8]", "s32[5,1]", "f32[5,7]") "offset_dims={1}, collapsed_slice_dims={0}, "
                                                   "start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"},
#define SCATTER(operand, indices, updates)                                                                             \
  "t = " operand " parameter(0) i = " indices " parameter(1) u = " updates " parameter(2) ROOT r = " operand           \
  " scatter(t, i, u), "
      {R::scatter_c2, SCATTER("f32[10,8]", "f32[5,1]",
                              "f32[5,8]") "update_window_dims={1}, inserted_window_dims={0}, "
                                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c3, SCATTER("f32[10,8]", "s32[5,1]",
                              "f32[5,8]") "update_window_dims={1}, inserted_window_dims={0}, "
                                          "scatter_dims_to_operand_dims={0}, index_vector_dim=-1, to_apply=sum"},
      {R::scatter_c4, SCATTER("f32[10,8]", "s32[5,1]",
                              "f32[5,8]") "update_window_dims={1}, inserted_window_dims={0}, "
                                          "scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c5, SCATTER("f32[10,8]", "s32[5,1]",
                              "f32[5,8]") "update_window_dims={1}, inserted_window_dims={0,0}, "
                                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c6, SCATTER("f32[10,8]", "s32[5,1]",
                              "f32[5,8]") "update_window_dims={2}, inserted_window_dims={0}, "
                                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c7, SCATTER("f32[10,8]", "s32[5,1]",
                              "f32[5,9]") "update_window_dims={1}, inserted_window_dims={0}, "
                                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c8, SCATTER("f32[10,8]", "s32[5,1]",
                              "f32[6,8]") "update_window_dims={1}, inserted_window_dims={0}, "
                                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c9,
       SCATTER("f32[6,10]", "s32[5,1]", "f32[5]") "update_window_dims={}, inserted_window_dims={1}, "
                                                  "input_batching_dims={0}, scatter_indices_batching_dims={0}, "
                                                  "scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c13, SCATTER("f32[5,10]", "s32[5,1]",
                               "f32[5,10]") "update_window_dims={1}, inserted_window_dims={}, "
                                            "input_batching_dims={0}, scatter_indices_batching_dims={0}, "
                                            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c10,
       "t = f32[10,8] parameter(0) t2 = f32[9,8] parameter(1) i = s32[5,1] parameter(2) u = f32[5,8] parameter(3) "
       "ROOT r = (f32[10,8], f32[9,8]) scatter(t, t2, i, u, u), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c11, SCATTER("s32[10,8]", "s32[5,1]",
                               "s32[5,8]") "update_window_dims={1}, inserted_window_dims={0}, "
                                           "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::scatter_c12, SCATTER("f32[10,8]", "s32[5,1]",
                               "s32[5,8]") "update_window_dims={1}, inserted_window_dims={0}, "
                                           "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
      {R::sort_c1, "p = f32[4] parameter(0) ROOT r = f32[4] sort(p), dimensions={1}, to_apply=lt"},
      {R::sort_c2,
       "p = f32[4] parameter(0) q = f32[5] parameter(1) ROOT r = (f32[4], f32[5]) sort(p, q), dimensions={0}, "
       "to_apply=lt"},
      {R::sort_c3, "p = f32[4] parameter(0) ROOT r = f32[4] sort(p), dimensions={0}, to_apply=sum"},
      {R::sort_c3, "p = f32[4] parameter(0) ROOT r = (f32[4], f32[4]) sort(p, p), dimensions={0}, to_apply=lt"},
      {R::topk_c1, "p = f32[4] parameter(0) ROOT r = (f32[5], s32[5]) topk(p), k=5"},
      {R::topk_c1, "p = f32[4] parameter(0) ROOT r = (f32[5], s32[5]) topk(p), k=-1"},
  };
  return cases;
}

} // namespace hloc
