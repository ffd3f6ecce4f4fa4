// What is said of the word under the cursor.

#include "Features.h"
#include "OpcodeMeanings.h"

#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"

namespace hloc::lsp {

namespace {

/// `1,234,567 bytes`
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0)
      out += ',';
    out += digits[i];
  }
  return out;
}

std::string bytesText(int64_t bytes) {
  std::string text = grouped(bytes) + (bytes == 1 ? " byte" : " bytes");
  constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB"};
  double scaled = double(bytes);
  const char *unit = nullptr;
  for (const char *next : units) {
    if (scaled < 1024)
      break;
    scaled /= 1024;
    unit = next;
  }
  return unit ? text + fmt::format(" ({:.3g} {})", scaled, unit) : text;
}

/// Which dimension lies how in memory.
std::string layoutText(const Shape &shape) {
  if (!shape.isArray() || shape.rank() < 2)
    return "";
  if (shape.hasDefaultLayout())
    return "row-major";
  std::string order;
  for (int64_t dim : shape.minorToMajor())
    order += (order.empty() ? "" : ",") + std::to_string(dim);
  return "dimensions from the fastest: " + order;
}

std::string shapeText(const Shape &shape) {
  std::string text = "`" + shape.toString() + "`";
  if (shape.isArray()) {
    text += fmt::format(": {} {}, {}", grouped(shape.numElements()), shape.numElements() == 1 ? "element" : "elements",
                        bytesText(shape.byteSize()));
    if (std::string layout = layoutText(shape); !layout.empty())
      text += ", " + layout;
    return text;
  }
  if (!shape.isTuple())
    return text;
  int64_t bytes = 0;
  for (const Shape::Leaf &leaf : shape.leaves())
    bytes += leaf.shape.isArray() ? leaf.shape.byteSize() : 0;
  return text + fmt::format(": a tuple of {}, {}", shape.elements().size(), bytesText(bytes));
}

std::string attributesText(Opcode opcode) {
  std::string text;
  for (const AttributeSpec &spec : attributeSpecs(opcode))
    text += fmt::format("{}`{}={}`{}", text.empty() ? "" : ", ", hloc::text(spec.key).str(),
                        valueForm(spec.key, spec.grammar), spec.required ? "" : "?");
  return text.empty() ? "" : "attributes: " + text;
}

std::string opcodeText(llvm::StringRef word) {
  const std::optional<Opcode> opcode = parseOpcode(word);
  if (opcode)
    return fmt::format("`{}`: {}", word.str(), meaning(*opcode).str());
  for (auto [suffix, what] : {std::pair("-start", "starts"), {"-update", "goes on with"}, {"-done", "waits for"}})
    if (llvm::StringRef base = word; base.consume_back(suffix) && parseOpcode(base)) // for async-start and its like
      return fmt::format("`{}`: {} an asynchronous `{}`", word.str(), what, base.str());
  return "";
}

std::string kernelText(const ReportedKernel &kernel, const KernelReport &report) {
  std::string text = kernel.hero == "library" ? "call of `" + kernel.name + "`"
                                              : fmt::format("kernel `{}` (emitter {}", kernel.name, kernel.hero);
  if (kernel.hero != "library")
    text += fmt::format(", {} blocks of {} threads)", kernel.blocks, kernel.threads);
  if (kernel.microseconds > 0)
    text += fmt::format(", {:.2f} us on {} by the cost model", kernel.microseconds, report.device);
  if (kernel.launches > 1)
    text += fmt::format(", {:.0f} times", kernel.launches);
  return text;
}

/// What is known of the kernels of an instruction, or why nothing is.
std::string kernelsText(Document &document, const NamedInstruction &instruction) {
  const std::optional<KernelReport> &report = document.kernels;
  if (!report)
    return "kernel: not known, " + document.whyNoKernels;
  if (!report->refusal.empty())
    return "kernel: not known, " + report->refusal;
  auto found = report->kernelsAt.find(instruction.nameToken);
  if (found == report->kernelsAt.end())
    return "kernel: none; it is simplified away, only names memory, or is not reached from the entry";
  constexpr size_t most = 4;
  std::string text;
  for (uint32_t index : llvm::ArrayRef(found->second).take_front(most))
    text += (text.empty() ? "" : "\n\n") + kernelText(report->kernels[index], *report);
  if (found->second.size() > most)
    text += fmt::format("\n\nand {} more", found->second.size() - most);
  return text;
}

/// As a block of code, which the text cannot end.
std::string code(llvm::StringRef text) {
  constexpr size_t most = 300;
  std::string shown = text.take_front(most).str();
  if (text.size() > most)
    shown += " ...";
  size_t fence = 3;
  while (llvm::StringRef(shown).contains(std::string(fence, '`')))
    ++fence;
  return std::string(fence, '`') + "hlo\n" + shown + "\n" + std::string(fence, '`');
}

