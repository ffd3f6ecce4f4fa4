// Every attribute: a text that has it is read, verified and printed with the same value; another kind of value is
// refused. The build of the table is complete, since a missing row fails.
#include "ParseText.h"

#include "hloc/hlo/Verifier.h"

#include <catch2/catch.hpp>

#include <set>

using namespace hloc;
using namespace hloc::test;

namespace {

struct Row {
  AttributeKey key;
  const char *value; ///< as it is printed
  const char *body;  ///< of the entry; `, key=value` is in it, or in the header or before the entry
  const char *header = "";
  const char *before = "";
};

using K = AttributeKey;

constexpr const char *custom = "p = f32[4] parameter(0) ROOT r = f32[4] custom-call(p), custom_call_target=\"t\", "
                               "operand_layout_constraints={f32[4]{0}}, custom_call_has_side_effect=true, "
                               "literal=s32[2]{0} {1, 2}, output_to_operand_aliasing={{}: (0, {})}, "
                               "operand_precision={highest}, schedule=SCHEDULE_LATEST, "
                               "api_version=API_VERSION_STATUS_RETURNING, padding_type=PADDING_SAME, "
                               "called_computations={%neg}";
constexpr const char *convolution =
    "x = f32[2,4,2] parameter(0) k = f32[1,2,2] parameter(1) ROOT r = f32[1,4,2] convolution(x, k), window={size=1}, "
    "dim_labels=b0f_0io->b0f, batch_group_count=2, convolution_kind=fprop, sparsity_config={x}";
constexpr const char *dot =
    "a = f32[2,3,4] parameter(0) b = f32[2,4,5] parameter(1) ROOT r = f32[2,3,5] dot(a, b), lhs_batch_dims={0}, "
    "lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={highest,default}, "
    "algorithm=dot_f32_f32_f32";
constexpr const char *raggedDot =
    "a = f32[8,4] parameter(0) b = f32[2,4,5] parameter(1) s = s32[2] parameter(2) ROOT r = f32[8,5] "
    "ragged-dot(a, b, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}";
constexpr const char *gather =
    "p = f32[3,5,8] parameter(0) i = s32[5,3,1] parameter(1) ROOT r = f32[5,3,2] gather(p, i), offset_dims={2}, "
    "collapsed_slice_dims={}, start_index_map={2}, operand_batching_dims={1,0}, start_indices_batching_dims={0,1}, "
    "index_vector_dim=2, slice_sizes={1,1,2}, indices_are_sorted=true";
constexpr const char *scatter =
    "p = f32[3,5,8] parameter(0) i = s32[5,3,1] parameter(1) u = f32[5,3,2] parameter(2) ROOT r = f32[3,5,8] "
    "scatter(p, i, u), update_window_dims={2}, inserted_window_dims={}, scatter_dims_to_operand_dims={2}, "
    "input_batching_dims={1,0}, scatter_indices_batching_dims={0,1}, index_vector_dim=2, unique_indices=true, "
    "to_apply=%sum";
constexpr const char *batchNorm =
    "x = f32[2,3] parameter(0) v = f32[3] parameter(1) ROOT r = f32[2,3] batch-norm-inference(x, v, v, v, v), "
    "epsilon=0.001, feature_index=1";
constexpr const char *solve =
    "a = f32[3,3] parameter(0) b = f32[3,2] parameter(1) ROOT r = f32[3,2] triangular-solve(a, b), left_side=true, "
    "lower=true, unit_diagonal=true, transpose_a=TRANSPOSE";
constexpr const char *scan =
    "p = f32[4] parameter(0) z = f32[] constant(0) ROOT r = f32[] scan(p, z), dimensions={0}, num_carries=1, "
    "is_reverse=true, is_associative=true, to_apply=%sum";
constexpr const char *allReduce =
    "p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), replica_groups={{0,1}}, channel_id=1, "
    "constrain_layout=true, use_global_device_ids=true, mode=flattened_id, to_apply=%sum";
constexpr const char *send =
    "p = f32[4] parameter(0) t = token[] after-all() s = (f32[4], u32[], token[]) send(p, t), channel_id=1, "
    "is_host_transfer=true ROOT d = token[] send-done(s), channel_id=1, is_host_transfer=true";
constexpr const char *outfeed = "p = f32[4] parameter(0) t = token[] after-all() ROOT r = token[] outfeed(p, t), "
                                "outfeed_shape=f32[4]{0}, outfeed_config=\"c\"";
constexpr const char *loop = "p = f32[4] parameter(0) ROOT r = f32[4] while(p), condition=%always, body=%neg";
constexpr const char *selectAndScatter =
    "x = f32[4] parameter(0) s = f32[2] parameter(1) z = f32[] constant(0) ROOT r = f32[4] "
    "select-and-scatter(x, s, z), window={size=2 stride=2}, select=%lt, scatter=%sum";
constexpr const char *choice = "p = f32[4] parameter(0) c = pred[] parameter(1) ROOT r = f32[4] conditional(c, p, p), "
                               "true_computation=%neg, false_computation=%neg";
constexpr const char *plain = "p = f32[4] parameter(0) ROOT r = f32[4] negate(p)";

const Row rows[] = {
    {K::Window, "{size=1}", convolution},
    {K::DimLabels, "b0f_0io->b0f", convolution},
    {K::FeatureGroupCount, "2",
     "x = f32[1,4,2] parameter(0) k = f32[1,1,2] parameter(1) ROOT r = f32[1,4,2] convolution(x, k), window={size=1}, "
     "dim_labels=b0f_0io->b0f, feature_group_count=2"},
    {K::BatchGroupCount, "2", convolution},
    {K::ConvolutionKind, "fprop", convolution},
    {K::SparsityConfig, "{x}", convolution},
    {K::PaddingType, "PADDING_SAME", custom},
    {K::CustomCallTarget, "\"t\"", custom},
    {K::OperandLayoutConstraints, "{f32[4]{0}}", custom},
    {K::CustomCallHasSideEffect, "true", custom},
    {K::LiteralValue, "s32[2]{0} {1, 2}", custom},
    {K::LiteralValue, "( f32[] 1, ( s32[2]{0} {1, 2} ) )",
     "p = f32[4] parameter(0) ROOT r = f32[4] custom-call(p), custom_call_target=\"t\", "
     "literal=( f32[] 1, ( s32[2]{0} {1, 2} ) )"},
    {K::Dimensions, "{0}", "p = f32[4] parameter(0) ROOT r = f32[4] reverse(p), dimensions={0}"},
    {K::Direction, "LT", "p = f32[4] parameter(0) ROOT r = pred[4] compare(p, p), direction=LT, type=TOTALORDER"},
    {K::Type, "TOTALORDER", "p = f32[4] parameter(0) ROOT r = pred[4] compare(p, p), direction=LT, type=TOTALORDER"},
    {K::LhsBatchDims, "{0}", dot},
    {K::LhsContractingDims, "{2}", dot},
    {K::RhsBatchDims, "{0}", dot},
    {K::RhsContractingDims, "{1}", dot},
    {K::LhsRaggedDims, "{0}", raggedDot},
    {K::RhsGroupDims, "{0}", raggedDot},
    {K::OperandPrecision, "{highest,default}", dot},
    {K::Algorithm, "dot_f32_f32_f32", dot},
    {K::Algorithm, "rng_three_fry",
     "s = u64[2] parameter(0) ROOT r = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry"},
    {K::OffsetDims, "{2}", gather},
    {K::CollapsedSliceDims, "{}", gather},
    {K::StartIndexMap, "{2}", gather},
    {K::OperandBatchingDims, "{1,0}", gather},
    {K::StartIndicesBatchingDims, "{0,1}", gather},
    {K::UpdateWindowDims, "{2}", scatter},
    {K::InsertedWindowDims, "{}", scatter},
    {K::ScatterDimsToOperandDims, "{2}", scatter},
    {K::InputBatchingDims, "{1,0}", scatter},
    {K::ScatterIndicesBatchingDims, "{0,1}", scatter},
    {K::IndexVectorDim, "2", gather},
    {K::SliceSizes, "{1,1,2}", gather},
    {K::IndicesAreSorted, "true", gather},
    {K::UniqueIndices, "true", scatter},
    {K::IotaDimension, "0", "ROOT r = s32[4] iota(), iota_dimension=0"},
    {K::InferredDimension, "0", "p = f32[4] parameter(0) ROOT r = f32[4] reshape(p), inferred_dimension=0"},
    {K::Slice, "{[0:4:2]}", "p = f32[4] parameter(0) ROOT r = f32[2] slice(p), slice={[0:4:2]}"},
    {K::DynamicSliceSizes, "{2}",
     "p = f32[4] parameter(0) i = s32[] parameter(1) ROOT r = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}"},
    {K::Padding, "1_1_1", "p = f32[4] parameter(0) z = f32[] constant(0) ROOT r = f32[9] pad(p, z), padding=1_1_1"},
    {K::IsStable, "true",
     "p = f32[4] parameter(0) ROOT r = f32[4] sort(p), dimensions={0}, is_stable=true, to_apply=%lt"},
    {K::K, "2", "p = f32[4] parameter(0) ROOT r = (f32[2], s32[2]) topk(p), k=2, largest=true"},
    {K::Largest, "true", "p = f32[4] parameter(0) ROOT r = (f32[2], s32[2]) topk(p), k=2, largest=true"},
    {K::Index, "0", "p = f32[4] parameter(0) t = (f32[4]) tuple(p) ROOT r = f32[4] get-tuple-element(t), index=0"},
    {K::ExponentBits, "5",
     "p = f32[4] parameter(0) ROOT r = f32[4] reduce-precision(p), exponent_bits=5, mantissa_bits=10"},
    {K::MantissaBits, "10",
     "p = f32[4] parameter(0) ROOT r = f32[4] reduce-precision(p), exponent_bits=5, mantissa_bits=10"},
    {K::Epsilon, "0.001", batchNorm},
    {K::FeatureIndex, "1", batchNorm},
    {K::FftType, "FFT", "c = c64[4] parameter(0) ROOT r = c64[4] fft(c), fft_type=FFT, fft_length={4}"},
    {K::FftLength, "{4}", "c = c64[4] parameter(0) ROOT r = c64[4] fft(c), fft_type=FFT, fft_length={4}"},
    {K::LeftSide, "true", solve},
    {K::Lower, "true", solve},
    {K::UnitDiagonal, "true", solve},
    {K::TransposeA, "TRANSPOSE", solve},
    {K::Distribution, "rng_uniform",
     "a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[4] rng(a, b), distribution=rng_uniform"},
    {K::Delta, "1", "ROOT r = u64[2] rng-get-and-update-state(), delta=1"},
    {K::NumCarries, "1", scan},
    {K::IsReverse, "true", scan},
    {K::IsAssociative, "true", scan},
    {K::Kind, "kLoop", "p = f32[4] parameter(0) ROOT r = f32[4] fusion(p), kind=kLoop, calls=%neg"},
    {K::IsComposite, "true", "p = f32[4] parameter(0) ROOT r = f32[4] call(p), to_apply=%neg, is_composite=true"},
    {K::OutputToOperandAliasing, "{{}: (0, {})}", custom},
    {K::Schedule, "SCHEDULE_LATEST", custom},
    {K::ApiVersion, "API_VERSION_STATUS_RETURNING", custom},
    {K::InfeedConfig, "\"c\"", "t = token[] after-all() ROOT r = ((f32[4]), token[]) infeed(t), infeed_config=\"c\""},
    {K::OutfeedShape, "f32[4]{0}", outfeed},
    {K::OutfeedConfig, "\"c\"", outfeed},
    {K::ChannelId, "1", send},
    {K::IsHostTransfer, "true", send},
    {K::ReplicaGroups, "{{0,1}}", allReduce},
    {K::SourceTargetPairs, "{{0,1},{1,0}}",
     "p = f32[4] parameter(0) ROOT r = f32[4] collective-permute(p), source_target_pairs={{0,1},{1,0}}"},
    {K::ConstrainLayout, "true", allReduce},
    {K::UseGlobalDeviceIds, "true", allReduce},
    {K::Mode, "flattened_id", allReduce},
    {K::HasDynamicRoot, "true",
     "p = f32[4] parameter(0) i = s32[] parameter(1) ROOT r = f32[4] collective-broadcast(p, i), "
     "replica_groups={{0,1}}, has_dynamic_root=true"},
    {K::CrossProgramPrefetchIndex, "1",
     "p = f32[4] parameter(0) s = (f32[4], f32[4], u32[]) copy-start(p), cross_program_prefetch_index=1 "
     "ROOT r = f32[4] copy-done(s)"},
    {K::AsyncExecutionThread, "\"t\"",
     "p = f32[4] parameter(0) s = ((f32[4]), f32[4], u32[]) async-start(p), async_execution_thread=\"t\", calls=%neg "
     "ROOT r = f32[4] async-done(s)"},
    {K::Domain, "{kind=\"sharding\", entry={maximal device=0}, exit={maximal device=1}}",
     "p = f32[4] parameter(0) ROOT r = f32[4] domain(p), domain={kind=\"sharding\", entry={maximal device=0}, "
     "exit={maximal device=1}}"},
    {K::Condition, "%always", loop},
    {K::Body, "%neg", loop},
    {K::Select, "%lt", selectAndScatter},
    {K::Scatter, "%sum", selectAndScatter},
    {K::TrueComputation, "%neg", choice},
    {K::FalseComputation, "%neg", choice},
    {K::BranchComputations, "{%neg, %neg}",
     "p = f32[4] parameter(0) i = s32[] parameter(1) ROOT r = f32[4] conditional(i, p, p), "
     "branch_computations={%neg, %neg}"},
    {K::ToApply, "%sum", scatter},
    {K::Calls, "%neg", "p = f32[4] parameter(0) ROOT r = f32[4] fusion(p), kind=kLoop, calls=%neg"},
    {K::CalledComputations, "{%neg}", custom},
    {K::ParameterReplication, "{true}", "ROOT p = f32[4] parameter(0), parameter_replication={true}"},
    {K::Sharding, "{replicated}", "ROOT p = f32[4] parameter(0), sharding={replicated}"},
    {K::FrontendAttributes, "{a=\"b\"}", "ROOT p = f32[4] parameter(0), frontend_attributes={a=\"b\"}"},
    {K::ControlPredecessors, "{%p}",
     "p = f32[4] parameter(0) ROOT r = f32[4] constant({1,2,3,4}), control-predecessors={%p}"},
    {K::Statistics, "{visualizing_index=1,a=1.5}",
     "ROOT p = f32[4] parameter(0), statistics={visualizing_index=1,a=1.5}"},
    {K::ResultAccuracy, "{tolerance={atol=1,rtol=0,ulps=2}}",
     "p = f32[4] parameter(0) ROOT r = f32[4] exponential(p), result_accuracy={tolerance={atol=1,rtol=0,ulps=2}}"},
    {K::Origin, "{{\"p\"}}", "ROOT p = f32[4] parameter(0), origin={{\"p\"}}"},
    {K::Metadata, "{op_name=\"x\"}", "ROOT p = f32[4] parameter(0), metadata={op_name=\"x\"}"},
    {K::BackendConfig, "{\"a\":1}", "ROOT p = f32[4] parameter(0), backend_config={\"a\":1}"},
    {K::IsScheduled, "true", plain, ", is_scheduled=true"},
    {K::InputOutputAlias, "{ {}: (0, {}, may-alias) }", plain, ", input_output_alias={ {}: (0, {}, may-alias) }"},
    {K::BufferDonor, "{ (0, {}) }", plain, ", buffer_donor={ (0, {}) }"},
    {K::AliasPassthroughParams, "true", plain, ", alias_passthrough_params=true"},
    {K::EntryComputationLayout, "{(f32[4]{0})->f32[4]{0}}", plain,
     ", entry_computation_layout={(f32[4]{0})->f32[4]{0}}"},
    {K::AllowSpmdToParameters, "{true}", plain, ", allow_spmd_sharding_propagation_to_parameters={true}"},
    {K::AllowSpmdToOutput, "{true}", plain, ", allow_spmd_sharding_propagation_to_output={true}"},
    {K::ReplicaCount, "2", plain, ", replica_count=2"},
    {K::NumPartitions, "2", plain, ", num_partitions=2"},
    {K::OriginRecoveryTable, "{x}", plain, ", origin_recovery_table={x}"},
    {K::DebugAttributes, "{x}", plain, ", debug_attributes={x}"},
    {K::ExecutionThread, "\"t\"", plain, "", "other { ROOT x = f32[] parameter(0) }, execution_thread=\"t\"\n"},
};

/// A value of another kind than the attribute has.
const char *wrongValue(AttributeGrammar how) {
  switch (how) {
  case AttributeGrammar::Bool:
    return "maybe";
  case AttributeGrammar::Int:
    return "1.5";
  case AttributeGrammar::Double:
    return "one";
  case AttributeGrammar::Ints:
  case AttributeGrammar::Instructions:
  case AttributeGrammar::Computations:
    return "{1.5}";
  case AttributeGrammar::Enum:
    return "SIDEWAYS";
  case AttributeGrammar::EnumList:
    return "{sideways}";
  case AttributeGrammar::Computation:
    return "%nowhere";
  default:
    return "7";
  }
}

std::string moduleOf(const Row &row) {
  return std::string("HloModule m") + row.header +
         "\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
         "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = pred[] compare(a, b), direction=LT }\n"
         "neg { a = f32[4] parameter(0) ROOT n = f32[4] negate(a) }\n"
         "always { a = f32[4] parameter(0) ROOT t = pred[] constant(true) }\n" +
         row.before + "ENTRY e { " + row.body + " }\n";
}

} // namespace

