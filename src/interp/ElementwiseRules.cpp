#include "interp/ElementwiseRules.h"

#include "hloc/hlo/OpcodeTable.h"

namespace hloc::interp {

const ElementwiseRule &elementwiseRule(Opcode opcode) {
  static constexpr OpcodeTable<ElementwiseRule> rules(isElementwise, {
#define HLOC_ELEMENTWISE_RULE(name, integers, reals, products, ties, nan)                                              \
  {{Opcode::name}, {IntegerRule::integers, ProductRule::products, TieRule::ties, NanRule::nan}},
#include "interp/ElementwiseRules.def"
                                                                     });
  return rules[opcode];
}

} // namespace hloc::interp
