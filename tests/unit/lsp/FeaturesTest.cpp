// What is asked of a document, through the server.
#include "Session.h"

#include "hloc/hlo/Opcode.h"
#include "lsp/OpcodeMeanings.h"

#include "llvm/ADT/STLExtras.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

const llvm::StringRef sample = sampleText;

json::Value ask(llvm::StringRef method, json::Object params, llvm::StringRef document = sample) {
  Session session;
  session.begin();
  session.open(document);
  const int64_t id = session.request(method, std::move(params));
  session.end();
  CHECK(session.run() == 0);
  return session.result(id);
}

std::string hoverAt(llvm::StringRef needle, size_t behind, llvm::StringRef document = sample) {
  const json::Value hover = ask("textDocument/hover", Session::at(document, needle, behind), document);
  return hover.getAsObject() ? hover.getAsObject()->getObject("contents")->getString("value")->str() : "";
}

/// The lines and columns of locations, or of edits.
std::string places(const json::Value &value) {
  std::string out;
  auto add = [&](const json::Value &one) {
    const json::Object &start = *one.getAsObject()->getObject("range")->getObject("start");
    out += (out.empty() ? "" : " ") + std::to_string(*start.getInteger("line")) + ":" +
           std::to_string(*start.getInteger("character"));
  };
  if (const json::Array *all = value.getAsArray())
    for (const json::Value &one : *all)
      add(one);
  else if (value.getAsObject())
    add(value);
  return out;
}

std::vector<std::string> completions(llvm::StringRef line) {
  const std::string marked =
      (sample.take_front(sample.find("  %two = ")) + line + "\n" + sample.substr(sample.find("  %two = "))).str();
  json::Object params = Session::at(marked, line, line.size());
  const json::Value value = ask("textDocument/completion", std::move(params), marked);
  std::vector<std::pair<std::string, std::string>> sorted;
  if (value.getAsObject())
    for (const json::Value &item : *value.getAsObject()->getArray("items"))
      sorted.emplace_back(item.getAsObject()->getString("sortText")->str(),
                          item.getAsObject()->getString("label")->str());
  llvm::sort(sorted);
  std::vector<std::string> labels;
  for (auto &[key, label] : sorted)
    labels.push_back(label);
  return labels;
}

using Labels = std::vector<std::string>;

} // namespace

TEST_CASE("hovers tell shape, layout, bytes and meaning") {
  const std::string row = hoverAt("%row = ", 2);
  CHECK(llvm::StringRef(row).contains("`f32[4]{0}`: 4 elements, 16 bytes"));
  CHECK(llvm::StringRef(row).contains("`reduce`: elements along some dimensions combined by a computation"));
  CHECK(llvm::StringRef(row).contains("from `jit(f)/sum`"));
  CHECK(llvm::StringRef(row).contains("kernel: not known, they are not looked for"));
  CHECK(hoverAt("call(%row)", 6) == row); // of a use what its definition is
  CHECK(llvm::StringRef(hoverAt("%x = f32[4,8]", 6)).contains("32 elements, 128 bytes, row-major"));
  CHECK(llvm::StringRef(hoverAt("%n = ", 1)).contains("a tuple of 2, 20 bytes"));
  CHECK(llvm::StringRef(hoverAt("to_apply=%sum", 10)).contains("a computation of 3 instructions, named in 1 place"));
  CHECK(llvm::StringRef(hoverAt("dimensions={1}", 2)).contains("`dimensions={0,1}`: required of `reduce`"));
  CHECK(llvm::StringRef(hoverAt(" compare(", 2)).contains("`direction=EQ|NE|GE|GT|LE|LT`, `type="));
  CHECK(hoverAt("// adds", 3) == "");
}

TEST_CASE("hovers in a text with errors") {
  const std::string wrong = "ENTRY e {\n a = f32[2,3]{0,1} parameter(0)\n b = f32[2] oops(a)\n c = f32[7] negate(b)\n"
                            " ROOT d = negate(a)\n}\n";
  CHECK(llvm::StringRef(hoverAt("a = ", 0, wrong)).contains("dimensions from the fastest: 0,1"));
  CHECK(llvm::StringRef(hoverAt("d = ", 0, wrong)).contains("`f32[2,3]{0,1}`: 6 elements, 24 bytes"));
  CHECK(llvm::StringRef(hoverAt("b = ", 0, wrong)).contains("`f32[2]` as written"));
}

TEST_CASE("definitions and references") {
  CHECK(places(ask("textDocument/definition", Session::at(sample, "call(%row)", 7))) == "20:3");
  CHECK(places(ask("textDocument/definition", Session::at(sample, "to_apply=%sum", 11))) == "8:1");
  CHECK(places(ask("textDocument/definition", Session::at(sample, "ultiply(v, v)", 8))) == "25:4");
  json::Object params = Session::at(sample, "%row = ", 1);
  CHECK(places(ask("textDocument/references", json::Object(params))) == "21:22 28:90 31:45 31:51");
  params["context"] = json::Object{{"includeDeclaration", true}};
  CHECK(places(ask("textDocument/references", std::move(params))) == "20:3 21:22 28:90 31:45 31:51");
  CHECK(places(ask("textDocument/documentHighlight", Session::at(sample, "x: f32"))) == "17:13 18:3 20:27");
  CHECK(places(ask("textDocument/references", Session::at(sample, "to_apply=%sum", 11))) == "20:64");
  CHECK(places(ask("textDocument/references", Session::at(sample, "%a = f32[]", 1))) == "8:6 11:29");
  CHECK(ask("textDocument/definition", Session::at(sample, "parameter(0)")) == json::Value(nullptr));
}

