#include "compiler/EqualKernels.h"

#include "hloc/codegen/CubinCache.h"
#include "hloc/codegen/Ptx.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc {

namespace {

bool isNameCharacter(char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; }

} // namespace

std::string withoutNames(llvm::StringRef text, llvm::ArrayRef<std::string> functions) {
  llvm::StringMap<size_t> order;
  for (const std::string &function : functions)
    order.try_emplace(function, order.size());
  // A function is mentioned as `@name`, and is defined with this attribute.
  constexpr llvm::StringLiteral definition = "sym_name = \"";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t begin = text.find_first_of("@\"");
    bool defines = begin != llvm::StringRef::npos && text.take_front(begin + 1).ends_with(definition);
    bool mentions = begin != llvm::StringRef::npos && text[begin] == '@';
    begin = begin == llvm::StringRef::npos ? text.size() : begin + 1;
    result += text.take_front(begin);
    text = text.drop_front(begin);
    llvm::StringRef name = defines || mentions ? text.take_while(isNameCharacter) : "";
    if (auto known = order.find(name); known != order.end()) {
      result += "#" + std::to_string(known->second);
      text = text.drop_front(name.size());
    }
  }
  return result;
}

bool EqualKernels::isKnown(size_t number, llvm::StringRef name, mlir::ModuleOp emitted, llvm::StringRef text) {
  Kernel &kernel = kernels[number];
  kernel.name = name.str();
  std::vector<std::string> functions;
  for (mlir::func::FuncOp function : emitted.getOps<mlir::func::FuncOp>()) {
    functions.push_back(function.getName().str());
    if (function.getName() != name)
      kernel.helpers.push_back(functions.back());
  }
  const std::string key = CubinCache::key({withoutNames(text, functions)});
  std::lock_guard lock(mutex);
  kernel.first = numbers.try_emplace(key, number).first->second;
  return *kernel.first != number;
}

std::optional<std::string> EqualKernels::ptxOf(size_t number, llvm::StringRef ptxOfFirst) const {
  const Kernel &first = kernels[firstOf(number)];
  auto isNamedIn = [&](const std::string &helper) { return ptxOfFirst.contains(first.name + "__" + helper); };
  if (llvm::any_of(first.helpers, isNamedIn))
    return std::nullopt;
  return renamePtxEntry(ptxOfFirst, first.name, kernels[number].name);
}

} // namespace hloc
