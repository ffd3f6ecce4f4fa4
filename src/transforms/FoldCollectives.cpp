// Collectives in which each device is alone -> what they are given; custom calls that tell a partitioner or a placer of
// memory something -> their operand.
//
//   r = f32[8] all-reduce(x), replica_groups={{0}}, to_apply=add    ->   users of r read x
//   s = f32[8] custom-call(x), custom_call_target="Sharding"        ->   users of s read x

#include "Rewriter.h"
#include "WithLayout.h"
#include "hloc/hlo/External.h"
#include "hloc/transforms/Transforms.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

/// Their value is their operand, on any device.
constexpr llvm::StringLiteral notes[] = {"Sharding",
                                         "SPMDFullToShardShape",
                                         "SPMDShardToFullShape",
                                         "xla.sdy.FuncResultSharding",
                                         "annotate_device_placement",
                                         "MoveToHost",
                                         "MoveToDevice",
                                         "LayoutConstraint",
                                         "Pin",
                                         "Unpin"};

/// `values`, one or as a tuple, if they are what `instr` may be instead.
HloInstruction *standIn(HloInstruction &instr, llvm::ArrayRef<HloInstruction *> values, HloRewriter &r) {
  const Shape &shape = instr.shape();
  const bool isTuple = shape.isTuple() && !(values.size() == 1 && values.front()->shape().isTuple());
  const size_t numWanted = isTuple ? shape.elements().size() : 1;
  if (values.size() != numWanted)
    return nullptr;
  for (auto [i, value] : llvm::enumerate(values))
    if (!value->shape().compatible(isTuple ? shape.element(unsigned(i)) : shape))
      return nullptr; // made for any number of devices, or buffers
  return withLayout(isTuple ? r.builder().tuple(values) : values.front(), shape, r.builder());
}

HloInstruction *loneCollective(HloInstruction &instr, HloRewriter &r) {
  return isAlone(instr) ? standIn(instr, instr.operands(), r) : nullptr;
}

/// What no device sends to is zero.
HloInstruction *lonePermute(HloInstruction &instr, HloRewriter &r) {
  if (!isSilent(instr))
    return loneCollective(instr, r);
  HloInstruction *zero = r.builder().constant(Literal(Shape::array(instr.shape().elementType(), {})));
  return instr.shape().rank() == 0 ? zero : r.builder().broadcast(zero, instr.shape(), {});
}

bool isNote(const HloInstruction &instr) {
  return instr.opcode() == Opcode::CustomCall && instr.numOperands() == 1 &&
         llvm::is_contained(notes, instr.string(AttributeKey::CustomCallTarget));
}

HloInstruction *note(HloInstruction &instr, HloRewriter &r) {
  return isNote(instr) ? standIn(instr, instr.operands(), r) : nullptr;
}

constexpr RewriteRule rules[] = {
    {"fold-collectives.all-reduce", Opcode::AllReduce, loneCollective},
    {"fold-collectives.reduce-scatter", Opcode::ReduceScatter, loneCollective},
    {"fold-collectives.all-gather", Opcode::AllGather, loneCollective},
    {"fold-collectives.all-to-all", Opcode::AllToAll, loneCollective},
    {"fold-collectives.broadcast", Opcode::CollectiveBroadcast, loneCollective},
    {"fold-collectives.permute", Opcode::CollectivePermute, lonePermute},
    {"fold-collectives.note", Opcode::CustomCall, note},
};

/// Side effects keep what nobody reads (any more). These have none.
size_t eraseUnread(HloComputation &computation) {
  llvm::SmallVector<HloInstruction *> found;
  for (HloInstruction *instr : computation.instructions())
    if (isNote(*instr) || isSilent(*instr) || isAlone(*instr))
      found.push_back(instr);
  size_t erased = 0;
  if (found.empty())
    return erased;
  HloEditor editor(computation);
  for (HloInstruction *instr : llvm::reverse(found)) { // users first
    if (!editor.isErased(instr) && editor.eraseWithOperands(instr))
      ++erased;
  }
  return erased;
}

} // namespace

PassResult foldCollectives(HloModule &module, HloPassContext &context) {
  PassResult folded = rewriteModule(module, rules, context);
  size_t erased = 0;
  for (const auto &computation : module.computations())
    erased += eraseUnread(*computation);
  context.statistics.add("fold-collectives.erased", erased);
  return erased ? PassResult::Changed : folded;
}

} // namespace hloc
