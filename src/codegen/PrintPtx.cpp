// The NVPTX back end: target machine, names, text.

#include "LlvmStageParts.h"

#include "hloc/codegen/Ptx.h"
#include "hloc/support/Check.h"
#include "hloc/support/Names.h"

#include "fmt/format.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"

#include <map>
#include <mutex>
#include <tuple>

// Only this target's initialisers: InitializeAllTargets would link and start every back end.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace hloc {

namespace {

void initializeNvptx() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

llvm::CodeGenOptLevel codegenLevel(unsigned level) {
  return level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive;
}

/// Keeps passes of the code generator from running while it lives, by their names: LLVM's way to bisect, which is the
/// only one that a context has for itself.
class SkippedPasses : public llvm::OptPassGate {
public:
  explicit SkippedPasses(llvm::Module &module)
      : context(module.getContext()), previous(context.getOptPassGate()),
        manySums(countSums(module) > (onTensorCores(module) ? maxSumsOnTensorCores : maxSums)) {
    context.setOptPassGate(*this);
  }
  ~SkippedPasses() override { context.setOptPassGate(previous); }

  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override {
    // Finds nothing that optimize() has left, but hides sums of addresses and constants from instruction selection: of
    // 220 programs 17 had more instructions with it, none had fewer.
    if (pass == "gvn")
      return false;
    return pass != "slsr" || !manySums;
  }

private:
  /// Straight-line strength reduction compares each sum with those before it: 94 streams of threefry took 3.6 s with it
  /// and 0.7 s without, for the same PTX. Of the kernels for which it finds anything, the largest has 263 sums.
  static constexpr size_t maxSums = 300;
  /// Of tiles, addresses are already made of what stays the same in a loop, what changes, and a constant.
  static constexpr size_t maxSumsOnTensorCores = 150;
  static bool onTensorCores(const llvm::Module &module) {
    return llvm::any_of(module, [](const llvm::Function &function) {
      return function.getName().starts_with("llvm.nvvm.mma.") && !function.use_empty();
    });
  }
  static size_t countSums(const llvm::Module &module) {
    size_t count = 0;
    for (const llvm::Function &function : module)
      count += llvm::count_if(llvm::instructions(function), [](const llvm::Instruction &instruction) {
        unsigned opcode = instruction.getOpcode();
        return opcode == llvm::Instruction::Add || opcode == llvm::Instruction::Sub ||
               opcode == llvm::Instruction::Mul || opcode == llvm::Instruction::GetElementPtr;
      });
    return count;
  }

  llvm::LLVMContext &context;
  llvm::OptPassGate &previous;
  bool manySums;
};

/// Instructions that LLVM does not know are assembler text. Some need a later PTX ISA than their target does.
void raiseVersion(std::string &ptx) {
  constexpr std::pair<llvm::StringLiteral, unsigned> newer[] = {{"red.relaxed.gpu.global.add.v", 81},
                                                                {"red.relaxed.gpu.global.add.noftz.v", 81}};
  unsigned version = ptxVersionOf(ptx), wanted = version;
  for (const auto &[instruction, since] : newer)
    if (wanted < since && llvm::StringRef(ptx).contains(instruction))
      wanted = since;
  if (wanted == version)
    return;
  std::string before = fmt::format(".version {}.{}", version / 10, version % 10);
  ptx.replace(ptx.find(before), before.size(), fmt::format(".version {}.{}", wanted / 10, wanted % 10));
}

} // namespace

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const TargetInfo &target, const LlvmOptions &options,
                                                                uint32_t version, DiagnosticEngine &diagnostics) {
  initializeNvptx();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) {
    diagnostics.report(DiagnosticKind::Internal, "this LLVM cannot generate PTX: " + error);
    return nullptr;
  }
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = options.contract ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.name, fmt::format("+ptx{}", version), targetOptions, std::nullopt,
                                   std::nullopt, codegenLevel(options.optimizationLevel)));
}

llvm::TargetMachine *targetMachine(const TargetInfo &target, const LlvmOptions &options,
                                   DiagnosticEngine &diagnostics) {
  using Key = std::tuple<std::string, uint32_t, bool, unsigned>;
  thread_local std::map<Key, std::unique_ptr<llvm::TargetMachine>> machines;
  uint32_t version = options.ptxVersion ? options.ptxVersion : target.ptxVersion;
  auto &machine = machines[{target.name, version, options.contract, options.optimizationLevel}];
  if (!machine)
    machine = createTargetMachine(target, options, version, diagnostics);
  return machine.get();
}

void prefixLocalNames(llvm::Module &module, llvm::StringRef kernel) {
  auto rename = [&](llvm::GlobalValue &value) {
    if (!value.hasLocalLinkage())
      return;
    // PTX identifiers have no dots; LLVM would replace them by `_$_`.
    std::string name = identifierOf((kernel + "__" + value.getName()).str());
    std::string unique = name;
    for (unsigned i = 2; module.getNamedValue(unique) && module.getNamedValue(unique) != &value; ++i)
      unique = fmt::format("{}_{}", name, i);
    value.setName(unique);
  };
  for (llvm::GlobalVariable &variable : module.globals())
    rename(variable);
  for (llvm::Function &function : module)
    rename(function);
}

/// Where blocks are placed, what ends a loop may come before what begins it, to save a jump that ptxas would drop
/// anyway; not where size counts. In order, lanes that part in a loop are seen to meet again.
static void keepLoopsInOrder(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr(llvm::Attribute::OptimizeForSize);
}

/// The back end looks at uses in the order of their list, and which of two addresses it makes of the other depends on
/// it. Text does not have that order: here it becomes that of the text, the last first, as whoever makes code in order
/// has it.
static void orderUses(llvm::Module &module) {
  for (llvm::Function &function : module) {
    llvm::DenseMap<const llvm::User *, unsigned> numbers;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      numbers.try_emplace(&instruction, unsigned(numbers.size()));
    auto isLater = [&](const llvm::Use &a, const llvm::Use &b) {
      const auto left = std::pair(numbers.lookup(a.getUser()), a.getOperandNo());
      return left > std::pair(numbers.lookup(b.getUser()), b.getOperandNo());
    };
    for (llvm::Argument &argument : function.args())
      argument.sortUseList(isLater);
    for (llvm::BasicBlock &block : function) {
      block.sortUseList(isLater);
      for (llvm::Instruction &instruction : block)
        instruction.sortUseList(isLater);
    }
  }
}

std::string printPtx(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  SkippedPasses skipped(module);
  llvm::legacy::PassManager passes;
  keepLoopsInOrder(module);
  orderUses(module);
  bool unsupported = machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  HLOC_CHECK(!unsupported, "the NVPTX back end cannot print assembly");
  passes.run(module);
  // Left over by line directives without debug sections; means nothing.
  constexpr llvm::StringLiteral emptySection = "\t.section\t.debug_macinfo\t{\t}\n";
  std::string ptx = text.str().str();
  if (size_t at = ptx.find(emptySection.str()); at != std::string::npos)
    ptx.erase(at, emptySection.size());
  raiseVersion(ptx);
  return ptx;
}

} // namespace hloc
