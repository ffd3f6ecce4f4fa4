// The life of a session, and requests that make no sense.
#include "Session.h"

#include <catch2/catch.hpp>

using namespace hloc;

TEST_CASE("the exit code tells whether there was a shutdown") {
  Session polite, rude, gone;
  polite.begin();
  polite.end();
  CHECK(polite.run() == 0);
  rude.begin();
  rude.notify("exit", nullptr);
  CHECK(rude.run() == 1);
  gone.begin();
  CHECK(gone.run() == 1);
}

TEST_CASE("requests at the wrong time") {
  Session session;
  const int64_t early = session.request("textDocument/hover", json::Object());
  session.begin();
  const int64_t again = session.request("initialize", json::Object());
  const int64_t unknown = session.request("textDocument/unknown", json::Object());
  const int64_t nowhere = session.request("textDocument/hover", json::Object());
  session.request("shutdown", nullptr);
  const int64_t late = session.request("textDocument/hover", json::Object());
  session.notify("exit", nullptr);
  CHECK(session.run() == 0);
  CHECK(session.errorOf(early) == -32002);
  CHECK(session.errorOf(again) == -32600);
  CHECK(session.errorOf(unknown) == -32601);
  CHECK(session.errorOf(nowhere) == -32602);
  CHECK(session.errorOf(late) == -32600);
}

TEST_CASE("the encoding of positions is the client's first that we have") {
  for (auto [offered, chosen] : {std::pair("[\"utf-7\",\"utf-8\",\"utf-16\"]", "utf-8"),
                                 {"[\"utf-32\"]", "utf-32"},
                                 {"[]", "utf-16"},
                                 {"[5]", "utf-16"}}) {
    Session session;
    const int64_t id = session.request(
        "initialize",
        json::Object{
            {"capabilities",
             json::Object{{"general", json::Object{{"positionEncodings", llvm::cantFail(json::parse(offered))}}}}}});
    session.end();
    session.run();
    CHECK(session.result(id).getAsObject()->getObject("capabilities")->getString("positionEncoding") ==
          llvm::StringRef(chosen));
  }
}

TEST_CASE("what is cancelled while it waits is not computed") {
  Session session;
  session.begin();
  session.open(sampleText);
  const int64_t id = session.request("textDocument/documentSymbol", Session::document());
  session.notify("$/cancelRequest", json::Object{{"id", id}});
  const int64_t kept = session.request("textDocument/documentSymbol", Session::document());
  session.notify("$/cancelRequest", json::Object{{"id", "never asked"}});
  session.end();
  CHECK(session.run() == 0);
  CHECK(session.errorOf(id) == -32800);
  CHECK(session.result(kept).getAsArray());
}

TEST_CASE("messages that make no sense") {
  Session session;
  session.begin();
  session.open(sampleText);
  session.raw("Content-Length: 4\r\n\r\n[1,2");
  session.raw("Content-Length: 2\r\n\r\n[]");
  session.raw("Content-Length: 2\r\n\r\n{}");
  session.say(json::Object{{"id", json::Array()}, {"method", "textDocument/hover"}});
  session.say(json::Object{{"id", 5}, {"result", 7}}); // an answer to nothing
  session.notify("textDocument/didOpen", json::Array());
  session.notify("textDocument/didOpen", json::Object{{"textDocument", 5}});
  session.notify("textDocument/didChange", json::Object{{"textDocument", json::Object{{"uri", "file:///t.hlo"}}}});
  session.change(
      json::Array{5, json::Object(), json::Object{{"range", 5}, {"text", "x"}},
                  json::Object{{"range", json::Object{{"start", json::Object{{"line", -1}, {"character", 0}}},
                                                      {"end", Session::position(0, 0)}}},
                               {"text", "x"}}});
  const int64_t hover = session.request("textDocument/hover", Session::document());
  session.end();
  CHECK(session.run() == 0);
  CHECK(session.errorOf(hover) == -32602);
  CHECK(session.notifications("window/showMessage").empty());
}

TEST_CASE("a document that grows too large is left alone") {
  lsp::ServerOptions options;
  options.maxDocumentBytes = 2000;
  Session session;
  session.begin();
  session.open("x");
  session.change(json::Array{json::Object{{"text", std::string(3000, ' ')}}});
  const int64_t hover = session.request("textDocument/hover", Session::at("x", "x"));
  session.open(std::string(3000, ' '));
  session.end();
  CHECK(session.run(nullptr, options) == 0);
  CHECK(session.notifications("window/showMessage").size() == 2);
  CHECK(session.errorOf(hover) == -32602);
}

TEST_CASE("diagnostics follow the text") {
  Session session;
  session.begin();
  session.open(sampleText);
  session.pause();
  const llvm::StringRef text = sampleText;
  auto typed = [&](llvm::StringRef needle, llvm::StringRef with) {
    json::Object where = *Session::at(text, needle).getObject("position"),
                 end = *Session::at(text, needle, needle.size()).getObject("position");
    return json::Object{{"range", json::Object{{"start", std::move(where)}, {"end", std::move(end)}}}, {"text", with}};
  };
  session.change(json::Array{typed("call(%row)", "call(%rwo)")}, 2);
  session.change(json::Array{typed("index=0", "index=9")}, 3);
  session.pause();
  session.change(json::Array{json::Object{{"text", text}}}, 4);
  session.pause();
  session.notify("textDocument/didClose", Session::document());
  session.end();
  CHECK(session.run() == 0);
  auto all = session.notifications("textDocument/publishDiagnostics");
  REQUIRE(all.size() == 4); // the two changes in a row are looked at once
  CHECK(all[0]->getArray("diagnostics")->empty());
  CHECK(all[1]->getInteger("version") == 3);
  const json::Array &found = *all[1]->getArray("diagnostics");
  INFO(Session::text(*all[1]->get("diagnostics")));
  REQUIRE(found.size() == 1); // what uses the call is not looked at
  CHECK(found[0].getAsObject()->getString("code") == llvm::StringRef("undefined-name"));
  CHECK(Session::text(*found[0].getAsObject()->get("range")) ==
        R"({"end":{"character":25,"line":21},"start":{"character":21,"line":21}})");
  CHECK(found[0].getAsObject()->getArray("relatedInformation")->size() == 1);
  CHECK(all[2]->getArray("diagnostics")->empty());
  CHECK(all[3]->getArray("diagnostics")->empty());
}

TEST_CASE("the verifier's rules are diagnostics with their sentence") {
  Session session;
  session.begin();
  session.open("ENTRY e {\n a = f32[4] parameter(0)\n b = f32[5] parameter(1)\n ROOT c = f32[4] add(a, b)\n}\n");
  session.pause();
  session.end();
  session.run();
  auto all = session.notifications("textDocument/publishDiagnostics");
  REQUIRE(all.size() == 1);
  REQUIRE(all[0]->getArray("diagnostics")->size() == 1);
  const json::Object &one = *(*all[0]->getArray("diagnostics"))[0].getAsObject();
  CHECK(one.getString("message")->contains("binary_c1"));
  CHECK(one.getInteger("severity") == 1);
}
