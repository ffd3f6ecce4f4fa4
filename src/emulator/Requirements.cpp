#include "Requirements.h"

#include "hloc/kernel/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace hloc::emulator {
namespace {

struct Requirement {
  StringLiteral opcodes, words;
  unsigned least, greatest;
  bool specific;
};

constexpr Requirement requirements[] = {
#define HLOC_PTX_REQUIREMENT(opcodes, words, least, greatest, specific) {opcodes, words, least, greatest, specific},
#include "Requirements.def"
};

template <typename Test> bool anyOf(StringRef list, char separator, Test test) {
  while (!list.empty()) {
    auto [word, rest] = list.split(separator);
    if (test(word))
      return true;
    list = rest;
  }
  return false;
}

bool hasWord(const ptx::Instruction &i, StringRef word) {
  if (word.consume_front("#"))
    return utostr(i.operands.size()) == word;
  if (word.starts_with("%"))
    return any_of(i.operands, [&](const ptx::Operand &o) { return StringRef(o.name).starts_with(word); });
  return is_contained(ArrayRef(i.parts).drop_front(), word);
}

bool fits(const Requirement &r, const ptx::Instruction &i) {
  const bool named = r.opcodes == "*" || anyOf(r.opcodes, ' ', [&](StringRef name) { return name == i.parts[0]; });
  return named && !anyOf(r.words, ' ', [&](StringRef group) {
           return !anyOf(group, '|', [&](StringRef word) { return hasWord(i, word); });
         });
}

bool has(const Target &target, const Requirement &r) {
  return target.architecture >= r.least && (!r.greatest || target.architecture <= r.greatest) &&
         (!r.specific || target.suffix);
}

} // namespace

std::optional<Target> Target::parse(StringRef text) {
  Target target;
  text = text.trim();
  if (!text.consume_front("sm_") || text.consumeInteger(10, target.architecture))
    return std::nullopt;
  if (text.starts_with("a") || text.starts_with("f"))
    target.suffix = text[0];
  return target;
}

std::string Target::name() const {
  return "sm_" + utostr(architecture) + (suffix ? std::string(1, suffix) : std::string());
}

uint64_t Target::maxStaticShared() const {
  if (suffix != 'a')
    return TargetInfo::staticSharedBytes;
  return findTarget(name()).value_or(TargetInfo()).maxSharedBytes; // all that a block may have
}

std::optional<std::string> missing(const Target &target, const ptx::Instruction &instruction) {
  const Requirement *strictest = nullptr;
  for (const Requirement &r : requirements)
    if (fits(r, instruction) && !has(target, r) && (!strictest || r.least >= strictest->least))
      strictest = &r;
  if (!strictest)
    return std::nullopt;
  const std::string least = "sm_" + utostr(strictest->least);
  if (strictest->least == strictest->greatest) // of this one machine
    return least + "a";
  std::string text = strictest->specific ? least + "a or " + least + "f" : least;
  if (strictest->greatest)
    text += " to sm_" + utostr(strictest->greatest) + "f";
  return text;
}

} // namespace hloc::emulator
