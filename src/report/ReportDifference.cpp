#include "hloc/report/ReportDifference.h"

#include "Page.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

/// The blocks of data of a page, their names behind `prefix`. What is in them only the reader of the page looks at, and
/// it cannot get out of them: they have nothing but the letters of base64.
static std::optional<std::string> blocksOf(llvm::StringRef page, llvm::StringRef prefix) {
  constexpr llvm::StringRef begin = "<script type=\"text/plain\" id=\"";
  std::string blocks;
  bool hasModule = false;
  for (size_t at = page.find(begin); at != llvm::StringRef::npos; at = page.find(begin)) {
    page = page.substr(at + begin.size());
    auto [name, rest] = page.split("\">");
    auto [data, behind] = rest.split("</script>");
    page = behind;
    auto isNamed = [](char c) { return llvm::isAlnum(c) || c == '-'; };
    auto isBase64 = [](char c) { return llvm::isAlnum(c) || c == '+' || c == '/' || c == '='; };
    if (!llvm::all_of(name, isNamed) || !llvm::all_of(data, isBase64))
      return std::nullopt;
    hasModule |= name == "module";
    blocks += (begin + prefix + name + "\">" + data + "</script>\n").str();
  }
  return hasModule ? std::optional(blocks) : std::nullopt;
}

std::optional<std::string> reportDifference(llvm::StringRef before, llvm::StringRef after, std::string &error) {
  std::string blocks;
  for (auto [page, prefix, which] : {std::tuple(before, "a-", "first"), std::tuple(after, "b-", "second")}) {
    std::optional<std::string> own = blocksOf(page, prefix);
    if (!own) {
      error = std::string("the ") + which + " file is no report of hloc's";
      return std::nullopt;
    }
    blocks += *own;
  }
  return pageWith(blocks);
}

} // namespace hloc
