#pragma once
// Messages of JSON-RPC 2.0 with their heads, from bytes that may be anything.
//
//   Content-Length: 46\r\n
//   \r\n
//   {"jsonrpc":"2.0","method":"exit","params":null}

#include "llvm/Support/JSON.h"

#include <deque>
#include <optional>
#include <string>

namespace hloc::lsp {

namespace json = llvm::json;

/// Of the protocol.
enum ErrorCode : int {
  ParseError = -32700,
  InvalidRequest = -32600,
  MethodNotFound = -32601,
  InvalidParams = -32602,
  InternalError = -32603,
  ServerNotInitialized = -32002,
  RequestFailed = -32803,
  RequestCancelled = -32800,
};

/// A message, or why what came is none.
struct Message {
  json::Value value = nullptr;
  std::string problem;  ///< empty: it is JSON
  bool isFatal = false; ///< nothing that follows can be read
};

/// Takes a stream apart. Holds no more than one message and what was read behind it.
class MessageReader {
public:
  explicit MessageReader(size_t maxBytes) : maxBytes(maxBytes) {}

  std::string &buffer() { return unread; } ///< where what arrives is appended
  /// Nothing as long as there is no whole message.
  std::optional<Message> next();

private:
  std::optional<Message> readHead();

  size_t maxBytes;
  std::string unread;
  std::optional<size_t> length; ///< of the body that comes next
};

/// With its head.
std::string frame(llvm::StringRef body);

/// JSON that llvm's parser can take, which recurses and makes some tens of bytes of each value: no deeper and of no
/// more values than messages have.
bool isModest(llvm::StringRef text);

} // namespace hloc::lsp
