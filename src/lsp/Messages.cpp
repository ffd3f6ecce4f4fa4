#include "Messages.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc::lsp {

bool isModest(llvm::StringRef text) {
  constexpr unsigned maxDepth = 100;
  constexpr size_t maxValues = 1'000'000, maxObjects = 100'000; // of which each takes some kilobytes
  unsigned depth = 0;
  size_t values = 0, objects = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
    } else if (c == '{' || c == '[') {
      ++values;
      objects += c == '{';
      if (++depth > maxDepth || objects > maxObjects)
        return false;
    } else if (c == '}' || c == ']') {
      depth -= depth > 0;
    } else if (c == ',' && ++values > maxValues) {
      return false;
    }
  }
  return values <= maxValues;
}

/// Up to the empty line behind it. What is no head is passed over with one complaint.
std::optional<Message> MessageReader::readHead() {
  constexpr size_t longest = 4096;
  size_t end = unread.find("\r\n\r\n"), behind = end + 4;
  if (size_t other = unread.find("\n\n"); other < end) { // as written by hand
    end = other;
    behind = end + 2;
  }
  if (end == std::string::npos) {
    if (unread.size() <= longest)
      return std::nullopt;
    unread.erase(0, unread.size() - 3); // the beginning of the empty line may be there
    return Message{nullptr, "no head of a message"};
  }
  for (llvm::StringRef line : llvm::split(llvm::StringRef(unread).take_front(end), "\n")) {
    line = line.trim();
    uint64_t number = 0;
    if (line.consume_front_insensitive("content-length:") && !line.trim().getAsInteger(10, number))
      length = size_t(number);
  }
  unread.erase(0, behind);
  if (!length)
    return Message{nullptr, "a head without a Content-Length"};
  if (*length > maxBytes)
    return Message{nullptr, "a message of more than " + std::to_string(maxBytes) + " bytes", /*isFatal=*/true};
  return std::nullopt;
}

std::optional<Message> MessageReader::next() {
  if (!length)
    if (std::optional<Message> problem = readHead())
      return problem;
  if (!length || unread.size() < *length)
    return std::nullopt;
  Message message;
  const llvm::StringRef body = llvm::StringRef(unread).take_front(*length);
  if (!isModest(body)) {
    message.problem = "JSON of more levels or values than any message has";
  } else if (llvm::Expected<json::Value> parsed = json::parse(body)) {
    message.value = std::move(*parsed);
  } else {
    message.problem = llvm::toString(parsed.takeError());
  }
  unread.erase(0, *length);
  length.reset();
  return message;
}

std::string frame(llvm::StringRef body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body.str();
}

} // namespace hloc::lsp
