// Generator: tuples, calls, control flow; random numbers, transfers, collectives, asynchronous pairs.
#include "fuzz/GeneratorState.h"

#include "hloc/hlo/HloBuilder.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

using Key = AttributeKey;

/// x -> f(x) of the same shape, for any array.
HloComputation *unaryFunction(GeneratorState &g, const Shape &shape) {
  return g.function({shape}, [&](HloComputation &computation, Operands x) {
    return HloBuilder(computation).add(Opcode::Add, shape, {x[0], x[0]}, {}, "y");
  });
}

/// Counts a fresh counter to at most 3, so that the loop ends whatever the inputs are.
HloInstruction *generateWhile(GeneratorState &g) {
  HloInstruction *x = g.anyArrayInstruction();
  Shape counter = Shape::scalar(ElementType::S32);
  Shape state = Shape::tuple({counter, x->shape()});
  int64_t trips = g.below(4);
  auto number = [&](HloBuilder &builder, int64_t value, llvm::StringRef name) {
    Literal literal(counter);
    literal.setInt(0, value);
    return builder.constant(std::move(literal), name);
  };
  HloComputation *condition = g.function({state}, [&](HloComputation &computation, Operands s) {
    HloBuilder builder(computation);
    HloInstruction *i = builder.add(Opcode::GetTupleElement, counter, {s[0]}, {g.integer(Key::Index, 0)}, "i");
    return builder.add(Opcode::Compare, Shape::scalar(ElementType::Pred), {i, number(builder, trips, "n")},
                       {g.integer(Key::Direction, static_cast<int64_t>(ComparisonDirection::Lt))}, "go");
  });
  HloComputation *body = g.function({state}, [&](HloComputation &computation, Operands s) {
    HloBuilder builder(computation);
    HloInstruction *i = builder.add(Opcode::GetTupleElement, counter, {s[0]}, {g.integer(Key::Index, 0)}, "i");
    HloInstruction *y = builder.add(Opcode::GetTupleElement, x->shape(), {s[0]}, {g.integer(Key::Index, 1)}, "y");
    HloInstruction *next = builder.add(Opcode::Add, counter, {i, number(builder, 1, "one")}, {}, "next");
    return builder.tuple({next, builder.add(Opcode::Add, x->shape(), {y, y}, {}, "z")});
  });
  HloBuilder builder(*g.entry);
  std::string name = "zero" + std::to_string(g.entry->instructions().size());
  HloInstruction *start = g.add(Opcode::Tuple, {}, {number(builder, 0, name), x}, {});
  return g.add(Opcode::While, {}, {start}, {g.callee(Key::Condition, condition), g.callee(Key::Body, body)});
}

HloInstruction *generateConditional(GeneratorState &g) {
  HloInstruction *x = g.anyArrayInstruction();
  if (g.oneIn(2))
    return g.add(Opcode::Conditional, {}, {g.withShape(Shape::scalar(ElementType::Pred)), x, g.withShape(x->shape())},
                 {g.callee(Key::TrueComputation, unaryFunction(g, x->shape())),
                  g.callee(Key::FalseComputation, unaryFunction(g, x->shape()))});
  llvm::SmallVector<HloInstruction *, 4> operands{g.withShape(Shape::scalar(ElementType::S32))};
  llvm::SmallVector<HloComputation *, 3> branches;
  for (int64_t i = g.between(1, 3); i > 0; --i) {
    operands.push_back(x);
    branches.push_back(unaryFunction(g, x->shape()));
  }
  llvm::ArrayRef<HloComputation *> saved = g.module.arena().saveList(llvm::ArrayRef<HloComputation *>(branches));
  return g.add(Opcode::Conditional, {}, operands, {{Key::BranchComputations, saved}});
}

HloInstruction *generateTupleElement(GeneratorState &g) {
  llvm::SmallVector<HloInstruction *> tuples;
  for (HloInstruction *instr : g.entry->instructions())
    if (instr->shape().isTuple() && !instr->shape().elements().empty() &&
        family(instr->opcode()) != OpcodeFamily::Async && family(instr->opcode()) != OpcodeFamily::Collective)
      tuples.push_back(instr);
  if (tuples.empty())
    return nullptr;
  HloInstruction *tuple = tuples[g.below(tuples.size())];
  return g.add(Opcode::GetTupleElement, {}, {tuple},
               {g.integer(Key::Index, g.below(tuple->shape().elements().size()))});
}

