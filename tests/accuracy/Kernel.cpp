#include "Kernel.h"

#include "run/Execute.h"
#include "unit/SystemToolchain.h"

#include "hloc/hlo/Verifier.h"
#include "hloc/interp/Interpreter.h"
#include "hloc/parser/Parser.h"

#include "fmt/format.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

namespace hloc::accuracy {

std::string Instruction::module() const {
  std::string operands, parameters;
  for (unsigned i = 0; i < arity; ++i) {
    parameters += fmt::format("  p{0} = {1}[{2}]{{0}} parameter({0})\n", i, text(from).str(), chunk);
    operands += fmt::format("{}p{}", i ? ", " : "", i);
  }
  std::string attributes;
  if (opcode == Opcode::ReducePrecision)
    attributes = fmt::format(", exponent_bits={}, mantissa_bits={}", exponentBits, mantissaBits);
  return fmt::format("HloModule m\nENTRY e {{\n{}  ROOT r = {}[{}]{{0}} {}({}){}\n}}\n", parameters, text(to).str(),
                     chunk, text(opcode).str(), operands, attributes);
}

static std::string firstOf(const DiagnosticEngine &diagnostics) {
  return diagnostics.diagnostics().empty() ? "failed" : diagnostics.diagnostics().front().message;
}

std::unique_ptr<Kernel> Kernel::make(const Instruction &instruction, const TargetInfo &target, std::string &why) {
  auto kernel = std::make_unique<Kernel>();
  kernel->instruction = instruction;
  DiagnosticEngine &diagnostics = kernel->diagnostics;
  kernel->module =
      parseHloModule(std::make_shared<const SourceFile>("accuracy.hlo", instruction.module()), diagnostics);
  CompilerOptions options;
  options.jobs = 1;
  CompileObserver nobody;
  Compiler compiler(options, test::systemToolchain(), nobody, diagnostics);
  std::optional<CompiledModule> compiled;
  if (kernel->module && verify(*kernel->module, diagnostics))
    compiled = compiler.compileModule(*kernel->module, target);
  std::optional<DeviceProgram> program;
  if (compiled)
    program = Executor(*kernel->module, nobody, diagnostics).programOf(compiled->manifest);
  if (!program) {
    why = firstOf(diagnostics);
    return nullptr;
  }
  kernel->image = compiled->ptx;
  kernel->program = std::move(*program);
  return kernel;
}

bool Kernel::addMachine(std::optional<uint64_t> approximationSeed, std::string &why) {
  emulator::EmulatorOptions options;
  options.checkBounds = options.checkUninit = options.checkRaces = options.checkDivergence = false;
  options.numThreads = 1;
  options.approximationSeed = approximationSeed;
  machines.push_back(std::make_unique<EmulatorDevice>(options, "accuracy.ptx", diagnostics));
  EmulatorDevice &device = *machines.back();
  bool fine = device.load(image, why);
  for (const DeviceBuffer &buffer : program.buffers)
    fine = fine && device.allocate(buffer, why);
  if (!fine && why.empty())
    why = firstOf(diagnostics);
  return fine;
}

Literal Kernel::literalOf(const Patterns &patterns, ElementType type) const {
  Literal literal(Shape::array(type, {int64_t(chunk)}));
  unsigned width = hostBytes(isComplex(type) ? componentType(type) : type);
  unsigned unused = isSigned(type) ? 64 - bitWidth(type) : 0; // narrow ones are kept sign-extended
  for (size_t i = 0; i < patterns.size(); ++i) {
    auto pattern = int64_t(patterns[i] << unused) >> unused;
    std::memcpy(&literal.mutableBytes()[i * width], &pattern, width); // little endian
  }
  return literal;
}

Patterns Kernel::patternsOf(const Literal &literal) const {
  ElementType type = literal.shape().elementType();
  unsigned width = hostBytes(isComplex(type) ? componentType(type) : type);
  uint64_t mask = isInteger(type) && bitWidth(type) < 64 ? (uint64_t(1) << bitWidth(type)) - 1 : ~uint64_t(0);
  Patterns patterns(literal.bytes().size() / width);
  for (size_t i = 0; i < patterns.size(); ++i) {
    std::memcpy(&patterns[i], &literal.bytes()[i * width], width);
    patterns[i] &= mask;
  }
  return patterns;
}

bool Kernel::run(size_t machine, llvm::ArrayRef<Patterns> operands, Patterns &result) {
  EmulatorDevice &device = *machines[machine];
  std::string error;
  bool fine = true;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const DeviceBuffer &buffer = program.buffers[i];
    if (buffer.contents != DeviceBuffer::Contents::Input)
      continue;
    std::vector<uint8_t> bytes = toDeviceBytes(literalOf(operands[buffer.input], instruction.from));
    fine = fine && device.upload(i, bytes.data(), bytes.size(), error);
  }
  fine = fine && issueSteps(device, program, program.steps, error);
  Shape shape = Shape::array(instruction.to, {int64_t(chunk)});
  std::vector<uint8_t> bytes(size_t(shape.byteSize()));
  BufferSlice slice = program.results.front();
  slice.bytes = bytes.size();
  fine = fine && device.download(slice, bytes.data(), error);
  if (fine)
    result = patternsOf(fromDeviceBytes(shape, bytes));
  else
    llvm::errs() << error << firstOf(diagnostics) << "\n";
  return fine;
}

bool Kernel::run(size_t machine, llvm::ArrayRef<float> operand, llvm::MutableArrayRef<float> result) {
  EmulatorDevice &device = *machines[machine];
  std::string error;
  bool fine = true;
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].contents == DeviceBuffer::Contents::Input)
      fine = fine && device.upload(i, operand.data(), operand.size() * sizeof(float), error);
  fine = fine && issueSteps(device, program, program.steps, error);
  BufferSlice slice = program.results.front();
  slice.bytes = result.size() * sizeof(float);
  fine = fine && device.download(slice, result.data(), error);
  if (!fine)
    llvm::errs() << error << firstOf(diagnostics) << "\n";
  return fine;
}

bool Kernel::interpret(llvm::ArrayRef<float> operand, llvm::MutableArrayRef<float> result) {
  Literal argument(Shape::array(ElementType::F32, {int64_t(operand.size())}));
  std::memcpy(argument.mutableBytes().data(), operand.data(), operand.size() * sizeof(float));
  std::vector<Literal> arguments;
  arguments.push_back(std::move(argument));
  llvm::FailureOr<Literal> value = hloc::interpret(*module, arguments, diagnostics);
  if (failed(value)) {
    llvm::errs() << firstOf(diagnostics) << "\n";
    return false;
  }
  std::memcpy(result.data(), value->bytes().data(), result.size() * sizeof(float));
  return true;
}

bool Kernel::interpret(llvm::ArrayRef<Patterns> operands, Patterns &result) {
  std::vector<Literal> arguments;
  for (const Patterns &operand : operands)
    arguments.push_back(literalOf(operand, instruction.from));
  llvm::FailureOr<Literal> value = hloc::interpret(*module, arguments, diagnostics);
  if (failed(value)) {
    llvm::errs() << firstOf(diagnostics) << "\n";
    return false;
  }
  result = patternsOf(*value);
  return true;
}

} // namespace hloc::accuracy
