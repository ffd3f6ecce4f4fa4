// One idea: all products of a step are one piece of assembly, whose sums are registers that go in and come out again.
// ptxas keeps them where they are from step to step as long as nothing else touches them.

#include "passes/LowerProducts.h"

#include "hloc/support/Check.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace hloc::xla_gpu;

namespace hloc {
namespace {

Value assembly(OpBuilder &builder, Location loc, Type result, ValueRange operands, const std::string &text,
               const std::string &constraints) {
  auto made = LLVM::InlineAsmOp::create(builder, loc, result ? TypeRange(result) : TypeRange(), operands, text,
                                        constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
                                        LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return result ? made.getResult(0) : Value();
}

/// "{$0, $1, ...}".
std::string registersOf(size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += fmt::format("{}${}", i == 0 ? "" : ", ", i);
  return text + "}";
}

/// Assembly that changes `sums` in place, which are its first registers, or if `areMade` makes them of nothing;
/// `others` come behind them.
SmallVector<Value> changeSums(OpBuilder &builder, Location loc, ValueRange sums, ValueRange others,
                              const std::string &text, bool areMade = false) {
  std::string constraints;
  SmallVector<Type> types(sums.getTypes());
  for (Type type : types)
    constraints += type.isF32() ? "=&f," : "=&r,"; // written before all factors are read
  SmallVector<Value> operands(others);
  for (Value other : others)
    constraints += other.getType().isInteger(64) ? "l," : other.getType().isF32() ? "f," : "r,";
  if (!areMade) {
    llvm::append_range(operands, sums);
    for (size_t i = 0; i < sums.size(); ++i)
      constraints += fmt::format("{},", i);
  }
  constraints += "~{memory}";
  if (sums.empty()) {
    assembly(builder, loc, {}, operands, text, constraints);
    return {};
  }
  if (sums.size() == 1)
    return {assembly(builder, loc, types.front(), operands, text, constraints)};
  Value made = assembly(builder, loc, LLVM::LLVMStructType::getLiteral(builder.getContext(), types), operands, text,
                        constraints);
  SmallVector<Value> results;
  for (size_t i = 0; i < sums.size(); ++i)
    results.push_back(LLVM::ExtractValueOp::create(builder, loc, made, int64_t(i)));
  return results;
}

/// Of a matrix that begins at the address (PTX ISA, "Matrix Descriptor").
Value descriptorOf(OpBuilder &builder, Location loc, Value address, ArrayRef<int64_t> layout) {
  constexpr unsigned bitsOfAddress = 18, bitsOfUnit = 4;
  const int64_t leading = layout[0], stride = layout[1], span = layout[2];
  const int64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
  const uint64_t fixed =
      uint64_t(leading >> bitsOfUnit) << 16 | uint64_t(stride >> bitsOfUnit) << 32 | uint64_t(swizzle) << 62;
  auto constant = [&](Type type, uint64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, int64_t(value)));
  };
  Type word = builder.getI32Type(), wide = builder.getI64Type();
  Value start = LLVM::PtrToIntOp::create(builder, loc, word, address);
  start = LLVM::AndOp::create(builder, loc, start, constant(word, (1 << bitsOfAddress) - 1));
  start = LLVM::LShrOp::create(builder, loc, start, constant(word, bitsOfUnit));
  start = LLVM::ZExtOp::create(builder, loc, wide, start);
  return LLVM::OrOp::create(builder, loc, start, constant(wide, fixed));
}

std::string nameOf(Type factor) {
  if (factor.isInteger(8))
    return factor.isUnsignedInteger() ? "u8" : "s8";
  if (isa<Float8E4M3FNType>(factor))
    return "e4m3";
  if (isa<Float8E5M2Type>(factor))
    return "e5m2";
  return factor.isTF32() ? "tf32" : factor.isF16() ? "f16" : "bf16";
}

} // namespace

/// Of 64 rows by the columns that so many sums of a thread are of: the instruction up to its operands.
static std::string instructionOf(Type lhs, Type rhs, size_t numSums) {
  constexpr int64_t bitsOfTerms = 256;
  const int64_t bits = lhs.isTF32() ? 32 : lhs.getIntOrFloatBitWidth();
  return fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}", 2 * numSums, bitsOfTerms / bits,
                     lhs.isInteger(8) ? "s32" : "f32", nameOf(lhs), nameOf(rhs));
}

constexpr int64_t bytesOfUnit = 16;

/// Then the first product is not added to them, and nobody has to write zeros to registers.
static bool areZeros(ValueRange sums) {
  return llvm::all_of(sums,
                      [](Value sum) { return matchPattern(sum, m_AnyZeroFloat()) || matchPattern(sum, m_Zero()); });
}

/// Whether products are added to what is in the registers: but for the first ones, if sums are made of nothing.
static std::string additions(bool areAnew) {
  return areAnew ? ".reg .pred %isAdded;\nsetp.ne.b32 %isAdded, 0, 0;\n"
                 : ".reg .pred %isAdded;\nsetp.ne.b32 %isAdded, 1, 0;\n";
}
static std::string additionsAfter(size_t number, bool areAnew) {
  return areAnew && number == 0 ? "setp.ne.b32 %isAdded, 1, 0;\n" : "";
}

