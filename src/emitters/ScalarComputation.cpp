#include "emitters/ScalarComputation.h"

#include "emitters/Convert.h"
#include "emitters/ElementStorage.h"
#include "emitters/Elementwise.h"
#include "emitters/FunctionEmitter.h"
#include "emitters/Unsupported.h"
#include "hloc/support/Names.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hloc {
namespace {

using Values = SmallVector<Value, 1>;

class Emitter {
public:
  Emitter(CodeBuilder &b, DiagnosticEngine &diagnostics) : b(b), diagnostics(diagnostics) {}

  llvm::FailureOr<Values> run(const HloComputation &computation, ValueRange arguments) {
    llvm::DenseMap<const HloInstruction *, Values> results;
    for (const HloInstruction *instr : computation.instructions()) {
      Values operands;
      for (const HloInstruction *operand : instr->operands())
        llvm::append_range(operands, results[operand]);
      if (instr->shape().isArray() && instr->shape().rank() != 0)
        return unsupportedFeature(*instr, "an array in a computation that is applied to scalars", diagnostics);
      b.setLoc(locationOf(*instr, b.getContext()));
      llvm::FailureOr<Values> values = instr->opcode() == Opcode::Parameter
                                           ? Values{arguments[instr->parameterNumber()]}
                                           : evaluate(*instr, operands);
      if (failed(values))
        return failure();
      results[instr] = std::move(*values);
    }
    return results[computation.root()];
  }

private:
  /// Operands that are tuples are lists of their leaves.
  llvm::FailureOr<Values> evaluate(const HloInstruction &instr, ArrayRef<Value> operands) {
    switch (instr.opcode()) {
    case Opcode::Tuple:
      return Values(operands);
    case Opcode::GetTupleElement: {
      size_t start = 0, index = size_t(instr.intOr(AttributeKey::Index, 0));
      for (size_t i = 0; i < index; ++i)
        start += instr.operand(0)->shape().element(unsigned(i)).leaves().size();
      return Values(operands.slice(start, instr.shape().leaves().size()));
    }
    case Opcode::Call:
    case Opcode::Map:
      return run(*instr.computation(AttributeKey::ToApply), operands);
    case Opcode::Constant:
      return one(emitConstantElement(instr, {}, b, diagnostics));
    case Opcode::Bitcast:
      return bitcast(instr, operands.front());
    default:
      if (!readsOperandsInPlace(instr))
        return unsupportedOpcode(instr, diagnostics);
      return one(emitElementwise(ElementwiseOp{instr, operands, b, diagnostics}));
    }
  }

  /// The same bits.
  llvm::FailureOr<Values> bitcast(const HloInstruction &instr, Value value) {
    ElementType from = instr.operand(0)->shape().elementType(), to = instr.shape().elementType();
    if (from == to)
      return Values{value};
    if (isComplex(from) || isComplex(to) || deviceBits(from) != deviceBits(to))
      return unsupportedOpcode(instr, diagnostics);
    return Values{fromStorage(b, b.bitcast(toStorage(b, value, from), storageType(to, b.getContext())), to)};
  }

  static llvm::FailureOr<Values> one(llvm::FailureOr<Value> value) {
    if (failed(value))
      return failure();
    return Values{*value};
  }

  CodeBuilder &b;
  DiagnosticEngine &diagnostics;
};

/// Element types of the leaves of all shapes, in order.
SmallVector<ElementType> leafTypes(ArrayRef<const HloInstruction *> instrs) {
  SmallVector<ElementType> types;
  for (const HloInstruction *instr : instrs)
    for (const Shape::Leaf &leaf : instr->shape().leaves())
      types.push_back(leaf.shape.elementType());
  return types;
}

} // namespace

llvm::FailureOr<Values> emitScalarComputation(const HloComputation &computation, ValueRange arguments, CodeBuilder &b,
                                              DiagnosticEngine &diagnostics) {
  return Emitter(b, diagnostics).run(computation, arguments);
}

llvm::FailureOr<func::FuncOp> emitScalarFunction(const HloComputation &computation, ModuleOp module,
                                                 DiagnosticEngine &diagnostics) {
  MLIRContext *context = module.getContext();
  SmallVector<const HloInstruction *> parameters;
  for (unsigned i = 0; i < computation.numParameters(); ++i)
    parameters.push_back(computation.parameter(i));
  SmallVector<ElementType> from = leafTypes(parameters), to = leafTypes(computation.root());
  auto stored = [&](ElementType type) { return storageType(type, context); };
  auto type = FunctionType::get(context, llvm::map_to_vector(from, stored), llvm::map_to_vector(to, stored));

  CodeBuilder b(locationOf(*computation.root(), context), context);
  auto function = func::FuncOp::create(b, identifierOf(computation.name()), type);
  function.setPrivate();
  SymbolTable(module).insert(function);
  b.setInsertionPointToEnd(function.addEntryBlock());
  SmallVector<Value> arguments;
  for (auto [argument, element] : llvm::zip_equal(function.getArguments(), from))
    arguments.push_back(fromStorage(b, argument, element));
  llvm::FailureOr<Values> results = emitScalarComputation(computation, arguments, b, diagnostics);
  if (failed(results)) {
    function.erase();
    return failure();
  }
  b.setLoc(locationOf(*computation.root(), context));
  for (auto [result, element] : llvm::zip_equal(*results, to))
    result = toStorage(b, result, element);
  func::ReturnOp::create(b, *results);
  return function;
}

} // namespace hloc
