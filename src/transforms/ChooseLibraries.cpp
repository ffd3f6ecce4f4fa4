// Dots and convolutions that a library multiplies -> calls of it. A call is a step between kernels, as XLA has it: what
// is around it is fused without it, and what it reads and writes is in memory.
//
//   d = bf16[m,n] dot(x, y)  ->  d = bf16[m,n] custom-call(x, y), custom_call_target="__cublas$lt$matmul", ...
//
// Where whichever is faster is wanted, both sides are what the cost model says: the kernel with all that is fused with
// it, and the library with kernels for what then is not.

#include "hloc/fusion/LibraryForm.h"
#include "hloc/hlo/ControlFlow.h"
#include "hloc/hlo/ConvolutionCall.h"
#include "hloc/hlo/GemmCall.h"
#include "hloc/hlo/HloBuilder.h"
#include "hloc/hlo/HloEditor.h"
#include "hloc/hlo/LibraryMark.h"
#include "hloc/search/FusionPolicy.h"
#include "hloc/transforms/Transforms.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace hloc {

namespace {

class LibraryChooser {
public:
  LibraryChooser(HloComputation &computation, HloPassContext &context, bool fuses)
      : computation(computation), context(context), fuses(fuses) {}

  size_t run() {
    std::vector<HloInstruction *> chosen;
    llvm::copy_if(computation.instructions(), std::back_inserter(chosen),
                  [&](HloInstruction *instr) { return isChosen(*instr); });
    if (chosen.empty())
      return 0;
    HloEditor editor(computation);
    for (HloInstruction *instr : chosen)
      replace(editor, instr);
    return chosen.size();
  }

private:
  bool isChosen(const HloInstruction &instr) {
    const bool isDot = instr.opcode() == Opcode::Dot;
    const Multiplier wanted = isDot                                   ? context.options.dots
                              : instr.opcode() == Opcode::Convolution ? context.options.convolutions
                                                                      : Multiplier::Own;
    if (wanted == Multiplier::Own)
      return false;
    const char *library = isDot ? "cuBLASLt" : "cuDNN";
    std::string why;
    std::optional<LibraryCost> cost = costOf(instr, why);
    if (!cost)
      remark(instr, fmt::format("`{}` is multiplied by a kernel, not by {}: {}", instr.name().str(), library, why));
    return cost && (wanted == Multiplier::Library || isFaster(instr, cost->seconds, library));
  }

  /// By the library; nothing, with the reason, if it has none of it.
  std::optional<LibraryCost> costOf(const HloInstruction &instr, std::string &why) const {
    const DeviceModel &device = deviceOf(context.target);
    llvm::SmallVector<unsigned> reads;
    if (instr.opcode() == Opcode::Dot) {
      std::optional<MatmulCall> matmul = matmulOf(instr, context.target, reads, why);
      return matmul ? std::optional(libraryCost(*matmul, device)) : std::nullopt;
    }
    std::optional<LibraryConvolution> convolution = convolutionOf(instr, context.target, reads, why);
    return convolution ? std::optional(libraryCost(*convolution, device)) : std::nullopt;
  }

  bool isFaster(const HloInstruction &instr, double library, const char *name) {
    if (!costs)
      costs = costsOfContractions(computation, context.target, fuses);
    const auto found = llvm::find_if(*costs, [&](const ContractionCost &cost) { return cost.instr == &instr; });
    if (found == costs->end()) // nothing needs it
      return false;
    if (!found->isAlone) {
      remark(instr, fmt::format("`{}` is multiplied by a kernel, not by {}: the kernel makes more than it, which would "
                                "be made apart",
                                instr.name().str(), name));
      return false;
    }
    const double all = library + found->around;
    const bool isFaster = all < found->own;
    std::string beside =
        found->around > 0 ? fmt::format(", {:.2f} us of it for what the kernel has beside", found->around * 1e6) : "";
    remark(instr,
           fmt::format("`{}` is multiplied by {}: {:.2f} us by a kernel, {:.2f} us by {}{} on {} by the cost model",
                       instr.name().str(), isFaster ? name : "a kernel", found->own * 1e6, all * 1e6, name, beside,
                       deviceOf(context.target).name.str()));
    return isFaster;
  }

