#include "ChainJson.h"

namespace hloc {

using llvm::json::OStream;

static void text(OStream &json, llvm::StringRef key, llvm::StringRef value) {
  json.attribute(key, llvm::json::fixUTF8(value));
}

template <typename Number> static void numbers(OStream &json, llvm::StringRef key, const std::vector<Number> &values) {
  json.attributeArray(key, [&] {
    for (Number value : values)
      json.value(int64_t(value));
  });
}

void writeChain(OStream &json, const ValueChain &chain) {
  text(json, "step", chain.step);
  numbers(json, "leaf", chain.leaf);
  numbers(json, "index", chain.index);
  text(json, "expected", chain.expected);
  text(json, "actual", chain.actual);
  text(json, "admissible", chain.admissible);
  text(json, "missing", chain.missing);
  json.attributeArray("values", [&] {
    for (const ChainValue &value : chain.values)
      json.object([&] {
        text(json, "name", value.name);
        text(json, "opcode", value.opcode);
        text(json, "type", value.type);
        numbers(json, "index", value.index);
        text(json, "value", value.value);
        json.attribute("line", value.line);
        numbers(json, "operands", value.operands);
        json.attribute("numTerms", value.numTerms);
        json.attributeArray("terms", [&] {
          for (const std::string &term : value.terms)
            json.value(llvm::json::fixUTF8(term));
        });
        text(json, "end", value.end);
      });
  });
}

} // namespace hloc
