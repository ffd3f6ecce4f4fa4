#include "ChosenForms.h"

#include "hloc/transforms/Transforms.h"

namespace hloc {
namespace {

using Pass = PassResult (*)(HloModule &, HloPassContext &);

/// In which the choice has changed something; null after a diagnostic.
std::unique_ptr<HloModule> choose(const HloModule &module, FormChoice choice, DiagnosticEngine &diagnostics,
                                  bool &isOther) {
  std::unique_ptr<HloModule> chosen = cloneModule(module);
  HloPassContext context(diagnostics);
  context.options.fusion = choice.fusion;
  context.options.f32Dots = choice.f32Dots;
  context.options.softmax = choice.softmax;
  llvm::SmallVector<Pass> passes = {expandCustomCalls, expandProductCalls, chooseDotAlgorithms};
  if (choice.softmax != SoftmaxChoice::Strict)
    passes = {expandAsync,        foldCollectives,     inlineCalls,  expandCustomCalls,
              expandProductCalls, chooseDotAlgorithms, chooseSoftmax};
  for (Pass pass : passes) {
    const PassResult result = pass(*chosen, context);
    if (result == PassResult::Failed)
      return nullptr;
    if (pass == chooseDotAlgorithms || pass == chooseSoftmax)
      isOther |= result == PassResult::Changed;
  }
  return chosen;
}

} // namespace

std::unique_ptr<HloModule> inChosenForms(const HloModule &module, FormChoice choice, DiagnosticEngine &diagnostics) {
  bool isOther = false;
  return choose(module, choice, diagnostics, isOther);
}

std::vector<std::string> otherForms(const HloModule &module, FormChoice chosen) {
  std::vector<std::string> notes;
  auto add = [&](FormChoice choice, const char *note) {
    DiagnosticEngine ignored;
    bool isOther = false;
    if (choose(module, choice, ignored, isOther) && isOther)
      notes.push_back(note);
  };
  if (chosen.softmax == SoftmaxChoice::Strict)
    add({chosen.fusion, F32Dots::F32, SoftmaxChoice::Online},
        "`--softmax=online` admits weights of a softmax that are rounded before their division, as flash attention has "
        "them");
  if (chosen.f32Dots == F32Dots::F32)
    add({chosen.fusion, F32Dots::Tf32, SoftmaxChoice::Strict},
        "`--f32-dots=tf32` admits dots of f32 whose factors are rounded to tf32, as XLA and Triton have them by "
        "default");
  return notes;
}

} // namespace hloc
