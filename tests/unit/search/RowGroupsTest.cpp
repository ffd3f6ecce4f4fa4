// Where the search for groups begins: which reductions of rows, and what becomes of the rows' elements, one kernel may
// make.

#include "search/RowGroups.h"

#include "hloc/hlo/HloComputation.h"
#include "hloc/hlo/HloModule.h"
#include "unit/parser/ParseText.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

/// "s: d n" of each group: its reductions, then its roots, by name. `isOnePass`: what the heroes answer.
std::string groupsOf(const std::string &body, bool isOnePass = true) {
  test::Parsed parsed("HloModule m\nadd { x = f32[] parameter(0) y = f32[] parameter(1) ROOT a = f32[] add(x, y) }\n"
                      "ENTRY e {\nz = f32[] constant(0)\n" +
                      body + "\n}\n");
  INFO(parsed.firstReport());
  REQUIRE(parsed.module);
  const HloComputation &entry = *parsed.module->entry();
  llvm::SmallVector<HloInstruction *> results, reductions;
  if (entry.root()->opcode() == Opcode::Tuple)
    results.append(entry.root()->operands().begin(), entry.root()->operands().end());
  else
    results.push_back(entry.root());
  for (HloInstruction *instr : entry.instructions())
    if (instr->opcode() == Opcode::Reduce)
      reductions.push_back(instr);
  const llvm::BitVector needed(unsigned(entry.instructions().size()), true);
  std::string text;
  for (const RowGroup &group :
       groupRows(entry, needed, results, reductions, [&](const RowGroup &) { return isOnePass; })) {
    text += text.empty() ? "" : "; ";
    for (const HloInstruction *reduction : group.reductions)
      text += reduction->name().str() + " ";
    text.back() = ':';
    for (const HloInstruction *root : group.roots)
      text += " " + root->name().str();
  }
  return text;
}

/// Rows over their sums.
std::string normalized(int rows, int length) {
  return fmt::format("p = f32[{0},{1}] parameter(0)  s = f32[{0}] reduce(p, z), dimensions={{1}}, to_apply=add\n"
                     "b = f32[{0},{1}] broadcast(s), dimensions={{0}}  ROOT d = f32[{0},{1}] divide(p, b)",
                     rows, length);
}

/// ... and sums of their columns beside them.
std::string withColumns(int rows, int length) {
  return fmt::format("p = f32[{0},{1}] parameter(0)  s = f32[{0}] reduce(p, z), dimensions={{1}}, to_apply=add\n"
                     "b = f32[{0},{1}] broadcast(s), dimensions={{0}}  d = f32[{0},{1}] divide(p, b)\n"
                     "c = f32[{1}] reduce(d, z), dimensions={{0}}, to_apply=add\n"
                     "ROOT r = (f32[{0},{1}], f32[{1}]) tuple(d, c)",
                     rows, length);
}

} // namespace

TEST_CASE("rows and what their elements become are a group", "[search]") {
  CHECK(groupsOf(normalized(4096, 1024)) == "s: d");
  // What nothing reads for each element saves no pass.
  CHECK(groupsOf("p = f32[4096,1024] parameter(0)  ROOT s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add") ==
        "");
}

TEST_CASE("few rows that no block holds are divided among blocks instead", "[search]") {
  CHECK(groupsOf(normalized(64, 16000)) == "s: d");
  CHECK(groupsOf(normalized(64, 20000)) == "");
  CHECK(groupsOf(normalized(100, 20000)) == "");
  CHECK(groupsOf(normalized(200, 20000)) == "s: d"); // each is worth a block
}

TEST_CASE("columns are reduced beside rows that are many and short", "[search]") {
  CHECK(groupsOf(withColumns(1000, 3000)) == "s c: d c");
  CHECK(groupsOf(withColumns(1000, 6000)) == "s: d"); // a thread has no room for sums of so many
  CHECK(groupsOf(withColumns(700, 3000)) == "s c: d c");
  CHECK(groupsOf(withColumns(300, 3000)) == "s: d"); // what blocks leave would be as much as the rows
}

TEST_CASE("columns beside rows, and columns, are groups where a hero of the target makes them in one pass",
          "[search]") {
  CHECK(groupsOf(withColumns(1000, 3000), /*isOnePass=*/false) == "s: d");
  const std::string columns =
      "p = f32[64,4096] parameter(0)  s = f32[4096] reduce(p, z), dimensions={0}, to_apply=add\n"
      "b = f32[64,4096] broadcast(s), dimensions={1}  ROOT d = f32[64,4096] subtract(p, b)";
  CHECK(groupsOf(columns) == "s: d");
  CHECK(groupsOf(columns, /*isOnePass=*/false) == "");
}

TEST_CASE("a group has two outputs as large as its rows, not more", "[search]") {
  auto outputs = [](int number) {
    std::string body = "p = f32[4096,1024] parameter(0)  s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add\n"
                       "b = f32[4096,1024] broadcast(s), dimensions={0}\n",
                names, types;
    for (int i = 0; i < number; ++i) {
      body += fmt::format("q{0} = f32[4096,1024] parameter({1})  d{0} = f32[4096,1024] divide(q{0}, b)\n", i, i + 1);
      names += fmt::format("{}d{}", i ? ", " : "", i);
      types += i ? ", f32[4096,1024]" : "f32[4096,1024]";
    }
    return groupsOf(body + "ROOT r = (" + types + ") tuple(" + names + ")");
  };
  CHECK(outputs(2) == "s: d0 d1");
  CHECK(outputs(3) == "");
}

TEST_CASE("an output of which several elements share a byte ends no group", "[search]") {
  CHECK(groupsOf("p = f32[4096,1024] parameter(0)  s = f32[4096] reduce(p, z), dimensions={1}, to_apply=add\n"
                 "b = f32[4096,1024] broadcast(s), dimensions={0}  d = f32[4096,1024] divide(p, b)\n"
                 "ROOT r = s4[4096,1024] convert(d)") == "");
}

TEST_CASE("reductions of one group wait for each other through nothing outside", "[search]") {
  // Sums of rows, and of the rows of what becomes of them, transposed: it has to be complete before.
  CHECK(groupsOf("p = f32[1024,1024] parameter(0)  s = f32[1024] reduce(p, z), dimensions={1}, to_apply=add\n"
                 "b = f32[1024,1024] broadcast(s), dimensions={0}  d = f32[1024,1024] divide(p, b)\n"
                 "x = f32[1024,1024] transpose(d), dimensions={1,0}\n"
                 "t = f32[1024] reduce(x, z), dimensions={1}, to_apply=add\n"
                 "c = f32[1024,1024] broadcast(t), dimensions={0}  ROOT r = f32[1024,1024] divide(x, c)") == "");
}
