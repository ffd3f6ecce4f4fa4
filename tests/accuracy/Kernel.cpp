#include "Kernel.h"

#include "driver/Compile.h"
#include "driver/Execute.h"

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

/// Emulators without approximation seeds have one result for every seed.
template <typename Options> static void setSeed(Options &options, unsigned seed) {
  if constexpr (requires { options.approximationSeed; })
    if (seed)
      options.approximationSeed = seed;
}

static std::string firstOf(const DiagnosticEngine &diagnostics) {
  return diagnostics.diagnostics().empty() ? "failed" : diagnostics.diagnostics().front().message;
}

std::unique_ptr<Kernel> Kernel::make(const Instruction &instruction, const TargetInfo &target, unsigned seed,
                                     std::string &why) {
  static const Toolchain toolchain = Toolchain::discover({});
  auto kernel = std::make_unique<Kernel>();
  kernel->instruction = instruction;
  DiagnosticEngine &diagnostics = kernel->diagnostics;
  kernel->module =
      parseHloModule(std::make_shared<const SourceFile>("accuracy.hlo", instruction.module()), diagnostics);
  CompileOptions options;
  options.targets.push_back(target);
  options.jobs = 1;
  Timing timing(false);
  Compiler compiler(options, toolchain, timing, diagnostics);
  std::optional<CompiledModule> compiled;
  if (kernel->module && verify(*kernel->module, diagnostics))
    if (std::unique_ptr<HloModule> fused = compiler.fuse(*kernel->module))
      compiled = compiler.compile(*fused, target, Stage::Ptx);
  std::optional<DeviceProgram> program;
  if (compiled)
    program = Executor(*kernel->module, timing, diagnostics).programOf(compiled->manifest);
  if (!program) {
    why = firstOf(diagnostics);
    return nullptr;
  }
  kernel->image = compiled->ptx;
  kernel->program = std::move(*program);
  emulator::EmulatorOptions emulation;
  emulation.checkBounds = emulation.checkUninit = emulation.checkRaces = emulation.checkDivergence = false;
  emulation.numThreads = 1;
  setSeed(emulation, seed);
  kernel->device = std::make_unique<EmulatorDevice>(emulation, "accuracy.ptx", diagnostics);
  bool fine = kernel->device->load(kernel->image, why);
  for (const DeviceBuffer &buffer : kernel->program.buffers)
    fine = fine && kernel->device->allocate(buffer, why);
  if (fine)
    return kernel;
  if (why.empty())
    why = firstOf(diagnostics);
  return nullptr;
}

Literal Kernel::literalOf(const Patterns &patterns, ElementType type) const {
  Literal literal(Shape::array(type, {int64_t(chunk)}));
  unsigned width = hostBytes(isComplex(type) ? componentType(type) : type);
  for (size_t i = 0; i < patterns.size(); ++i) // little endian
    std::memcpy(&literal.mutableBytes()[i * width], &patterns[i], width);
  return literal;
}

Patterns Kernel::patternsOf(const Literal &literal) const {
  ElementType type = literal.shape().elementType();
  unsigned width = hostBytes(isComplex(type) ? componentType(type) : type);
  Patterns patterns(literal.bytes().size() / width);
  for (size_t i = 0; i < patterns.size(); ++i)
    std::memcpy(&patterns[i], &literal.bytes()[i * width], width);
  return patterns;
}

bool Kernel::run(llvm::ArrayRef<Patterns> operands, Patterns &result) {
  std::string error;
  bool fine = true;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const DeviceBuffer &buffer = program.buffers[i];
    if (buffer.contents != DeviceBuffer::Contents::Input)
      continue;
    std::vector<uint8_t> bytes = toDeviceBytes(literalOf(operands[buffer.input], instruction.from));
    fine = fine && device->upload(i, bytes.data(), bytes.size(), error);
  }
  for (const auto &step : program.steps)
    fine = fine && device->issue(step, error);
  Shape shape = Shape::array(instruction.to, {int64_t(chunk)});
  std::vector<uint8_t> bytes(size_t(shape.byteSize()));
  BufferSlice slice = program.results.front();
  slice.bytes = bytes.size();
  fine = fine && device->download(slice, bytes.data(), error);
  if (fine)
    result = patternsOf(fromDeviceBytes(shape, bytes));
  else
    llvm::errs() << error << firstOf(diagnostics) << "\n";
  return fine;
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
