// Bounds are as wide as kernels err: of each function the error has to have been measured.

#include "interp/Accuracy.h"
#include "hloc/hlo/Opcode.h"

#include <catch2/catch.hpp>

#include <set>

using namespace hloc;

namespace {

const std::set<std::pair<Opcode, ElementType>> &measured() {
  static const std::set<std::pair<Opcode, ElementType>> all = {
#define HLOC_ACCURACY(opcode, type, ulps) {Opcode::opcode, ElementType::type},
#include "interp/Accuracy.def"
  };
  return all;
}

} // namespace

TEST_CASE("of each elementwise op that rounds real numbers it is known how exactly") {
  for (unsigned i = 0; i < numOpcodes(); ++i)
    if (const auto opcode = Opcode(i); isDefinedOn(opcode, TypeSet::Float) && interp::rounds(opcode))
      for (ElementType type : {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16}) {
        INFO(text(opcode).str() << " of " << text(type).str());
        CHECK(measured().count({opcode, type}) == 1);
      }
}
