#include "lsp/Messages.h"

#include <catch2/catch.hpp>

using namespace hloc::lsp;

namespace {

std::vector<Message> all(MessageReader &reader) {
  std::vector<Message> messages;
  while (std::optional<Message> message = reader.next())
    messages.push_back(std::move(*message));
  return messages;
}

} // namespace

TEST_CASE("messages are taken apart wherever they are cut") {
  const std::string stream = frame("{\"a\":1}") + "content-length: 2\nX: y\n\n[]" + frame("\"\xC3\xA4\"");
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    MessageReader reader(1000);
    reader.buffer() = stream.substr(0, cut);
    std::vector<Message> messages = all(reader);
    reader.buffer() += stream.substr(cut);
    for (Message &message : all(reader))
      messages.push_back(std::move(message));
    REQUIRE(messages.size() == 3);
    CHECK(messages[0].value == json::Value(json::Object{{"a", 1}}));
    CHECK(messages[1].value == json::Value(json::Array()));
    CHECK(messages[2].value == json::Value("\xC3\xA4"));
  }
}

TEST_CASE("what is no message is said and passed over") {
  MessageReader reader(1000);
  reader.buffer() = "Content-Length: 3\r\n\r\n{{{"
                    "Nothing: 1\r\n\r\n" +
                    frame("5");
  std::vector<Message> messages = all(reader);
  // A complaint ends a reading; the next one goes on behind it.
  for (Message &message : all(reader))
    messages.push_back(std::move(message));
  REQUIRE(messages.size() == 3);
  CHECK(!messages[0].problem.empty());
  CHECK(messages[1].problem == "a head without a Content-Length");
  CHECK(messages[2].value == json::Value(5));
}

TEST_CASE("no head is longer than heads are") {
  MessageReader reader(1000);
  reader.buffer() = std::string(100'000, 'x');
  CHECK(reader.next()->problem == "no head of a message");
  CHECK(reader.buffer().size() < 10);
}

TEST_CASE("a message that is too long is the last") {
  for (const char *length : {"1001", "18446744073709551615"}) {
    MessageReader reader(1000);
    reader.buffer() = "Content-Length: " + std::string(length) + "\r\n\r\n";
    CHECK(reader.next()->isFatal);
  }
  for (const char *length : {"99999999999999999999999", "-1", "x", ""}) {
    MessageReader reader(1000);
    reader.buffer() = "Content-Length: " + std::string(length) + "\r\n\r\n";
    std::optional<Message> message = reader.next();
    CHECK(message->problem == "a head without a Content-Length");
    CHECK(!message->isFatal);
  }
}

TEST_CASE("JSON that would take the stack or the memory is not parsed") {
  CHECK(isModest(R"({"a":[[[1,2,3]]],"b":"[[[[\"[[["})"));
  CHECK(!isModest(std::string(1000, '[')));
  std::string many = "[";
  for (int i = 0; i < 1'000'001; ++i)
    many += "0,";
  CHECK(!isModest(many));
  MessageReader reader(1 << 20);
  reader.buffer() = "Content-Length: 100000\r\n\r\n" + std::string(100'000, '[');
  CHECK(reader.next()->problem == "JSON of more levels or values than any message has");
}
