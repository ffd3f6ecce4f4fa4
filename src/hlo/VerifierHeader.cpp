// Rules about the module header: entry layout, aliases, donors.
#include "AliasText.h"
#include "VerifierParts.h"

#include "hloc/hlo/InputOutputAlias.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace hloc {

namespace {

class HeaderVerifier {
public:
  HeaderVerifier(const HloModule &module, VerifierReporter &reporter) : module(module), reporter(reporter) {}

  void run() {
    checkEntryLayout();
    if (const AttributeValue *aliases = module.find(AttributeKey::InputOutputAlias))
      checkAliases(std::get<llvm::StringRef>(*aliases));
    if (const AttributeValue *donors = module.find(AttributeKey::BufferDonor))
      checkDonors(std::get<llvm::StringRef>(*donors));
  }

private:
  // module_c3
  void checkEntryLayout() {
    const AttributeValue *value = module.find(AttributeKey::EntryComputationLayout);
    if (!value)
      return;
    auto shapes = std::get<llvm::ArrayRef<Shape>>(*value);
    const HloComputation &entry = *module.entry();
    if (shapes.empty() || shapes.size() - 1 != entry.numParameters())
      return reporter.report(VerifierRule::module_c3, entry.range(),
                             "entry_computation_layout has " + llvm::Twine(shapes.size()) +
                                 " shapes, the last for the result, but the entry has " +
                                 llvm::Twine(entry.numParameters()) + " parameters");
    for (unsigned i = 0; i + 1 < shapes.size(); ++i)
      checkLayoutOf(*entry.parameters()[i], shapes[i]);
    checkLayoutOf(*entry.root(), shapes.back());
  }

  void checkLayoutOf(const HloInstruction &instr, const Shape &shape) {
    if (!shape.compatible(instr.shape()))
      reporter.report(VerifierRule::module_c3, instr.range(),
                      "entry_computation_layout has " + show(shape) + " for " + describe(instr));
  }

  const Shape *parameterShape(const ParameterPart &part) {
    const HloComputation &entry = *module.entry();
    if (part.number < 0 || part.number >= entry.numParameters())
      return nullptr;
    return partOf(entry.parameters()[part.number]->shape(), part.path);
  }

  void fail(VerifierRule rule, const llvm::Twine &message) { reporter.report(rule, SourceRange(), message); }

  // module_c4, module_c5
  void checkAliases(llvm::StringRef text) {
    std::optional<std::vector<InputOutputAlias>> aliases = inputOutputAliases(module);
    if (!aliases)
      return fail(VerifierRule::module_c4, "input_output_alias cannot be read: " + text);
    std::set<std::vector<int64_t>> outputs, parameters;
    for (const InputOutputAlias &alias : *aliases) {
      const ParameterPart part{alias.parameter, alias.parameterPath};
      if (!partOf(module.entry()->root()->shape(), alias.output) || !parameterShape(part))
        return fail(VerifierRule::module_c4, "input_output_alias: output " + show(alias.output) + " or part " +
                                                 show(part.path) + " of parameter " + llvm::Twine(part.number) +
                                                 " does not exist");
      std::vector<int64_t> key{part.number};
      llvm::append_range(key, part.path);
      if (!outputs.insert({alias.output.begin(), alias.output.end()}).second || !parameters.insert(key).second)
        return fail(VerifierRule::module_c5, "input_output_alias: output " + show(alias.output) + " or part " +
                                                 show(part.path) + " of parameter " + llvm::Twine(part.number) +
                                                 " is aliased twice");
    }
  }

  // module_c4
  void checkDonors(llvm::StringRef text) {
    AliasReader reader(text);
    bool good = reader.eat("{");
    while (good && !reader.eat("}")) {
      ParameterPart part;
      good = reader.parameterPart(part);
      reader.eat(",");
      if (good && !parameterShape(part))
        return fail(VerifierRule::module_c4, "buffer_donor: part " + show(part.path) + " of parameter " +
                                                 llvm::Twine(part.number) + " does not exist");
    }
    if (!good)
      fail(VerifierRule::module_c4, "buffer_donor cannot be read: " + text);
  }

  const HloModule &module;
  VerifierReporter &reporter;
};

} // namespace

void verifyHeader(const HloModule &module, VerifierReporter &reporter) { HeaderVerifier(module, reporter).run(); }

} // namespace hloc