SmallVector<Value> multiplyTiles(MultiplyTilesOp op, Value lhs, Value rhs, OpBuilder &builder) {
  Location loc = op.getLoc();
  Type element = op.getElement(), other = op.getRhsElement().value_or(element);
  const size_t numSums = op.getSums().size();
  const std::string registers = registersOf(numSums), instruction = instructionOf(element, other, numSums);
  std::string modifiers = element.isInteger(8) ? "" : ", 1, 1";
  if (element.isF16() || element.isBF16())
    modifiers += fmt::format(", {}, {}", op.getLhsLayout()[3], op.getRhsLayout()[3]);
  const bool areMade = areZeros(op.getSums()), areAnew = areMade || op.getAnew();
  std::string text = "{\n.reg .b64 %lhs, %rhs;\n" + additions(areAnew) + "wgmma.fence.sync.aligned;\n";
  for (auto [number, ofLhs, ofRhs] : llvm::enumerate(op.getLhsSteps(), op.getRhsSteps())) {
    text += fmt::format("add.s64 %lhs, ${}, {};\nadd.s64 %rhs, ${}, {};\n", numSums, ofLhs / bytesOfUnit, numSums + 1,
                        ofRhs / bytesOfUnit);
    text += fmt::format("{} {}, %lhs, %rhs, %isAdded{};\n", instruction, registers, modifiers);
    text += additionsAfter(number, areAnew);
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  const Value descriptors[] = {descriptorOf(builder, loc, lhs, op.getLhsLayout()),
                               descriptorOf(builder, loc, rhs, op.getRhsLayout())};
  return changeSums(builder, loc, op.getSums(), descriptors, text, areMade);
}

SmallVector<Value> multiplyHeld(MultiplyHeldOp op, Value rhs, OpBuilder &builder) {
  constexpr size_t wordsOfTerms = 4;
  Location loc = op.getLoc();
  Type element = op.getElement();
  const size_t numSums = op.getSums().size();
  const std::string registers = registersOf(numSums),
                    instruction = instructionOf(element, op.getRhsElement().value_or(element), numSums);
  std::string modifiers = element.isInteger(8) ? "" : ", 1, 1";
  if (element.isF16() || element.isBF16())
    modifiers += fmt::format(", {}", op.getRhsLayout()[3]);
  const bool areMade = areZeros(op.getSums()), areAnew = areMade || op.getAnew();
  std::string text = "{\n.reg .b64 %rhs;\n" + additions(areAnew) + "wgmma.fence.sync.aligned;\n";
  for (auto [number, step] : llvm::enumerate(op.getRhsSteps())) {
    const size_t first = numSums + 1 + wordsOfTerms * number;
    text += fmt::format("add.s64 %rhs, ${}, {};\n", numSums, step / bytesOfUnit);
    text += fmt::format("{} {}, {{${}, ${}, ${}, ${}}}, %rhs, %isAdded{};\n", instruction, registers, first, first + 1,
                        first + 2, first + 3, modifiers);
    text += additionsAfter(number, areAnew);
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  SmallVector<Value> others = {descriptorOf(builder, loc, rhs, op.getRhsLayout())};
  llvm::append_range(others, op.getLhs());
  return changeSums(builder, loc, op.getSums(), others, text, areMade);
}

/// What waits does not name the sums: where LLVM copies registers for an instruction that changes them, it does so just
/// before it, and that is behind the wait here.
SmallVector<Value> awaitProducts(AwaitProductsOp op, OpBuilder &builder) {
  assembly(builder, op.getLoc(), {}, {}, fmt::format("wgmma.wait_group.sync.aligned {};", op.getOpen()), "~{memory}");
  return op.getSums().empty() ? SmallVector<Value>()
                              : changeSums(builder, op.getLoc(), op.getSums(), {}, "// sums are known");
}

/// By assembly of nothing that has them as operands, since others keep their places beside it.
void keep(KeepOp op, OpBuilder &builder) {
  SmallVector<Value> words;
  for (Value value : op.getValues()) {
    auto vector = dyn_cast<VectorType>(value.getType());
    if (!vector)
      words.push_back(value);
    for (int64_t i = 0; vector && i < vector.getNumElements(); ++i)
      words.push_back(LLVM::ExtractElementOp::create(
          builder, op.getLoc(), value, LLVM::ConstantOp::create(builder, op.getLoc(), builder.getI32IntegerAttr(i))));
  }
  changeSums(builder, op.getLoc(), {}, words, "// values are kept");
}

static Value sharedAddress(OpBuilder &builder, Location loc, Value pointer) {
  return LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), pointer);
}

void initBarriers(InitBarriersOp op, Value barriers, OpBuilder &builder) {
  std::string text;
  for (auto [i, arrivals] : llvm::enumerate(op.getArrivals()))
    text += fmt::format("mbarrier.init.shared::cta.b64 [$0+{}], {};\n", 8 * i, arrivals);
  assembly(builder, op.getLoc(), {}, sharedAddress(builder, op.getLoc(), barriers),
           text + "fence.mbarrier_init.release.cluster;", "r,~{memory}");
}

