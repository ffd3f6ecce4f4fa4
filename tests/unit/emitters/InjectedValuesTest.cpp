// Values that functions are given instead of computing them, and reducers as functions.

#include "emitters/KernelBuilder.h"
#include "emitters/ScalarComputation.h"
#include "hloc/dialect/XlaGpu.h"
#include "hloc/emitters/KernelEmitter.h"
#include "hloc/parser/Parser.h"
#include "unit/SystemToolchain.h"
#include "unit/codegen/CompileKernel.h"
#include "unit/emulator/Harness.h"

#include "mlir/IR/Verifier.h"

using namespace hloc;

namespace {

struct Parsed {
  DiagnosticEngine diagnostics;
  std::unique_ptr<HloModule> module;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};

  explicit Parsed(std::string text) {
    module = parseHloModule(std::make_shared<SourceFile>("test.hlo", std::move(text)), diagnostics);
    INFO(messages());
    REQUIRE(module);
    loadEmitterDialects(context);
  }
  const HloInstruction *instr(llvm::StringRef name) const {
    for (const HloInstruction *instr : module->entry()->instructions())
      if (instr->name() == name)
        return instr;
    FAIL("no instruction " << name.str());
    return nullptr;
  }
  std::string messages() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    diagnostics.print(os, false);
    return text;
  }
  /// The only kernel of the fusion.
  KernelPlan plan(const FusionGraph &graph) {
    llvm::FailureOr<FusionPlan> plan = planFusion(graph, {}, *findTarget("sm_90"), diagnostics);
    INFO(messages());
    REQUIRE(succeeded(plan));
    return std::get<KernelPlan>(plan->steps.front());
  }
  /// A function with these roots, read at their own indices.
  FunctionRequest request(llvm::ArrayRef<llvm::StringRef> roots, llvm::ArrayRef<InjectedValue> injected) {
    FunctionRequest request;
    for (llvm::StringRef root : roots)
      request.roots.push_back({instr(root), 0, IndexingMap::identity(&context, instr(root)->shape().dims())});
    request.indexSizes.assign(instr(roots[0])->shape().dims().begin(), instr(roots[0])->shape().dims().end());
    request.injected.assign(injected.begin(), injected.end());
    return request;
  }
};

std::string printed(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os);
  return text;
}

/// `first` reads `shared` directly, `second` through `outer`; `shared` reads result 1 of the reduction.
constexpr const char *sharedReaders = R"(
HloModule m
least { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  less = pred[] compare(a, b), direction=LE  v = f32[] select(less, a, b)  at = s32[] select(less, i, j)
  ROOT t = (f32[], s32[]) tuple(v, at) }
ENTRY e { x = f32[8,32] parameter(0)  places = s32[8,32] iota(), iota_dimension=1
  worst = f32[] constant(inf)  zero = s32[] constant(0)
  both = (f32[8], s32[8]) reduce(x, places, worst, zero), dimensions={1}, to_apply=least
  place = s32[8] get-tuple-element(both), index=1
  shared = s32[8] negate(place)
  outer = s32[8] not(shared)
  first = s32[8] add(shared, outer)
  second = s32[8] multiply(outer, outer)
  ROOT t = (s32[8], s32[8]) tuple(first, second) })";

} // namespace

TEST_CASE("an injected result reaches all functions that need it, and no others") {
  Parsed p(sharedReaders);
  FusionGraph graph = *FusionGraph::build(*p.module->entry(), p.diagnostics);
  InjectedValue place{p.instr("both"), 1};
  FunctionRequest requests[] = {p.request({"first"}, {place}), p.request({"second"}, {place})};
  PartitionedComputation partition(graph, requests, &p.context);
  CHECK(partition.toString() == "e_first: first\ne_second: second\ne_outer: outer\ne_shared: place shared\n");
  for (const Subgraph &subgraph : partition.subgraphs())
    CHECK(llvm::ArrayRef(subgraph.injected) == llvm::ArrayRef(place));
}

TEST_CASE("functions hand injected values on to those they call") {
  Parsed p(sharedReaders);
  FusionGraph graph = *FusionGraph::build(*p.module->entry(), p.diagnostics);
  InjectedValue place{p.instr("both"), 1};
  FunctionRequest requests[] = {p.request({"first"}, {place}), p.request({"second"}, {place})};
  KernelPlan plan = p.plan(graph);
  KernelBuilder kernel(graph, plan, "k", &p.context, p.diagnostics);
  auto functions = kernel.emitFunctions(requests);
  INFO(p.messages());
  REQUIRE(succeeded(functions));
  CodeBuilder &b = kernel.code();
  mlir::Value given = b.integer(b.getI32Type(), 5);
  CHECK(kernel.call((*functions)[0], kernel.ids()[0], given).size() == 1);
  CHECK(kernel.call((*functions)[1], kernel.ids()[0], given).size() == 1);
  auto module = kernel.finish();
  INFO(printed(*module));
  CHECK(succeeded(mlir::verify(*module)));
  CHECK(printed(*module).find("xla_gpu.loop") == std::string::npos); // nobody computes the reduction
  for (llvm::StringRef name : {"e_first", "e_second", "e_outer"}) {
    auto function = module->lookupSymbol<mlir::func::FuncOp>(name);
    REQUIRE(function);
    mlir::Value last = function.getArguments().back();
    CHECK(last.getType().isInteger(32));
    function.walk([&](xla_gpu::PureCallOp call) { CHECK(call.getOperands().back() == last); });
  }
  auto shared = module->lookupSymbol<mlir::func::FuncOp>("e_shared");
  REQUIRE(shared);
  CHECK(!shared.getArguments().back().use_empty());
}