HloInstruction *generateRandom(GeneratorState &g, Opcode opcode) {
  if (opcode == Opcode::RngGetAndUpdateState)
    return g.add(opcode, Shape::array(ElementType::U64, {2}), {}, {g.integer(Key::Delta, g.between(1, 9))});
  if (opcode == Opcode::Rng) {
    Shape result = Shape::array(ElementType::F32, g.smallDims(2));
    HloInstruction *bound = g.withShape(Shape::scalar(ElementType::F32));
    return g.add(opcode, result, {bound, g.withShape(bound->shape())}, {g.integer(Key::Distribution, g.below(2))});
  }
  Shape state = Shape::array(ElementType::U64, {2});
  return g.add(opcode, Shape::tuple({state, Shape::array(ElementType::U32, g.smallDims(2))}), {g.withShape(state)},
               {g.integer(Key::Algorithm, g.below(3))});
}

HloInstruction *generateHost(GeneratorState &g, Opcode opcode) {
  HloInstruction *token = g.add(Opcode::AfterAll, {}, {}, {});
  Shape data = Shape::array(ElementType::F32, {4}), u32 = Shape::scalar(ElementType::U32);
  Shape transfer = Shape::tuple({data, u32, Shape::token()});
  Attribute channel = g.integer(Key::ChannelId, g.between(1, 5));
  switch (opcode) {
  case Opcode::Infeed:
    return g.add(opcode, Shape::tuple({Shape::tuple({data}), Shape::token()}), {token}, {});
  case Opcode::Outfeed:
    return g.add(opcode, Shape::token(), {g.withShape(data), token},
                 {{Key::OutfeedShape, g.module.arena().saveObject(data)}});
  case Opcode::Send:
  case Opcode::SendDone: {
    HloInstruction *sent = g.add(Opcode::Send, transfer, {g.withShape(data), token}, {channel});
    return g.add(Opcode::SendDone, Shape::token(), {sent}, {channel});
  }
  case Opcode::Recv:
  case Opcode::RecvDone: {
    HloInstruction *received = g.add(Opcode::Recv, transfer, {token}, {channel});
    return g.add(Opcode::RecvDone, Shape::tuple({data, Shape::token()}), {received}, {channel});
  }
  default:
    return token;
  }
}

HloInstruction *generateAsync(GeneratorState &g, Opcode opcode) {
  HloInstruction *x = g.anyArrayInstruction();
  const Shape shape = x->shape();
  if (opcode == Opcode::CopyStart || opcode == Opcode::CopyDone) {
    HloInstruction *start =
        g.add(Opcode::CopyStart, Shape::tuple({shape, shape, Shape::scalar(ElementType::U32)}), {x}, {});
    return g.add(Opcode::CopyDone, shape, {start}, {});
  }
  Attribute calls = g.callee(Key::Calls, unaryFunction(g, shape));
  HloInstruction *start = g.add(Opcode::AsyncStart, Shape::tuple({Shape::tuple({shape}), shape}), {x}, {calls});
  return g.add(Opcode::AsyncDone, shape, {start}, {});
}

