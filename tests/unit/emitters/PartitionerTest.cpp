#include "emitters/ComputationPartitioner.h"
#include "hloc/hlo/HloBuilder.h"

#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// A computation under construction, and its partition with its root requested.
struct Program {
  HloModule module{"m"};
  HloComputation *body = module.addComputation("f");
  HloBuilder b{*body};
  mlir::MLIRContext context;
  DiagnosticEngine diagnostics;
  Shape square = Shape::array(ElementType::F32, {32, 32});

  HloInstruction *unary(Opcode opcode, HloInstruction *x, const char *name) {
    return b.add(opcode, x->shape(), {x}, {}, name);
  }
  HloInstruction *sum(HloInstruction *x, HloInstruction *y, const char *name) {
    return b.add(Opcode::Add, x->shape(), {x, y}, {}, name);
  }
  HloInstruction *transpose(HloInstruction *x, const char *name) {
    return b.add(Opcode::Transpose, square, {x}, {b.ints(AttributeKey::Dimensions, {1, 0})}, name);
  }
  HloInstruction *slice(HloInstruction *x, int64_t start, int64_t size, const char *name) {
    SliceDim dims[] = {{start, start + size, 1}};
    Attribute attribute{AttributeKey::Slice, llvm::ArrayRef<SliceDim>(module.arena().saveList<SliceDim>(dims))};
    return b.add(Opcode::Slice, Shape::array(ElementType::F32, {size}), {x}, {attribute}, name);
  }

  std::string partition(HloInstruction *root) {
    body->setRoot(root);
    FusionGraph graph = *FusionGraph::build(*body, diagnostics);
    FunctionRequest request;
    request.indexSizes.assign(root->shape().dims().begin(), root->shape().dims().end());
    request.roots.push_back({root, 0, IndexingMap::identity(&context, root->shape().dims())});
    return PartitionedComputation(graph, request, &context).toString();
  }
};

} // namespace

TEST_CASE("an elementwise diamond is one function") {
  Program p;
  auto *x = p.unary(Opcode::Log, p.b.parameter(0, p.square, "p"), "log");
  auto *root = p.sum(p.unary(Opcode::Sine, x, "sin"), p.unary(Opcode::Cosine, x, "cos"), "add");
  CHECK(p.partition(root) == "f_add: log sin cos add\n");
}

TEST_CASE("the log, transpose, add diamond is three functions") {
  // %t is read in place and transposed, %log through both.
  Program p;
  auto *log = p.unary(Opcode::Log, p.b.parameter(0, p.square, "p"), "log");
  auto *t = p.transpose(log, "t");
  auto *inner = p.sum(log, t, "inner");
  auto *root = p.sum(p.transpose(inner, "t2"), inner, "add");
  CHECK(p.partition(root) == "f_add: t2 add\nf_inner: t inner\nf_log: log\n");
}

TEST_CASE("what is read once through a transpose joins the reader") {
  Program p;
  auto *log = p.unary(Opcode::Log, p.b.parameter(0, p.square, "p"), "log");
  auto *root = p.unary(Opcode::Negate, p.transpose(log, "t"), "neg");
  CHECK(p.partition(root) == "f_neg: log t neg\n");
}

TEST_CASE("slice and pad of one sum: three functions") {
  Program p;
  Shape eight = Shape::array(ElementType::F32, {8});
  auto *x = p.b.parameter(0, eight, "p");
  auto *add = p.sum(x, x, "add");
  auto *zero = p.b.constant(Literal(Shape::scalar(ElementType::F32)), "zero");
  PaddingDim padding[] = {{1, 0, 0}};
  Attribute attribute{AttributeKey::Padding,
                      llvm::ArrayRef<PaddingDim>(p.module.arena().saveList<PaddingDim>(padding))};
  auto *pad = p.b.add(Opcode::Pad, eight, {p.slice(add, 0, 7, "s"), zero}, {attribute}, "pad");
  auto *both = p.sum(pad, add, "both");
  auto *root = p.sum(p.slice(both, 0, 4, "low"), p.slice(both, 4, 4, "high"), "root");
  CHECK(p.partition(root) == "f_root: low high root\nf_both: s pad both\nf_add: add\n");
}

TEST_CASE("two dynamic slices of one value never share an index") {
  Program p;
  Shape nine = Shape::array(ElementType::F32, {9});
  Shape two = Shape::array(ElementType::F32, {2});
  Shape scalar = Shape::scalar(ElementType::S32);
  auto *log = p.unary(Opcode::Log, p.b.parameter(0, nine, "p"), "log");
  auto *i = p.b.parameter(1, scalar, "i");
  auto *j = p.b.parameter(2, scalar, "j");
  Attribute sizes = p.b.ints(AttributeKey::DynamicSliceSizes, {2});
  auto *a = p.b.add(Opcode::DynamicSlice, two, {log, i}, {sizes}, "a");
  auto *c = p.b.add(Opcode::DynamicSlice, two, {log, j}, {sizes}, "c");
  CHECK(p.partition(p.sum(a, c, "add")) == "f_add: a c add\nf_log: log\n");
}

TEST_CASE("large computations are cut into functions of bounded size") {
  Program p;
  HloInstruction *x = p.b.parameter(0, p.square, "p");
  for (int i = 0; i < 5000; ++i)
    x = p.b.add(Opcode::Add, p.square, {x, x});
  std::string text = p.partition(x);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}
