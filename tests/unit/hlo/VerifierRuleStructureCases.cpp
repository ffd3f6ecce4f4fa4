#include "VerifierRuleCases.h"

namespace hloc {

llvm::ArrayRef<RuleCase> structureRuleCases() {
  using R = VerifierRule;
  static const char *const statePair =
      "cond { s = (s32[], f32[4]) parameter(0) ROOT c = pred[] constant(true) } "
      "next { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 "
      "x = f32[4] get-tuple-element(s), index=1 ROOT t = (s32[], f32[4]) tuple(i, x) } "
      "wrong { s = (s32[], f32[4]) parameter(0) ROOT x = f32[4] get-tuple-element(s), "
      "index=1 } ";
  static const char *const neg = "neg { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) } "
                                 "long { x = f32[4] parameter(0) ROOT n = f32[8] concatenate(x, x), dimensions={0} } ";
  static const RuleCase cases[] = {
      {R::rng_c1, "a = f32[] parameter(0) b = s32[] parameter(1) ROOT r = f32[4] rng(a, b), distribution=rng_uniform"},
      {R::rng_c1, "a = f32[1] parameter(0) ROOT r = f32[4] rng(a, a), distribution=rng_uniform"},
      {R::rng_c2, "a = s32[] parameter(0) ROOT r = s32[4] rng(a, a), distribution=rng_normal"},
      {R::rng_c2, "a = c64[] parameter(0) ROOT r = c64[4] rng(a, a), distribution=rng_uniform"},
      {R::rng_bit_generator_c1,
       "s = u64[3] parameter(0) ROOT r = (u64[3], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry"},
      {R::rng_bit_generator_c1,
       "s = u64[4] parameter(0) ROOT r = (u64[4], u32[4]) rng-bit-generator(s), algorithm=rng_philox"},
      {R::rng_bit_generator_c1,
       "s = f32[4] parameter(0) ROOT r = (f32[4], u32[4]) rng-bit-generator(s), algorithm=rng_default"},
      {R::rng_bit_generator_c2,
       "s = u64[2] parameter(0) ROOT r = (u64[2], u32[4], u32[]) rng-bit-generator(s), algorithm=rng_philox"},
      {R::instruction_c4,
       "s = u64[2] parameter(0) ROOT r = (u64[3], u32[4]) rng-bit-generator(s), algorithm=rng_philox"},
      {R::rng_get_and_update_state_c1, "ROOT r = u64[3] rng-get-and-update-state(), delta=1"},
      {R::instruction_c4, "p = f32[4] parameter(0) ROOT r = (f32[4], f32[5]) tuple(p, p)"},
      {R::instruction_c4, "p = (f32[4]) parameter(0) ROOT r = f32[5] get-tuple-element(p), index=0"},
      {R::call_c1, "p = f32[4] parameter(0) ROOT r = f32[] call(p, p), to_apply=sum"},
      {R::call_c1, "p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=sum"},
      {R::instruction_c4, "p = f32[] parameter(0) ROOT r = s32[] call(p, p), to_apply=sum"},
      {R::while_c1, "p = (s32[], f32[4]) parameter(0) ROOT r = (s32[], f32[4]) while(p), condition=next, body=next",
       statePair},
      {R::while_c2, "p = (s32[], f32[4]) parameter(0) ROOT r = (s32[], f32[4]) while(p), condition=cond, body=wrong",
       statePair},
      {R::while_c1, "p = (s32[], f32[5]) parameter(0) ROOT r = (s32[], f32[5]) while(p), condition=cond, body=next",
       statePair},
      {R::conditional_c3,
       "c = pred[] parameter(0) p = f32[5] parameter(1) ROOT r = f32[4] conditional(c, p, p), true_computation=neg, "
       "false_computation=neg",
       neg},
      {R::conditional_c4,
       "c = pred[] parameter(0) p = f32[4] parameter(1) ROOT r = f32[4] conditional(c, p, p), true_computation=neg, "
       "false_computation=long",
       neg},
      {R::conditional_c4,
       "c = s32[] parameter(0) p = f32[4] parameter(1) ROOT r = f32[4] conditional(c, p, p, p), "
       "branch_computations={neg, neg, long}",
       neg},
      {R::fusion_c1, "p = f32[5] parameter(0) ROOT r = f32[4] fusion(p), kind=kLoop, calls=neg", neg},
      {R::fusion_c1, "p = f32[4] parameter(0) ROOT r = f32[4] fusion(p, p), kind=kLoop, calls=neg", neg},
      {R::instruction_c4, "p = f32[4] parameter(0) ROOT r = f32[5] fusion(p), kind=kLoop, calls=neg", neg},
      {R::fusion_c2,
       "p = f32[4] parameter(0) q = f32[4] fusion(p), kind=kLoop, calls=neg ROOT r = f32[4] fusion(q), kind=kLoop, "
       "calls=neg",
       neg},
      {R::fusion_c2,
       "p = f32[4] parameter(0) q = f32[4] fusion(p), kind=kLoop, calls=neg ROOT r = f32[4] call(q), to_apply=neg",
       neg},
      {R::alias_c1,
       "p = f32[4] parameter(0) ROOT r = f32[4] fusion(p), kind=kLoop, output_to_operand_aliasing={{0}: (0, {})}, "
       "calls=neg",
       neg},
      {R::alias_c1, "p = f32[4] parameter(0) ROOT r = f32[4] custom-call(p), custom_call_target=\"x\", "
                    "output_to_operand_aliasing={{}: (1, {})}"},
      {R::alias_c2, "p = f32[5] parameter(0) ROOT r = f32[4] custom-call(p), custom_call_target=\"x\", "
                    "output_to_operand_aliasing={{}: (0, {})}"},
      {R::module_c3, "ROOT p = f32[4] parameter(0)", "", ", entry_computation_layout={(f32[5]{0})->f32[4]{0}}"},
      {R::module_c3, "ROOT p = f32[4] parameter(0)", "", ", entry_computation_layout={(f32[4]{0})->f32[5]{0}}"},
      {R::module_c3, "ROOT p = f32[4] parameter(0)", "",
       ", entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}"},
      {R::module_c4, "ROOT p = f32[4] parameter(0)", "", ", input_output_alias={ {0}: (0, {}, may-alias) }"},
      {R::module_c4, "ROOT p = f32[4] parameter(0)", "", ", input_output_alias={ {}: (1, {}, may-alias) }"},
      {R::module_c4, "ROOT p = f32[4] parameter(0)", "", ", buffer_donor={ (1, {}) }"},
      {R::module_c5, "p = f32[4] parameter(0) ROOT r = (f32[4], f32[4]) tuple(p, p)", "",
       ", input_output_alias={ {0}: (0, {}), {1}: (0, {}) }"},
      {R::module_c5, "p = f32[4] parameter(0) q = f32[4] parameter(1) ROOT r = (f32[4], f32[4]) tuple(p, q)", "",
       ", input_output_alias={ {0}: (0, {}), {0}: (1, {}) }"},
  };
  return cases;
}

llvm::ArrayRef<RuleCase> collectiveRuleCases() {
  using R = VerifierRule;
  static const RuleCase cases[] = {
      {R::after_all_c1, "p = (f32[4], token[]) parameter(0) ROOT r = token[] after-all(p)"},
      {R::transfer_c1, "p = f32[4] parameter(0) ROOT r = ((f32[4]), token[]) infeed(p)"},
      {R::transfer_c1, "p = f32[4] parameter(0) ROOT r = (f32[4], u32[], token[]) send(p, p), channel_id=1"},
      {R::transfer_c2, "p = f32[4] parameter(0) t = token[] after-all() ROOT r = (f32[4], s32[], token[]) send(p, t), "
                       "channel_id=1"},
      {R::transfer_c2, "p = f32[4] parameter(0) t = token[] after-all() ROOT r = (f32[5], u32[], token[]) send(p, t), "
                       "channel_id=1"},
      {R::transfer_c3, "p = f32[4] parameter(0) t = token[] after-all() s = (f32[4], u32[], token[]) send(p, t), "
                       "channel_id=1 ROOT r = token[] send-done(s), channel_id=2"},
      {R::transfer_c3, "t = token[] after-all() s = (f32[4], u32[], token[]) recv(t), channel_id=1 "
                       "ROOT r = (f32[4], token[]) recv-done(s)"},
      {R::instruction_c4, "p = f32[4] parameter(0) t = token[] after-all() ROOT r = f32[] outfeed(p, t), "
                          "outfeed_shape=f32[4]"},
      {R::collective_c1, "p = f32[4] parameter(0) ROOT r = f32[5] all-reduce(p), to_apply=sum"},
      {R::collective_c1, "p = f32[4] parameter(0) ROOT r = f32[6] all-gather(p), dimensions={0}"},
      {R::collective_c1, "p = f32[4,4] parameter(0) ROOT r = f32[8,8] all-gather(p), dimensions={0}"},
      {R::collective_c1, "p = f32[4] parameter(0) ROOT r = s32[4] collective-permute(p), source_target_pairs={{0,1}}"},
      {R::collective_c2, "p = f32[4] parameter(0) ROOT r = f32[8] all-gather(p), dimensions={1}"},
      {R::collective_c3, "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), to_apply=one",
       "one { ROOT x = f32[] parameter(0) }"},
      {R::collective_c4, "p = f32[4] parameter(0) ROOT r = f32[4] collective-permute(p), "
                         "source_target_pairs={{0,1},{0,2}}"},
      {R::collective_c5, "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), to_apply=sum, "
                         "use_global_device_ids=true"},
      {R::collective_c5, "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), to_apply=sum, channel_id=1, "
                         "replica_groups={}, use_global_device_ids=true"},
      {R::transfer_c4, "p = f32[4] parameter(0) t = token[] after-all() ROOT r = token[] outfeed(p, t), "
                       "outfeed_shape=f32[5]"},
      {R::collective_c6, "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), to_apply=sum, "
                         "replica_groups={{0},{}}"},
      {R::collective_c6, "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), to_apply=sum, "
                         "replica_groups={{0,1},{1,2}}"},
      {R::collective_c6, "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), to_apply=sum, "
                         "replica_groups={{0,2}}"},
      {R::collective_c6, "p = f32[4] parameter(0) ROOT r = f32[8] all-gather(p), dimensions={0}, "
                         "replica_groups={{0,1},{2}}"},
      {R::collective_c6, "p = f32[4] parameter(0) ROOT r = f32[4] collective-broadcast(p), replica_groups=[2,4]<=[9]"},
      {R::collective_c6, "p = f32[4] parameter(0) ROOT r = f32[4] collective-broadcast(p), replica_groups=[2,0]<=[0]"},
      {R::collective_c6, "p = f32[4] parameter(0) ROOT r = f32[4] collective-broadcast(p), "
                         "replica_groups=[2,4]<=[4,2]T(1,1)"},
      {R::collective_c7, "p = f32[4] parameter(0) ROOT r = f32[16] all-gather(p), dimensions={0}, "
                         "replica_groups={{0,1},{2,3}}"},
      {R::collective_c7, "p = f32[8] parameter(0) ROOT r = f32[4] all-gather(p), dimensions={0}, "
                         "replica_groups=[2,2]<=[4]"},
      {R::collective_c7, "p = f32[4] parameter(0) ROOT r = f32[8] all-gather(p), dimensions={0}", "",
       ", replica_count=4"},
      {R::collective_c7, "p = f32[4] parameter(0) s = (f32[4], f32[8]) all-gather-start(p), dimensions={0}, "
                         "replica_groups={{0,1,2}} ROOT r = f32[8] all-gather-done(s)"},
      {R::collective_c7, "p = f32[8] parameter(0) ROOT r = f32[4] reduce-scatter(p), dimensions={0}, to_apply=sum, "
                         "replica_groups={{0,1,2,3}}"},
      {R::collective_c8, "p = f32[5] parameter(0) ROOT r = f32[5] all-to-all(p), dimensions={0}, "
                         "replica_groups={{0,1}}"},
      {R::collective_c8, "p = f32[6] parameter(0) ROOT r = (f32[6], f32[6]) all-to-all(p, p), "
                         "replica_groups=[2,3]<=[2,3]T(1,0)"},
      {R::async_c1, "p = f32[4] parameter(0) s = (f32[4], f32[5], u32[]) copy-start(p) ROOT r = f32[4] copy-done(s)"},
      {R::async_c2, "p = (f32[4], f32[4], u32[]) parameter(0) ROOT r = f32[4] copy-done(p)"},
      {R::async_c3,
       "p = f32[4] parameter(0) s = ((f32[4]), f32[5]) async-start(p), calls=neg "
       "ROOT r = f32[4] async-done(s)",
       "neg { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }"},
      {R::async_c4, "p = f32[4] parameter(0) s = (f32[4], f32[4], u32[]) copy-start(p) ROOT r = f32[4] negate(p)"},
      {R::instruction_c4, "p = f32[4] parameter(0) s = (f32[4], f32[4], u32[]) copy-start(p) "
                          "ROOT r = f32[5] copy-done(s)"},
      {R::instruction_c4,
       "p = f32[4] parameter(0) s = ((f32[4]), f32[4]) async-start(p), calls=neg ROOT r = f32[5] async-done(s)",
       "neg { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }"},
      {R::instruction_c4,
       "p = f32[4] parameter(0) s = ((f32[4]), f32[4]) async-start(p), calls=neg ROOT r = bf16[4] async-done(s)",
       "neg { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }"},
  };
  return cases;
}

} // namespace hloc
