#pragma once
// The configuration of a call of a library: a JSON object, every member of which is read once. What is missing, of
// another kind or too much fails, and says so.

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <set>
#include <string>
#include <vector>

namespace hloc {

class ConfigurationReader {
public:
  using Body = llvm::function_ref<bool(ConfigurationReader &)>;

  static bool read(llvm::StringRef text, std::string &error, Body body);

  bool has(llvm::StringRef key) const { return members.get(key) != nullptr; }
  bool text(llvm::StringRef key, std::string &result);
  bool flag(llvm::StringRef key, bool &result);
  bool number(llvm::StringRef key, double &result); ///< finite
  bool count(llvm::StringRef key, uint64_t &result);
  bool counts(llvm::StringRef key, std::vector<uint64_t> &result);
  bool object(llvm::StringRef key, Body body);
  /// Has all been read?
  bool isAll();
  bool fail(std::string reason);

private:
  ConfigurationReader(const llvm::json::Object &object, std::string path, std::string &error)
      : members(object), path(std::move(path)), error(error) {}
  const llvm::json::Value *find(llvm::StringRef key);
  bool expected(llvm::StringRef key, llvm::StringRef what);

  const llvm::json::Object &members;
  std::string path;
  std::string &error;
  std::set<std::string> seen;
};

/// Has no element of an array the place of another? Then each dimension, from the one whose elements are closest
/// together on, goes beyond those before it. False, too, where it reaches further than `limit`.
bool areApart(const std::vector<uint64_t> &sizes, const std::vector<uint64_t> &strides, uint64_t limit);

} // namespace hloc