/// Without a scope, as CUTLASS has it: with `.release.cluster` ptxas puts a MEMBAR.ALL.GPU before each arrival, and the
/// ring of two blocks took 408 us for 186 (H100, bf16 4096^3). What arrives has only waited for products, which write
/// no memory. At other blocks' barriers threads arrive on a condition, and expect no bytes.
void arrive(ArriveOp op, Value barrier, OpBuilder &builder) {
  HLOC_CHECK(!op.getBlocks() || (op.getCondition() && !op.getBytes()), "an arrival at other blocks that is not known");
  if (op.getForWarp())
    assembly(builder, op.getLoc(), {}, {}, "bar.warp.sync 0xffffffff;", "~{memory}");
  SmallVector<Value> operands = {sharedAddress(builder, op.getLoc(), barrier)};
  std::string remote;
  for (uint64_t block = 0; block < op.getBlocks().value_or(0); ++block)
    remote += fmt::format("mapa.shared::cluster.u32 %there, $0, {};\n"
                          "@%arrives mbarrier.arrive.shared::cluster.b64 _, [%there];\n",
                          block);
  std::string arrival = op.getBytes()
                            ? fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {};", *op.getBytes())
                            : "mbarrier.arrive.shared::cta.b64 _, [$0];";
  if (!op.getCondition())
    return (void)assembly(builder, op.getLoc(), {}, operands, arrival, "r,~{memory}");
  operands.push_back(LLVM::ZExtOp::create(builder, op.getLoc(), builder.getI32Type(), op.getCondition()));
  if (!remote.empty())
    return (void)assembly(builder, op.getLoc(), {}, operands,
                          "{\n.reg .pred %arrives;\n.reg .b32 %there;\nsetp.ne.b32 %arrives, $1, 0;\n" + remote + "}",
                          "r,r,~{memory}");
  assembly(builder, op.getLoc(), {}, operands,
           "{\n.reg .pred %arrives;\nsetp.ne.b32 %arrives, $1, 0;\n@%arrives " + arrival + "\n}", "r,r,~{memory}");
}

void awaitPhase(AwaitPhaseOp op, Value barrier, OpBuilder &builder) {
  Value operands[] = {sharedAddress(builder, op.getLoc(), barrier), op.getParity()};
  assembly(builder, op.getLoc(), {}, operands,
           "{\n.reg .pred %isOver;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %isOver, [$0], $1;\n"
           "@!%isOver bra WAIT;\n}",
           "r,r,~{memory}");
}

void copyBox(CopyBoxOp op, Value map, Value dest, Value barrier, OpBuilder &builder) {
  Location loc = op.getLoc();
  SmallVector<Value> operands = {sharedAddress(builder, loc, dest),
                                 LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(), map),
                                 sharedAddress(builder, loc, barrier)};
  std::string at, constraints = "r,l,r";
  for (Value coordinate : op.getCoordinates()) {
    at += fmt::format("{}${}", at.empty() ? "" : ", ", operands.size());
    constraints += ",r";
    operands.push_back(arith::IndexCastOp::create(builder, loc, builder.getI32Type(), coordinate));
  }
  const std::string name = fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes",
                                       op.getCoordinates().size());
  const std::string places = fmt::format(" [$0], [$1, {{{}}}], [$2]", at);
  const std::string text =
      op.getBlocks()
          ? fmt::format("{{\n.reg .b16 %blocks;\nmov.b16 %blocks, {};\n{}.multicast::cluster{}, %blocks;\n}}",
                        *op.getBlocks(), name, places)
          : name + places + ";";
  assembly(builder, loc, {}, operands, text, constraints + ",~{memory}");
}

void setRegisters(SetRegistersOp op, OpBuilder &builder) {
  assembly(builder, op.getLoc(), {}, {},
           fmt::format("setmaxnreg.{}.sync.aligned.u32 {};", op.getMore() ? "inc" : "dec", op.getCount()), "~{memory}");
}

void syncCluster(Location loc, OpBuilder &builder) {
  assembly(builder, loc, {}, {}, "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;", "~{memory}");
}

/// (Barrier 0 is that of all threads, 1 that of some, those behind it are groups'.)
void syncThreads(Location loc, int64_t threads, bool each, OpBuilder &builder) {
  if (!each)
    return (void)assembly(builder, loc, {}, {}, fmt::format("bar.sync 1, {};", threads), "~{memory}");
  assembly(builder, loc, {}, {},
           fmt::format("{{\n.reg .b32 %own;\nmov.u32 %own, %tid.x;\nshr.u32 %own, %own, {};\n"
                       "add.u32 %own, %own, 2;\nbar.sync %own, {};\n}}",
                       llvm::Log2_64(uint64_t(threads)), threads),
           "~{memory}");
}

void publishTiles(Location loc, OpBuilder &builder) {
  assembly(builder, loc, {}, {}, "fence.proxy.async.shared::cta;", "~{memory}");
}

} // namespace hloc