TEST_CASE("several results of one instruction are injected by number") {
  std::string text = sharedReaders;
  text.replace(text.find("outer = s32[8] not(shared)"), 26,
               "value = f32[8] get-tuple-element(both), index=0  outer = s32[8] convert(value)");
  Parsed p(text);
  FusionGraph graph = *FusionGraph::build(*p.module->entry(), p.diagnostics);
  InjectedValue value{p.instr("both"), 0}, place{p.instr("both"), 1};
  FunctionRequest requests[] = {p.request({"first"}, {place, value}), p.request({"second"}, {value})};
  PartitionedComputation partition(graph, requests, &p.context);
  REQUIRE(partition.toString() == "e_first: place shared first\ne_second: second\ne_outer: value outer\n");
  CHECK(partition.subgraphs()[0].injected == llvm::SmallVector<InjectedValue>{place, value}); // as requested
  CHECK(partition.subgraphs()[2].injected == llvm::SmallVector<InjectedValue>{value});

  KernelPlan plan = p.plan(graph);
  KernelBuilder kernel(graph, plan, "k", &p.context, p.diagnostics);
  auto functions = kernel.emitFunctions(requests);
  REQUIRE(succeeded(functions));
  auto module = kernel.finish();
  INFO(printed(*module));
  CHECK(succeeded(mlir::verify(*module)));
  auto first = module->lookupSymbol<mlir::func::FuncOp>("e_first");
  CHECK(first.getArgumentTypes().take_back(2)[0].isInteger(32));
  CHECK(first.getArgumentTypes().take_back(2)[1].isF32());
  first.walk([&](xla_gpu::PureCallOp call) { CHECK(call.getOperands().back() == first.getArguments().back()); });
}

TEST_CASE("a reducer of pairs becomes the combiner of a warp reduction") {
  Parsed p(sharedReaders);
  auto module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&p.context));
  mlir::OwningOpRef<mlir::ModuleOp> owner(module);
  auto function = emitScalarFunction(*p.module->findComputation("least"), module, p.diagnostics);
  INFO(p.messages());
  REQUIRE(succeeded(function));
  CHECK(function->isPrivate());
  CHECK(succeeded(mlir::verify(module)));
  std::string text = R"(
func.func @k(%in: tensor<32xf32> {llvm.align = 16 : i32, xla_gpu.slice_index = 0 : index, xla_gpu.invariant},
             %out: tensor<1xi32> {llvm.align = 16 : i32, xla_gpu.slice_index = 1 : index}) -> tensor<1xi32>
    attributes {xla_gpu.entry, xla_gpu.block = array<i32: 32, 1, 1>, xla_gpu.grid = array<i32: 1, 1, 1>} {
  %thread = gpu.thread_id x {xla_gpu.range = [0 : index, 31 : index]}
  %x = tensor.extract %in[%thread] : tensor<32xf32>
  %place = arith.index_cast %thread : index to i32
  %r:2 = xla_gpu.shuffle_reduce(%x, %place) to 16 combiner=@least : f32, i32
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %thread, %zero : index
  %new = xla_gpu.predicated_insert %r#1 into %out[%zero] if %first : tensor<1xi32>
  return %new : tensor<1xi32>
}
)" + printed(function->getOperation());
  emulator::testing::Harness harness;
  harness.load(tests::compileKernel(text, *findTarget("sm_90"), test::systemToolchain()));
  std::vector<float> input(32);
  for (size_t i = 0; i < 32; ++i)
    input[i] = float((i * 13 + 5) % 32);
  harness.input("in", input);
  auto out = harness.output("out", 4);
  harness.launch();
  INFO(harness.messages());
  REQUIRE(harness.silent());
  CHECK(harness.read<int32_t>(out)[0] == std::min_element(input.begin(), input.end()) - input.begin());
}

TEST_CASE("a function of predicates takes and gives bytes; its name is made unique") {
  Parsed p("HloModule m ENTRY all { a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] and(a, b) }");
  auto module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&p.context));
  mlir::OwningOpRef<mlir::ModuleOp> owner(module);
  auto first = emitScalarFunction(*p.module->entry(), module, p.diagnostics);
  auto second = emitScalarFunction(*p.module->entry(), module, p.diagnostics);
  REQUIRE(succeeded(first));
  REQUIRE(succeeded(second));
  CHECK(succeeded(mlir::verify(module)));
  CHECK(first->getSymName() == "all");
  CHECK(second->getSymName() != "all");
  mlir::Type byte = mlir::IntegerType::get(&p.context, 8);
  CHECK(first->getFunctionType() == mlir::FunctionType::get(&p.context, {byte, byte}, {byte}));
}

TEST_CASE("a computation of arrays is refused where it stands, and leaves no function") {
  Parsed p("HloModule m ENTRY e { a = f32[2] parameter(0) ROOT r = f32[2] negate(a) }");
  auto module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&p.context));
  mlir::OwningOpRef<mlir::ModuleOp> owner(module);
  CHECK(failed(emitScalarFunction(*p.module->entry(), module, p.diagnostics)));
  CHECK(p.messages().find("an array in a computation that is applied to scalars is not supported") !=
        std::string::npos);
  CHECK(module.getBody()->empty());
}
