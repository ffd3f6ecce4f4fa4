// Texts come back from the table line by line, and nothing of the program gets into the page but as data.

#include "report/LineTable.h"

#include "hloc/report/Report.h"

#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

std::vector<ShownLine> linesOf(std::vector<std::string> texts) {
  std::vector<ShownLine> lines;
  for (std::string &text : texts)
    lines.emplace_back().text = std::move(text);
  return lines;
}

llvm::json::Object written(const LineTable &table) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] { table.write(json); });
  return std::move(*llvm::cantFail(llvm::json::parse(text)).getAsObject());
}

/// As the page does it (src/report/page/1-data.js).
std::vector<std::string> readBack(const llvm::json::Object &table) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < table.getArray("of")->size(); ++i) {
    auto number = [&](const char *column) { return size_t(*(*table.getArray(column))[i].getAsInteger()); };
    const std::string other = number("of") ? lines[i - number("of")] : "";
    lines.push_back(other.substr(0, number("first")) + (*table.getArray("rest"))[i].getAsString()->str() +
                    other.substr(other.size() - number("last")));
  }
  return lines;
}

std::string reportOf(const std::string &text, DiagnosticEngine &diagnostics, const RunReport *run = nullptr) {
  const TargetInfo target = *findTarget("sm_90");
  ReportRequest request;
  request.file = std::make_shared<const SourceFile>("</script>.hlo", text);
  request.target = target;
  request.device = deviceOf(target);
  request.run = run;
  return reportPage(request, Toolchain::discover({}), diagnostics);
}

/// The data of a block.
llvm::json::Object block(llvm::StringRef page, llvm::StringRef id) {
  llvm::StringRef text = page.split(("id=\"" + id + "\">").str()).second.split('<').first;
  REQUIRE(!text.empty());
  std::vector<char> packed;
  llvm::cantFail(llvm::decodeBase64(text, packed));
  llvm::SmallVector<uint8_t> bytes;
  constexpr size_t most = 1 << 20;
  llvm::cantFail(llvm::compression::zlib::decompress(
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(packed.data()), packed.size()), bytes, most));
  return std::move(*llvm::cantFail(llvm::json::parse(llvm::toStringRef(bytes))).getAsObject());
}

} // namespace

TEST_CASE("lines are told by their like and come back") {
  LineTable table;
  const std::vector<std::string> before = {"  %x_1 = arith.mulf %a, %b : f32", "  %x_2 = arith.addf %x_1, %b : f32", "",
                                           "}"};
  const std::vector<std::string> after = {"  %x_7 = arith.mulf %a, %b : f32",
                                          "",
                                          "  %x_8 = arith.addf %x_7, %b : f32",
                                          "  caf\xc3\xa9 = arith.mulf %a, %b : f32",
                                          "}",
                                          "aaaa",
                                          "aaaaaaaaaaaa"};
  const std::vector<uint32_t> first = table.numbersOf(linesOf(before)), second = table.numbersOf(linesOf(after));
  const llvm::json::Object json = written(table);
  const std::vector<std::string> lines = readBack(json);
  for (auto &[numbers, texts] : {std::pair(first, before), std::pair(second, after)}) {
    REQUIRE(numbers.size() == texts.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      CHECK(lines[numbers[i]] == texts[i]);
  }
  CHECK(first[2] == second[1]);
  CHECK(first[3] == second[4]);
  // `%x_7` is told by `%x_1`; what is not ASCII by nothing, since readers count it in other units.
  CHECK((*json.getArray("rest"))[second[0]].getAsString() == llvm::StringRef("7"));
  CHECK((*json.getArray("of"))[second[3]].getAsInteger() == 0);
}

TEST_CASE("lines of one text that were made for different lines are different") {
  LineTable table;
  ShownLine one, other;
  one.text = other.text = "ret";
  one.hloLines = {3};
  other.hloLines = {3, 4};
  const std::vector<uint32_t> numbers = table.numbersOf({one, other, one});
  CHECK(numbers == std::vector<uint32_t>{0, 1, 0});
  const llvm::json::Object json = written(table);
  CHECK((*json.getArray("places"))[1].getAsArray()->size() == 2);
}

TEST_CASE("a report has the module's data and those of each kernel") {
  DiagnosticEngine diagnostics;
  const std::string page =
      reportOf("HloModule m\nENTRY e {\n  a = f32[64] parameter(0)\n  ROOT b = f32[64] negate(a)\n}\n", diagnostics);
  CHECK(!diagnostics.hasErrors());
  const llvm::json::Object module = block(page, "module"), kernel = block(page, "kernel-0");
  CHECK(module.getObject("manifest")->getArray("kernels")->size() == 1);
  CHECK(module.getObject("estimates")->size() == 1);
  CHECK(kernel.getArray("stages")->size() > 20);
  const std::vector<std::string> lines = readBack(kernel);
  const size_t negate = size_t(
      llvm::find_if(lines, [](llvm::StringRef line) { return line.contains("neg.f32") || line.contains("xor"); }) -
      lines.begin());
  REQUIRE(negate < lines.size());
  const int64_t place = *(*kernel.getArray("place"))[negate].getAsInteger();
  CHECK(*(*(*kernel.getArray("places"))[size_t(place)].getAsArray())[0].getAsInteger() == 4);
}

TEST_CASE("nothing of a program is HTML, whatever it is called") {
  DiagnosticEngine diagnostics;
  const std::string evil = "<script>alert(1)</script>";
  const std::string page = reportOf(
      "HloModule m\nENTRY e {\n  a = f32[64] parameter(0)\n  ROOT b = f32[64] negate(a), metadata={op_name=\"" + evil +
          "\"}\n}\n// " + evil + "\xff\n",
      diagnostics);
  CHECK(page.find("alert(1)") == std::string::npos);
  CHECK(page.find("</script>.hlo") == std::string::npos);
  CHECK(block(page, "module").getString("file") == llvm::StringRef("</script>.hlo"));
}

TEST_CASE("a run that failed has the values that led there, whatever they are called") {
  DiagnosticEngine diagnostics;
  RunReport run;
  run.verdict = RunVerdict::Wrong;
  run.chain.emplace();
  ChainValue &value = run.chain->values.emplace_back();
  value.name = "</script>\xff";
  value.index = {3, 5};
  value.terms = {"<b>[1] 2"};
  const std::string page = reportOf("HloModule m\nENTRY e { ROOT p = f32[8] parameter(0) }\n", diagnostics, &run);
  const llvm::json::Object module = block(page, "module");
  const llvm::json::Object &written =
      *(*module.getObject("run")->getObject("chain")->getArray("values"))[0].getAsObject();
  CHECK(written.getString("name") == llvm::StringRef("</script>\xef\xbf\xbd"));
  CHECK(written.getArray("index")->size() == 2);
  CHECK((*written.getArray("terms"))[0].getAsString() == llvm::StringRef("<b>[1] 2"));
  CHECK(page.find("<b>[1]") == std::string::npos);
}

TEST_CASE("a program with errors has a report that tells them") {
  for (const char *text : {"", "HloModule m\nENTRY e { ROOT p = f32[8] add(q, q) }\n", "\xff\xfe", "HloModule"}) {
    DiagnosticEngine diagnostics;
    const llvm::json::Object module = block(reportOf(text, diagnostics), "module");
    CHECK(diagnostics.hasErrors());
    CHECK(module.getArray("diagnostics")->size() > 0);
    CHECK(module.getObject("manifest") == nullptr);
  }
}
