// Rules that only a module made by hand can break: the parser reports such text itself.
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/ShapeInference.h"
#include "hloc/hlo/Verifier.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

const Shape vector4 = Shape::array(ElementType::F32, {4});
const Shape scalar = Shape::scalar(ElementType::F32);

/// An entry computation to be filled, and a computation `sum` of f32 scalars before it.
struct Fixture {
  Fixture() : module("m"), sum(module.addComputation("sum")), entry(module.addComputation("e")), builder(*entry) {
    HloBuilder inner(*sum);
    auto *a = inner.parameter(0, scalar, "a"), *b = inner.parameter(1, scalar, "b");
    sum->setRoot(inner.add(Opcode::Add, scalar, {a, b}));
    module.setEntry(entry);
  }

  /// The rules that the module breaks with `root` as its result.
  std::vector<std::string> brokenRules(HloInstruction *root) {
    entry->setRoot(root);
    DiagnosticEngine diagnostics;
    bool ok = verify(module, diagnostics);
    CHECK(ok == diagnostics.diagnostics().empty());
    std::vector<std::string> labels;
    for (const Diagnostic &diagnostic : diagnostics.diagnostics()) {
      REQUIRE(diagnostic.notes.size() == 1);
      labels.push_back(llvm::StringRef(diagnostic.notes[0].message).split('`').second.split('`').first.str());
    }
    return labels;
  }

  HloModule module;
  HloComputation *sum, *entry;
  HloBuilder builder;
};

using Labels = std::vector<std::string>;

} // namespace

TEST_CASE("operand counts and required attributes are checked") {
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p");
  CHECK(f.brokenRules(f.builder.add(Opcode::Add, vector4, {p})) == Labels{"instruction_c1"});
  Fixture g;
  p = g.builder.parameter(0, vector4, "p");
  CHECK(g.brokenRules(g.builder.add(Opcode::Reverse, vector4, {p})) == Labels{"instruction_c2"});
}

TEST_CASE("variadic ops need as many initial values or updates as operands") {
  Attribute all = {AttributeKey::Dimensions, llvm::ArrayRef<int64_t>()};
  for (auto [opcode, label] : {std::pair(Opcode::Reduce, "reduce_c1"), {Opcode::ReduceWindow, "reduce_window_c1"}}) {
    Fixture f;
    auto *p = f.builder.parameter(0, vector4, "p"), *z = f.builder.parameter(1, scalar, "z");
    auto *root = f.builder.add(opcode, vector4, {p, z, z}, {all, {AttributeKey::ToApply, f.sum}});
    CHECK(f.brokenRules(root) == Labels{label});
  }
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p");
  llvm::SmallVector<Attribute> attributes{{AttributeKey::ToApply, f.sum}, {AttributeKey::IndexVectorDim, int64_t(0)}};
  for (AttributeKey key :
       {AttributeKey::UpdateWindowDims, AttributeKey::InsertedWindowDims, AttributeKey::ScatterDimsToOperandDims})
    attributes.push_back({key, llvm::ArrayRef<int64_t>()});
  CHECK(f.brokenRules(f.builder.add(Opcode::Scatter, vector4, {p, p, p, p}, attributes)) == Labels{"scatter_c1"});
}

TEST_CASE("a constant has the shape of its literal") {
  Fixture f;
  auto *c = f.builder.constant(Literal(vector4));
  CHECK(f.brokenRules(c).empty());
  Fixture g;
  InstructionSpec spec;
  spec.opcode = Opcode::Constant;
  spec.shape = scalar;
  spec.literal = &c->literal();
  CHECK(g.brokenRules(g.entry->add(spec)) == Labels{"constant_c1"});
}

TEST_CASE("get-tuple-element reads an element of a tuple") {
  for (auto [shape, label] : {std::pair(vector4, "get_tuple_element_c1"), {Shape::tuple({}), "get_tuple_element_c2"}}) {
    Fixture f;
    auto *p = f.builder.parameter(0, shape, "p");
    CHECK(f.brokenRules(f.builder.add(Opcode::GetTupleElement, vector4, {p}, {{AttributeKey::Index, int64_t(0)}})) ==
          Labels{label});
  }
}

TEST_CASE("a layout names each dimension once") {
  Fixture f;
  Layout layout;
  layout.minorToMajor = {1, 1};
  CHECK(f.brokenRules(f.builder.parameter(0, Shape::array(ElementType::F32, {2, 3}, layout), "p")) ==
        Labels{"shape_c2"});
}

TEST_CASE("sizes that overflow are refused, not wrapped") {
  Fixture f;
  Shape huge = Shape::array(ElementType::S8, {int64_t(1) << 62});
  auto *p = f.builder.parameter(0, huge, "p");
  auto *root = f.builder.add(Opcode::Concatenate, huge, {p, p}, {f.builder.ints(AttributeKey::Dimensions, {0})});
  CHECK(f.brokenRules(root) == Labels{"shape_c1"});
}

TEST_CASE("interior padding is not negative") {
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p"), *z = f.builder.parameter(1, scalar, "z");
  PaddingDim dims[] = {{6, 0, -1}};
  llvm::ArrayRef<PaddingDim> padding = f.module.arena().saveList(llvm::ArrayRef<PaddingDim>(dims));
  CHECK(f.brokenRules(f.builder.add(Opcode::Pad, vector4, {p, z}, {{AttributeKey::Padding, padding}})) ==
        Labels{"pad_c3"});
}

