// From a name to where it is defined and used. All of it is a matter of the words alone, so it works in a text with
// errors.

#include "Features.h"

#include "hloc/hlo/ElementType.h"

#include "llvm/ADT/STLExtras.h"

namespace hloc::lsp {

namespace {

SourceRange definitionOf(const TextScan &scan, const NameUse &use) {
  return use.ofComputation ? scan.computations[use.target].name : scan.instructions[use.target].name;
}

/// Ascending; a name that is not defined is alone.
std::vector<const NameUse *> usesLike(const TextScan &scan, const NameUse &use) {
  if (use.target == none)
    return {&use};
  std::vector<const NameUse *> all;
  for (const NameUse &other : scan.uses)
    if (other.ofComputation == use.ofComputation && other.target == use.target)
      all.push_back(&other);
  return all;
}

} // namespace

void definition(Document &document, uint32_t offset, Out &out) {
  const TextScan &scan = document.scan();
  const NameUse *use = scan.useAt(offset);
  if (!use || use->target == none)
    return out.value(nullptr);
  writeLocation(out, document, definitionOf(scan, *use));
}

void references(Document &document, uint32_t offset, bool withDefinition, Out &out) {
  const TextScan &scan = document.scan();
  const NameUse *use = scan.useAt(offset);
  if (!use)
    return out.value(nullptr);
  out.array([&] {
    for (const NameUse *one : usesLike(scan, *use))
      if (withDefinition || !one->isDefinition)
        writeLocation(out, document, one->name);
  });
}

void highlights(Document &document, uint32_t offset, Out &out) {
  enum { Read = 2, Write = 3 };
  const TextScan &scan = document.scan();
  const NameUse *use = scan.useAt(offset);
  if (!use)
    return out.value(nullptr);
  out.array([&] {
    for (const NameUse *one : usesLike(scan, *use))
      out.object([&] {
        writeRange(out, "range", document.lines(), one->name);
        out.attribute("kind", int64_t(one->isDefinition ? Write : Read));
      });
  });
}

void prepareRename(Document &document, uint32_t offset, Out &out) {
  const TextScan &scan = document.scan();
  const NameUse *use = scan.useAt(offset);
  if (!use || use->target == none)
    return out.value(nullptr);
  out.object([&] {
    writeRange(out, "range", document.lines(), use->name);
    out.attribute("placeholder", textValue(scan.slice(use->name)));
  });
}

/// What is wrong with a new name; empty if nothing is.
static std::string nameProblem(const TextScan &scan, const NameUse &use, llvm::StringRef name) {
  const bool isWord = !name.empty() &&
                      (isIdentifierStart(name.front()) || (name.front() >= '0' && name.front() <= '9')) &&
                      llvm::all_of(name, isIdentifierBody);
  if (!isWord)
    return "a name has letters, digits, `_`, `.` and `-`, and begins with a letter, a digit or `_`";
  if (llvm::is_contained({"HloModule", "ENTRY", "ROOT", "true", "false", "inf", "nan"}, name) || parseElementType(name))
    return "`" + name.str() + "` is a word of the language";
  if (!use.ofComputation && name.starts_with("__") && !name.starts_with("__xla_"))
    return "names that begin with `__` are reserved";
  const bool isTaken = use.ofComputation ? scan.computationOfName.contains(name)
                                         : scan.instructionOfName.contains({use.computation, name});
  return isTaken && name != scan.slice(use.name) ? "`" + name.str() + "` is there already" : "";
}

std::string rename(Document &document, uint32_t offset, llvm::StringRef name, Out &out) {
  const TextScan &scan = document.scan();
  const NameUse *use = scan.useAt(offset);
  name.consume_front("%");
  if (!use || use->target == none)
    return "there is no name here that is defined in this text";
  if (std::string problem = nameProblem(scan, *use, name); !problem.empty())
    return problem;
  const bool beginsWithDigit = !isIdentifierStart(name.front()); // which only a name with `%` may
  out.object([&] {
    out.attributeObject("changes", [&] {
      out.attributeArray(json::fixUTF8(document.uri()), [&] {
        for (const NameUse *one : usesLike(scan, *use))
          out.object([&] {
            const bool hasSign = one->name.begin > 0 && scan.text[one->name.begin - 1] == '%';
            writeRange(out, "range", document.lines(), one->name);
            out.attribute("newText", textValue((beginsWithDigit && !hasSign ? "%" : "") + name.str()));
          });
      });
    });
  });
  return "";
}

} // namespace hloc::lsp
