// Rules about the module header: entry layout, aliases, donors.
#include "VerifierParts.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace hloc {

namespace {

/// A part of an entry parameter: `(1, {0})`.
struct ParameterPart {
  int64_t number = 0;
  DimVector path;
};

/// Reads the text of input_output_alias and buffer_donor.
class AliasReader {
public:
  explicit AliasReader(llvm::StringRef text) : rest(text) {}

  bool eat(llvm::StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  bool integer(int64_t &value) {
    rest = rest.ltrim();
    return !rest.consumeInteger(10, value);
  }
  /// `{0,1}`
  bool path(DimVector &out) {
    if (!eat("{"))
      return false;
    while (!eat("}")) {
      int64_t value = 0;
      if ((!out.empty() && !eat(",")) || !integer(value))
        return false;
      out.push_back(value);
    }
    return true;
  }
  /// `(1, {0})`, `(1, {0}, may-alias)`
  bool parameterPart(ParameterPart &out) {
    if (!eat("(") || !integer(out.number))
      return false;
    if (eat(",") && !path(out.path))
      return false;
    if (eat(",") && !eat("may-alias") && !eat("must-alias"))
      return false;
    return eat(")");
  }

private:
  llvm::StringRef rest;
};

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
    AliasReader reader(text);
    std::set<std::vector<int64_t>> outputs, parameters;
    auto first = [](std::set<std::vector<int64_t>> &seen, std::vector<int64_t> key) { return seen.insert(key).second; };
    bool good = reader.eat("{");
    while (good && !reader.eat("}")) {
      DimVector output;
      ParameterPart part;
      good = reader.path(output) && reader.eat(":") && reader.parameterPart(part);
      if (!good)
        break;
      reader.eat(",");
      if (!partOf(module.entry()->root()->shape(), output) || !parameterShape(part))
        return fail(VerifierRule::module_c4, "input_output_alias: output " + show(output) + " or part " +
                                                 show(part.path) + " of parameter " + llvm::Twine(part.number) +
                                                 " does not exist");
      std::vector<int64_t> key{part.number};
      llvm::append_range(key, part.path);
      if (!first(outputs, {output.begin(), output.end()}) || !first(parameters, key))
        return fail(VerifierRule::module_c5, "input_output_alias: output " + show(output) + " or part " +
                                                 show(part.path) + " of parameter " + llvm::Twine(part.number) +
                                                 " is aliased twice");
    }
    if (!good)
      fail(VerifierRule::module_c4, "input_output_alias cannot be read: " + text);
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