  void explain(const HloInstruction &instr) {
    std::string why;
    const LibraryCost cost = *costOf(instr, why);
    const llvm::StringRef function =
        instr.opcode() == Opcode::Dot ? llvm::StringRef(MatmulCall::function) : LibraryConvolution().function();
    context.explanation->kernels.push_back(
        {instr.name().str(), function, cost.seconds, cost.bytes, /*isLibrary=*/true});
  }

  void remark(const HloInstruction &instr, const std::string &message) {
    if (context.remark)
      context.remark(DiagnosticKind::LibraryCall, instr, message);
  }

  void replace(HloEditor &editor, HloInstruction *instr) {
    if (context.explanation)
      explain(*instr);
    HloBuilder b(editor, instr);
    b.setRange(instr->range());
    HloInstruction *call = instr->opcode() == Opcode::Dot ? product(editor, b, *instr) : convolution(editor, b, *instr);
    editor.replaceAllUses(instr, call);
    editor.eraseIfDead(instr);
  }

  static void keepMetadata(const HloInstruction &instr, llvm::SmallVectorImpl<Attribute> &attributes) {
    if (const AttributeValue *metadata = instr.find(AttributeKey::Metadata))
      attributes.push_back({AttributeKey::Metadata, *metadata});
  }

  HloInstruction *product(HloEditor &editor, HloBuilder &b, const HloInstruction &dot) {
    HloArena &arena = editor.module().arena();
    llvm::SmallVector<Attribute> attributes = {
        {AttributeKey::CustomCallTarget, llvm::StringRef("__cublas$lt$matmul")},
        {AttributeKey::BackendConfig, arena.save(gemmConfiguration(*gemmOfDot(dot)))},
        libraryMarkAttribute()};
    keepMetadata(dot, attributes);
    return b.add(Opcode::CustomCall, dot.shape(), dot.operands(), attributes, dot.name());
  }

  /// The call returns memory of its own use beside the result: none here.
  HloInstruction *convolution(HloEditor &editor, HloBuilder &b, const HloInstruction &instr) {
    const bool isTf32 = instr.enumOr(AttributeKey::Algorithm, DotAlgorithm::Unset) == DotAlgorithm::TF32TF32F32;
    llvm::SmallVector<Attribute> attributes = {{AttributeKey::CustomCallTarget, llvm::StringRef("__cudnn$convForward")},
                                               {AttributeKey::BackendConfig, plainConvolutionConfiguration()},
                                               isTf32 ? tf32LibraryMarkAttribute() : libraryMarkAttribute()};
    attributes.push_back({AttributeKey::Window, static_cast<const Window *>(editor.module().arena().saveObject(
                                                    instr.windowOr(instr.shape().rank() - 2)))});
    for (AttributeKey key : {AttributeKey::DimLabels, AttributeKey::FeatureGroupCount, AttributeKey::OperandPrecision})
      if (const AttributeValue *value = instr.find(key))
        attributes.push_back({key, *value});
    keepMetadata(instr, attributes);
    HloInstruction *call = b.add(Opcode::CustomCall, Shape::tuple({instr.shape(), Shape::array(ElementType::U8, {0})}),
                                 instr.operands(), attributes, instr.name());
    return b.tupleElement(call, 0);
  }

  HloComputation &computation;
  HloPassContext &context;
  const bool fuses;
  std::optional<std::vector<ContractionCost>> costs;
};

} // namespace

PassResult chooseLibraries(HloModule &module, HloPassContext &context) {
  if (context.options.dots == Multiplier::Own && context.options.convolutions == Multiplier::Own)
    return PassResult::Unchanged;
  const bool hasFusions =
      llvm::any_of(module.entry()->instructions(), [](auto *instr) { return instr->opcode() == Opcode::Fusion; });
  const bool fuses = !hasFusions && context.options.fusion != FusionMode::None;
  size_t chosen = 0;
  for (HloComputation *computation : controlComputations(module))
    chosen += LibraryChooser(*computation, context, fuses).run();
  context.statistics.add("choose-libraries.calls", chosen);
  return changedIf(chosen > 0);
}

} // namespace hloc