TEST_CASE("every attribute is read, verified and printed") {
  std::set<AttributeKey> tested;
  for (const Row &row : rows) {
    tested.insert(row.key);
    std::string text = moduleOf(row), written = hloc::text(row.key).str() + "=" + row.value;
    INFO(text);
    REQUIRE(text.find(", " + written) != std::string::npos);
    Parsed parsed(text);
    INFO(parsed.firstReport());
    REQUIRE(parsed.module);
    CHECK(verify(*parsed.module, parsed.diagnostics));
    CHECK(parsed.reports() == std::vector<std::string>{});
    std::string printed = print(*parsed.module);
    INFO(printed);
    CHECK(printed.find(written) != std::string::npos);
    Parsed again(printed);
    INFO(again.firstReport());
    REQUIRE(again.module);
    CHECK(print(*again.module) == printed);
  }
#define HLOC_ATTRIBUTE(name, text, grammar)                                                                            \
  INFO(text);                                                                                                          \
  CHECK(tested.count(AttributeKey::name));
#include "hloc/hlo/Attributes.def"
}

TEST_CASE("a value of another kind is refused where it is") {
  for (const Row &row : rows) {
    std::string text = moduleOf(row), written = ", " + hloc::text(row.key).str() + "=";
    size_t at = text.find(written + row.value) + written.size();
    for (const char *wrong : {wrongValue(grammar(row.key)), "?"}) {
      std::string bad = text;
      bad.replace(at, strlen(row.value), wrong);
      INFO(bad);
      Parsed parsed(bad);
      CHECK(!parsed.module);
      REQUIRE(!parsed.diagnostics.diagnostics().empty());
      CHECK(parsed.diagnostics.diagnostics()[0].range.begin >= at);
      CHECK(parsed.diagnostics.diagnostics()[0].range.begin <= at + strlen(wrong) + 1);
    }
  }
}