void addPart(std::string &text, const std::string &part) {
  if (!part.empty())
    text += (text.empty() ? "" : "\n\n") + part;
}

std::string instructionText(Document &document, uint32_t index) {
  const TextScan &scan = document.scan();
  const NamedInstruction &instruction = scan.instructions[index];
  std::string text = code(scan.slice(instruction.range));
  const HloInstruction *parsed = document.parsed(index);
  if (parsed)
    addPart(text, shapeText(parsed->shape()));
  else if (instruction.shape.isValid())
    addPart(text, "`" + scan.slice(instruction.shape).take_front(300).str() + "` as written; it was not read");
  else
    addPart(text, "shape: not known, the instruction has errors or uses what has");
  addPart(text, opcodeText(scan.slice(instruction.opcode)));
  if (parsed && !parsed->opName().empty())
    addPart(text, "from `" + parsed->opName().take_front(300).str() + "`");
  addPart(text, kernelsText(document, instruction));
  return text;
}

std::string computationText(const Document &, const TextScan &scan, uint32_t index) {
  const NamedComputation &computation = scan.computations[index];
  const uint32_t head = computation.open == none ? computation.range.end : computation.open;
  size_t callers = 0, instructions = 0;
  for (const NameUse &use : scan.uses)
    callers += use.ofComputation && use.target == index && !use.isDefinition;
  for (uint32_t i = computation.firstInstruction; i < computation.endInstruction; ++i)
    instructions += scan.instructions[i].computation == index;
  std::string text = code(scan.text.slice(computation.range.begin, head).rtrim());
  addPart(text,
          fmt::format("{} of {} {}, named in {} {}", computation.isEntry ? "the entry," : "a computation", instructions,
                      instructions == 1 ? "instruction" : "instructions", callers, callers == 1 ? "place" : "places"));
  return text;
}

std::string attributeText(const TextScan &scan, const ScannedToken &token, uint32_t offset) {
  const llvm::StringRef key = scan.text.slice(token.begin, token.end - 1);
  const std::optional<AttributeKey> known = parseAttributeKey(key);
  if (!known)
    return "";
  const uint32_t instruction = scan.instructionAt(offset);
  const llvm::StringRef opcode =
      instruction == none ? llvm::StringRef() : scan.slice(scan.instructions[instruction].opcode);
  std::string text = fmt::format("`{}={}`", key.str(), valueForm(*known, *grammarOf(key, opcode)));
  if (const std::optional<Opcode> code = parseOpcode(opcode))
    for (const AttributeSpec &spec : attributeSpecs(*code))
      if (spec.key == *known)
        text += fmt::format(": {} of `{}`", spec.required ? "required" : "optional", opcode.str());
  return text;
}

/// In Markdown.
void write(Out &out, const Document &document, const std::string &text, SourceRange range) {
  if (text.empty())
    return out.value(nullptr);
  out.object([&] {
    out.attributeObject("contents", [&] {
      out.attribute("kind", "markdown");
      out.attribute("value", textValue(text));
    });
    writeRange(out, "range", document.lines(), range);
  });
}

} // namespace

void hover(Document &document, uint32_t offset, Out &out) {
  const TextScan &scan = document.scan();
  if (const NameUse *use = scan.useAt(offset); use && use->target != none)
    return write(out, document,
                 use->ofComputation ? computationText(document, scan, use->target)
                                    : instructionText(document, use->target),
                 use->name);
  const uint32_t index = scan.tokenAt(offset);
  if (index == none)
    return out.value(nullptr);
  const ScannedToken &token = scan.tokens[index];
  const SourceRange range{token.begin, token.end};
  if (token.role == Role::AttributeKey)
    return write(out, document, attributeText(scan, token, offset), range);
  if (token.role == Role::Opcode) {
    std::string text = opcodeText(scan.slice(range));
    const std::optional<Opcode> opcode = parseOpcode(scan.slice(range));
    addPart(text, opcode ? attributesText(*opcode) : "");
    return write(out, document, text, range);
  }
  const uint32_t instruction = scan.instructionAt(offset);
  if (token.is(ScannedToken::Shape) && instruction != none) {
    const SourceRange shape = scan.instructions[instruction].shape;
    const HloInstruction *parsed = document.parsed(instruction);
    if (parsed && shape.isValid() && shape.begin <= token.begin && token.end <= shape.end)
      return write(out, document, shapeText(parsed->shape()), shape);
  }
  out.value(nullptr);
}

} // namespace hloc::lsp
