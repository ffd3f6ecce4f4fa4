#include "hloc/hlo/InputOutputAlias.h"

#include "AliasText.h"

namespace hloc {

std::optional<std::vector<InputOutputAlias>> inputOutputAliases(const HloModule &module) {
  std::vector<InputOutputAlias> aliases;
  const AttributeValue *text = module.find(AttributeKey::InputOutputAlias);
  if (!text)
    return aliases;
  AliasReader reader(std::get<llvm::StringRef>(*text));
  if (!reader.eat("{"))
    return std::nullopt;
  while (!reader.eat("}")) {
    InputOutputAlias alias;
    ParameterPart part;
    if (!reader.path(alias.output) || !reader.eat(":") || !reader.parameterPart(part))
      return std::nullopt;
    reader.eat(",");
    alias.parameter = part.number;
    alias.parameterPath = part.path;
    aliases.push_back(std::move(alias));
  }
  return aliases;
}

} // namespace hloc