TEST_CASE("renaming keeps the module") {
  json::Object params = Session::at(sample, "%two = ", 1);
  params["newName"] = "%pair";
  const json::Value made = ask("textDocument/rename", std::move(params));
  const json::Array &edits = *made.getAsObject()->getObject("changes")->getArray("file:///t.hlo");
  CHECK(places(made.getAsObject()->getObject("changes")->begin()->second) == "21:3 24:22 28:96");
  for (const json::Value &edit : edits)
    CHECK(edit.getAsObject()->getString("newText") == llvm::StringRef("pair"));
}

TEST_CASE("names that cannot be had are refused") {
  for (const char *name : {"row", "f32", "ROOT", "", "a b", "%", "__x"}) {
    Session session;
    session.begin();
    session.open(sample);
    json::Object params = Session::at(sample, "%two = ", 1);
    params["newName"] = name;
    const int64_t id = session.request("textDocument/rename", std::move(params));
    session.end();
    session.run();
    INFO(name);
    CHECK(session.errorOf(id) == -32803);
  }
}

TEST_CASE("completion offers what may stand there") {
  CHECK(llvm::is_contained(completions("  y = f32[4] "), "add"));
  CHECK(completions("  y = f32[4] triang") == Labels{"triangular-solve"});
  CHECK(completions("  y = f32[4] add(") == Labels{"%row", "%zero", "%x"}); // the nearest first
  CHECK(completions("  y = f32[4] add(%x, %z") == Labels{"%zero"});
  const Labels attributes = completions("  y = f32[4] reduce(%x, %zero), dimensions={1}, ");
  REQUIRE(attributes.size() > 2);
  CHECK(attributes[0] == "to_apply=");
  CHECK(!llvm::is_contained(attributes, "dimensions="));
  CHECK(llvm::is_contained(attributes, "metadata="));
  CHECK(completions("  y = f32[4] reduce(%x, %zero), to_apply=") == Labels{"%sum", "twice"});
  CHECK(completions("  y = f32[4] compare(%x, %x), direction=G") == Labels{"GE", "GT"});
  CHECK(completions("  y = f32[4] sort(%x), is_stable=") == Labels{"false", "true"});
  CHECK(completions("  y = f32[4] add(%x, %x), control-predecessors={%row") == Labels{"%row"});
  CHECK(completions("  // ").empty());
  const std::string called = "ENTRY e {\n  p = f32[4] parameter(0)\n  ROOT q = f32[4] negat(p)\n}\n";
  const json::Value found = ask("textDocument/completion", Session::at(called, "negat", 5), called);
  REQUIRE(found.getAsObject()); // the cursor between the word and the parenthesis
  CHECK(found.getAsObject()->getArray("items")->size() == 1);
  CHECK(completions("  y = f32[4] constant(").empty());
}

TEST_CASE("completion in the header and in an inner computation") {
  const std::string header = "HloModule m, is_s\n\nENTRY e { ROOT p = f32[] parameter(0) }\n";
  const json::Value found = ask("textDocument/completion", Session::at(header, "is_s", 4), header);
  CHECK(found.getAsObject()->getArray("items")->size() == 1);
  const std::string inner = "ENTRY e {\n p = f32[4] parameter(0)\n ROOT m = f32[4] map(p), dimensions={0}, to_apply={\n"
                            "  v = f32[] parameter(0)\n  ROOT w = f32[] negate()\n }\n}\n";
  const json::Value names = ask("textDocument/completion", Session::at(inner, "negate(", 7), inner);
  REQUIRE(names.getAsObject());
  REQUIRE(names.getAsObject()->getArray("items")->size() == 1);
  CHECK((*names.getAsObject()->getArray("items"))[0].getAsObject()->getString("label") == llvm::StringRef("v"));
}

TEST_CASE("outline, folding, hints and semantic tokens") {
  const json::Value symbols = ask("textDocument/documentSymbol", Session::document());
  REQUIRE(symbols.getAsArray()->size() == 3);
  CHECK((*symbols.getAsArray())[2].getAsObject()->getArray("children")->size() == 12);
  const json::Value folds = ask("textDocument/foldingRange", Session::document());
  CHECK(Session::text(folds) ==
        R"([{"endLine":11,"startLine":8},{"endLine":32,"startLine":17},{"endLine":26,"startLine":24}])");
  const json::Value hints = ask("textDocument/inlayHint", Session::document());
  CHECK(Session::text(hints.getAsArray()->front()) ==
        R"({"kind":1,"label":"f32[]","paddingRight":true,"position":{"character":32,"line":11}})");
  CHECK(llvm::StringRef(Session::text(hints))
            .contains(R"({"kind":1,"label":"f32[4,8]","paddingRight":true,"position":{"character":26,"line":20}})"));
  json::Object range = Session::document();
  range["range"] = json::Object{{"start", Session::position(10, 0)}, {"end", Session::position(11, 0)}};
  // %b, f32, parameter: lines and columns beside the last one's, length, type
  const json::Value tokens = ask("textDocument/semanticTokens/range", json::Object(range));
  CHECK(Session::text(*tokens.getAsObject()->get("data")).substr(0, 36) == "[10,2,2,4,0,0,5,3,5,0,0,6,9,6,0,0,10");
  CHECK(ask("textDocument/inlayHint", std::move(range)).getAsArray()->empty());
}

TEST_CASE("every opcode has a meaning and every attribute a form") {
  for (unsigned i = 0; i < numOpcodes(); ++i) {
    const llvm::StringRef meaning = lsp::meaning(Opcode(i));
    INFO(hloc::text(Opcode(i)).str());
    CHECK(meaning.size() > 2);
    CHECK(!meaning.ends_with("."));
    for (const AttributeSpec &spec : attributeSpecs(Opcode(i)))
      CHECK(!lsp::valueForm(spec.key, spec.grammar).empty());
  }
}
