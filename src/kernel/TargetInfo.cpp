#include "hloc/kernel/TargetInfo.h"

#include "hloc/support/Suggestion.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

struct TargetRow {
  const char *name;
  uint32_t major, minor, ptx, multiprocessors, threadsPerMultiprocessor, maxVectorBytes, maxSharedBytes;
  const char *products;
};

constexpr TargetRow rows[] = {
#define HLOC_TARGET(name, major, minor, ptx, multiprocessors, threads, vectorBytes, sharedBytes, products)             \
  {name, major, minor, ptx, multiprocessors, threads, vectorBytes, sharedBytes, products},
#include "Targets.def"
};

TargetInfo makeTarget(const TargetRow &row) {
  TargetInfo target;
  target.name = row.name;
  target.major = row.major;
  target.minor = row.minor;
  target.ptxVersion = row.ptx;
  target.multiprocessors = row.multiprocessors;
  target.threadsPerMultiprocessor = row.threadsPerMultiprocessor;
  target.maxVectorBytes = row.maxVectorBytes;
  target.maxSharedBytes = row.maxSharedBytes;
  return target;
}

llvm::SmallVector<llvm::StringRef> productsOf(const TargetRow &row) {
  llvm::SmallVector<llvm::StringRef> products;
  llvm::StringRef(row.products).split(products, ' ', -1, /*KeepEmpty=*/false);
  return products;
}

/// `9.0a` -> `sm_90a`, `90` -> `sm_90`, `sm_90` unchanged; empty if it is none of these.
std::string architectureName(llvm::StringRef spelling) {
  llvm::StringRef rest = spelling;
  rest.consume_front("sm_");
  std::string digits;
  bool dot = false;
  while (!rest.empty() && (llvm::isDigit(rest.front()) || (rest.front() == '.' && !dot && !digits.empty()))) {
    if (rest.front() == '.')
      dot = true;
    else
      digits += rest.front();
    rest = rest.drop_front();
  }
  if (digits.empty() || !(rest.empty() || rest == "a"))
    return "";
  return "sm_" + digits + rest.str();
}

/// Lower case without separators, as the table has products.
std::string productSpelling(llvm::StringRef spelling) {
  std::string product;
  for (char c : spelling.trim().lower())
    if (c != '-' && c != '_' && c != ' ')
      product += c;
  return product;
}

} // namespace

std::optional<TargetInfo> findTarget(llvm::StringRef spelling) {
  std::string architecture = architectureName(spelling.trim().lower());
  std::string product = productSpelling(spelling);
  for (const TargetRow &row : rows) {
    if (architecture == row.name)
      return makeTarget(row);
    for (llvm::StringRef name : productsOf(row))
      if (product == name)
        return makeTarget(row);
  }
  return std::nullopt;
}

std::string nearestTarget(llvm::StringRef spelling) {
  std::string written = productSpelling(spelling);
  // `sm90` and `compute_90` are architectures, `h100 pcie` and `nvidia a100-sxm4` products with more words.
  llvm::StringRef rest = written;
  if (rest.consume_front("sm") || rest.consume_front("compute"))
    if (std::optional<TargetInfo> target = findTarget(rest))
      return target->name;
  rest.consume_front("nvidia");
  rest.consume_front("geforce");
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef longest;
  for (const TargetRow &row : rows) {
    names.push_back(row.name);
    for (llvm::StringRef product : productsOf(row)) {
      names.push_back(product);
      if (rest.starts_with(product) && product.size() > longest.size())
        longest = product;
    }
  }
  return longest.empty() ? nearestName(written, names).str() : longest.str();
}

std::vector<TargetInfo> allTargets() {
  std::vector<TargetInfo> targets;
  for (const TargetRow &row : rows)
    targets.push_back(makeTarget(row));
  return targets;
}

std::vector<std::string> productNames(const TargetInfo &target) {
  std::vector<std::string> names;
  for (const TargetRow &row : rows)
    if (target.name == row.name)
      for (llvm::StringRef name : productsOf(row))
        names.push_back(name.str());
  return names;
}

} // namespace hloc