HloInstruction *generateCollective(GeneratorState &g, Opcode opcode) {
  Shape shape = Shape::array(ElementType::F32, {4, 2}), doubled = Shape::array(ElementType::F32, {8, 2});
  HloInstruction *x = g.withShape(shape);
  Attribute groups = {Key::ReplicaGroups, g.module.arena().save("{{0,1}}")};
  Attribute dimension = g.ints(Key::Dimensions, {0});
  int64_t pair[] = {0, 1};
  llvm::ArrayRef<int64_t> savedPair = g.module.arena().saveList(llvm::ArrayRef<int64_t>(pair));
  llvm::ArrayRef<llvm::ArrayRef<int64_t>> pairs =
      g.module.arena().saveList(llvm::ArrayRef<llvm::ArrayRef<int64_t>>(savedPair));
  Shape u32 = Shape::scalar(ElementType::U32);
  auto reducer = [&] { return g.callee(Key::ToApply, g.reducer({ElementType::F32})); };
  switch (opcode) {
  case Opcode::AllReduce:
    return g.add(opcode, shape, {x}, {groups, reducer()});
  case Opcode::AllReduceStart:
  case Opcode::AllReduceDone:
    return g.add(Opcode::AllReduceDone, shape, {g.add(Opcode::AllReduceStart, shape, {x}, {groups, reducer()})}, {});
  case Opcode::ReduceScatter:
    return g.add(opcode, Shape::array(ElementType::F32, {2, 2}), {x}, {groups, dimension, reducer()});
  case Opcode::AllGather:
    return g.add(opcode, doubled, {x}, {groups, dimension});
  case Opcode::AllGatherStart:
  case Opcode::AllGatherDone:
    return g.add(Opcode::AllGatherDone, doubled,
                 {g.add(Opcode::AllGatherStart, Shape::tuple({shape, doubled}), {x}, {groups, dimension})}, {});
  case Opcode::AllToAll:
    return g.add(opcode, shape, {x}, {groups, dimension});
  case Opcode::CollectiveBroadcast:
    return g.add(opcode, shape, {x}, {groups});
  case Opcode::CollectivePermute:
    return g.add(opcode, shape, {x}, {{Key::SourceTargetPairs, pairs}});
  case Opcode::CollectivePermuteStart:
  case Opcode::CollectivePermuteDone:
    return g.add(Opcode::CollectivePermuteDone, shape,
                 {g.add(Opcode::CollectivePermuteStart, Shape::tuple({shape, shape, u32, u32}), {x},
                        {{Key::SourceTargetPairs, pairs}})},
                 {});
  default: { // ragged-all-to-all
    HloInstruction *sizes = g.withShape(Shape::array(ElementType::S32, {2}));
    return g.add(Opcode::RaggedAllToAll, shape, {x, x, sizes, sizes, sizes, sizes}, {groups});
  }
  }
}

HloInstruction *generateCustomCall(GeneratorState &g) {
  return g.add(
      Opcode::CustomCall, g.anyArray(), {g.anyArrayInstruction()},
      {g.string(Key::CustomCallTarget, "generated \"call\""), g.flag(Key::CustomCallHasSideEffect, g.oneIn(2))});
}

} // namespace

HloInstruction *generateStructure(GeneratorState &g, Opcode opcode) {
  switch (opcode) {
  case Opcode::Tuple: {
    llvm::SmallVector<HloInstruction *, 4> elements;
    for (int64_t i = g.below(7); i > 0; --i)
      elements.push_back(g.anyArrayInstruction());
    return g.add(opcode, {}, elements, {});
  }
  case Opcode::GetTupleElement:
    return generateTupleElement(g);
  case Opcode::While:
    return generateWhile(g);
  case Opcode::Conditional:
    return generateConditional(g);
  case Opcode::Call: {
    HloInstruction *x = g.anyArrayInstruction();
    return g.add(opcode, {}, {x}, {g.callee(Key::ToApply, unaryFunction(g, x->shape()))});
  }
  case Opcode::Fusion:
    return generateFusion(g);
  default:
    return nullptr;
  }
}

HloInstruction *generateRemote(GeneratorState &g, Opcode opcode) {
  switch (family(opcode)) {
  case OpcodeFamily::Random:
    return generateRandom(g, opcode);
  case OpcodeFamily::Host:
    return generateHost(g, opcode);
  case OpcodeFamily::Async:
    return generateAsync(g, opcode);
  case OpcodeFamily::Collective:
    return generateCollective(g, opcode);
  default:
    break;
  }
  switch (opcode) {
  case Opcode::CustomCall:
    return generateCustomCall(g);
  case Opcode::Domain:
    return g.add(opcode, {}, {g.anyArrayInstruction()},
                 {g.string(Key::Domain, "{kind=\"sharding\", entry={maximal device=0}, exit={replicated}}")});
  case Opcode::AddDependency:
    return g.add(opcode, {}, {g.anyArrayInstruction(), g.add(Opcode::AfterAll, {}, {}, {})}, {});
  case Opcode::SetDimensionSize:
  case Opcode::DynamicReshape: {
    HloInstruction *x = g.withShape(Shape::array(ElementType::F32, {4}));
    HloInstruction *size = g.withShape(Shape::scalar(ElementType::S32));
    if (opcode == Opcode::SetDimensionSize)
      return g.add(opcode, {}, {x, size}, {g.ints(Key::Dimensions, {0})});
    Layout layout;
    layout.minorToMajor = {0};
    return g.add(opcode, Shape::array(ElementType::F32, {4}, layout, {true}), {x, size}, {});
  }
  default: // replica-id, partition-id
    return g.add(opcode, {}, {}, {});
  }
}

} // namespace hloc
