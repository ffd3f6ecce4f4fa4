#pragma once
// What one layer asks of opcodes, as a table. An opcode that is asked about and has no row does not compile; clang's
// note names it: "in call to 'opcodeHasNoRow(&"erf"[0])'".
//
//   double cost(Opcode opcode) {
//     using enum Opcode;
//     static constexpr OpcodeTable<double> costs(isElementwise, {
//         {{Add, Subtract}, 1},
//         {{Divide}, 9},
//     });
//     return costs[opcode];
//   }

#include "hloc/hlo/Opcode.h"
#include "hloc/support/Check.h"

#include <array>
#include <initializer_list>

namespace hloc {

namespace detail {

void stopCompiling(); // not constexpr: whose call ends the evaluation of a table
constexpr void stopAt(const char *opcode) {
  if (opcode)
    stopCompiling();
}
constexpr void opcodeHasNoRow(const char *opcode) { stopAt(opcode); }
constexpr void opcodeHasTwoRows(const char *opcode) { stopAt(opcode); }
constexpr void opcodeIsNotAskedAbout(const char *opcode) { stopAt(opcode); }

} // namespace detail

/// One value for each opcode of which `isAsked` holds, and for no other. A `constexpr` variable.
template <typename Value> class OpcodeTable {
public:
  /// Opcodes that have the same value.
  struct Row {
    std::initializer_list<Opcode> opcodes;
    Value value;
  };

  consteval OpcodeTable(bool (*isAsked)(Opcode), std::initializer_list<Row> rows) {
    for (const Row &row : rows)
      for (Opcode opcode : row.opcodes) {
        if (has[at(opcode)])
          detail::opcodeHasTwoRows(facts(opcode).text.data());
        if (!isAsked(opcode))
          detail::opcodeIsNotAskedAbout(facts(opcode).text.data());
        has[at(opcode)] = true;
        values[at(opcode)] = row.value;
      }
    for (unsigned i = 0; i < numOpcodes(); ++i)
      if (isAsked(Opcode(i)) && !has[i])
        detail::opcodeHasNoRow(opcodeFacts[i].text.data());
  }

  /// Is it one of those that are asked about?
  constexpr bool contains(Opcode opcode) const { return has[at(opcode)]; }
  /// Of such an opcode.
  constexpr const Value &operator[](Opcode opcode) const {
    HLOC_CHECK(contains(opcode), "an opcode that the table is not about");
    return values[at(opcode)];
  }

private:
  static constexpr size_t at(Opcode opcode) { return static_cast<size_t>(opcode); }

  std::array<Value, numOpcodes()> values{};
  std::array<bool, numOpcodes()> has{};
};

} // namespace hloc