TEST_CASE("reshape keeps the number of elements") {
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p");
  auto *root = f.builder.add(Opcode::Reshape, Shape::array(ElementType::F32, {5}), {p});
  CHECK(f.brokenRules(root) == Labels{"reshape_c2"});
}

TEST_CASE("selectors and branches of a conditional fit together") {
  for (auto [type, label] : {std::pair(ElementType::F32, "conditional_c1"), {ElementType::S32, "conditional_c2"}}) {
    Fixture f;
    auto *s = f.builder.parameter(0, Shape::scalar(type), "s"), *x = f.builder.parameter(1, scalar, "x");
    auto *root = f.builder.add(Opcode::Conditional, scalar, {s, x, x},
                               {{AttributeKey::TrueComputation, f.sum}, {AttributeKey::FalseComputation, f.sum}});
    CHECK(f.brokenRules(root) == Labels{label});
  }
}

TEST_CASE("layout constraints of a custom call fit its operands") {
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p");
  llvm::ArrayRef<Shape> constraints = f.module.arena().saveList(llvm::ArrayRef<Shape>({scalar}));
  auto *root = f.builder.add(Opcode::CustomCall, vector4, {p}, {{AttributeKey::OperandLayoutConstraints, constraints}});
  CHECK(f.brokenRules(root) == Labels{"instruction_c2"}); // custom_call_target
  Fixture g;
  p = g.builder.parameter(0, vector4, "p");
  root = g.builder.add(
      Opcode::CustomCall, vector4, {p},
      {{AttributeKey::OperandLayoutConstraints, constraints}, {AttributeKey::CustomCallTarget, llvm::StringRef("t")}});
  CHECK(g.brokenRules(root) == Labels{"custom_call_c1"});
}

TEST_CASE("calls go backwards, so that nothing is recursive") {
  Fixture f;
  auto *p = f.builder.parameter(0, scalar, "p");
  CHECK(f.brokenRules(f.builder.add(Opcode::Call, scalar, {p}, {{AttributeKey::ToApply, f.entry}})) ==
        Labels{"instruction_c5"});
}

TEST_CASE("nothing waits for itself, or for another computation") {
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p");
  auto *first = f.builder.add(Opcode::Negate, vector4, {p}), *second = f.builder.add(Opcode::Negate, vector4, {first});
  HloInstruction *later[] = {second}, *earlier[] = {first}, *outside[] = {f.sum->root()};
  auto waitFor = [&](HloInstruction *instr, llvm::ArrayRef<HloInstruction *> predecessors) {
    llvm::ArrayRef<HloInstruction *> list = f.module.arena().saveList(predecessors);
    f.module.arena().setAttributes(*instr, Attribute{AttributeKey::ControlPredecessors, list});
  };
  waitFor(second, earlier);
  CHECK(f.brokenRules(second).empty());
  waitFor(first, later);
  CHECK(f.brokenRules(second) == Labels{"instruction_c6"});
  waitFor(first, outside);
  CHECK(f.brokenRules(second) == Labels{"instruction_c6"});
  Fixture g;
  p = g.builder.parameter(0, scalar, "p");
  CHECK(g.brokenRules(g.builder.add(Opcode::Negate, scalar, {g.sum->root()})) == Labels{"instruction_c6"});
}

TEST_CASE("a module has an entry with a root, and parameters without gaps") {
  HloModule empty("m");
  DiagnosticEngine diagnostics;
  CHECK_FALSE(verify(empty, diagnostics));
  CHECK(diagnostics.diagnostics().at(0).kind == DiagnosticKind::BadModule);
  Fixture f;
  CHECK(f.brokenRules(f.builder.parameter(1, scalar, "p")) == Labels{"module_c2"});
}

TEST_CASE("unbounded dimensions pass where the result is declared or copied") {
  Fixture f;
  Shape unbounded = Shape::array(ElementType::F32, {Shape::unbounded});
  auto *p = f.builder.parameter(0, unbounded, "p");
  CHECK(f.brokenRules(f.builder.add(Opcode::Reshape, vector4, {p})).empty());
  InstructionSpec spec;
  spec.opcode = Opcode::Reverse;
  HloInstruction *operands[] = {p};
  Attribute dimensions[] = {f.builder.ints(AttributeKey::Dimensions, {0})};
  spec.operands = operands;
  spec.attributes = dimensions;
  std::string error;
  CHECK_FALSE(inferShape(spec, error));
  CHECK(error == "reverse: the result shape must be written, as an operand has unbounded dimensions");
  spec.opcode = Opcode::Negate;
  spec.attributes = {};
  CHECK(inferShape(spec, error)->dim(0) == Shape::unbounded);
}

TEST_CASE("every broken instruction is reported, not only the first") {
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p"), *q = f.builder.parameter(1, scalar, "q");
  f.builder.add(Opcode::Add, vector4, {p, q});
  f.builder.add(Opcode::Not, vector4, {p});
  CHECK(f.brokenRules(f.builder.add(Opcode::Negate, scalar, {p})) == Labels{"binary_c1", "unary_c1", "instruction_c4"});
}

TEST_CASE("the type of a compare suits its operands") {
  Fixture f;
  auto *p = f.builder.parameter(0, vector4, "p");
  Attribute attributes[] = {{AttributeKey::Direction, int64_t(ComparisonDirection::Lt)},
                            {AttributeKey::Type, int64_t(ComparisonType::Signed)}};
  Shape result = Shape::array(ElementType::Pred, {4});
  CHECK(f.brokenRules(f.builder.add(Opcode::Compare, result, {p, p}, attributes)) == Labels{"compare_c1"});
}
