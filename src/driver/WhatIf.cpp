#include "WhatIf.h"

#include "Compile.h"
#include "Estimates.h"
#include "OptionTable.h"

#include "hloc/fusion/FusionPlan.h"
#include "hloc/support/Suggestion.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

namespace hloc {

//===--- spelling -----------------------------------------------------------------------------------------------===//

namespace {

constexpr llvm::StringRef forcedNames[] = {"hero", "tile", "vector", "parts", "rounds", "fuse", "split"};

/// `[KERNEL:]name=value`
struct Spelled {
  llvm::StringRef kernel, name, value;
  explicit Spelled(llvm::StringRef text) {
    llvm::StringRef before;
    std::tie(before, value) = text.split('=');
    std::tie(kernel, name) = before.rsplit(':');
    if (name.empty() && !before.contains(':'))
      std::swap(kernel, name);
    kernel.consume_front("%");
  }
};

std::string unknownName(llvm::StringRef text, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known) {
  return fmt::format("does not take `{}`{}; it takes {}", text.str(), suggestion(nearestName(name, known)),
                     llvm::join(known, ", "));
}

std::string readEdge(ForcedChoices &choices, llvm::StringRef text, const Spelled &spelled) {
  auto [producer, user] = spelled.value.split(',');
  producer = producer.trim();
  user = user.trim();
  producer.consume_front("%");
  user.consume_front("%");
  if (producer.empty() || user.empty() || user.contains(','))
    return fmt::format("has two instructions in `{}`, a producer and who reads it: {}=A,B", text.str(),
                       spelled.name.str());
  if (!spelled.kernel.empty())
    return fmt::format("names instructions in `{}`, and no kernel", text.str());
  choices.edges.push_back({text.str(), producer.str(), user.str(), spelled.name == "fuse"});
  return "";
}

std::string readHero(PlanChoices &choices, llvm::StringRef value) {
  llvm::SmallVector<llvm::StringRef> heroes;
  for (const HeroRow &hero : heroRows())
    heroes.push_back(hero.name);
  choices.hero = value.str();
  return llvm::is_contained(heroes, value)
             ? ""
             : fmt::format("knows no hero `{}`{}; `hloc --list-heroes` shows what there is", value.str(),
                           suggestion(nearestName(value, heroes)));
}

} // namespace

std::string readForcedChoice(ForcedChoices &choices, llvm::StringRef text) {
  const Spelled spelled(text);
  if (!llvm::is_contained(forcedNames, spelled.name))
    return unknownName(text, spelled.name, forcedNames);
  if (spelled.name == "fuse" || spelled.name == "split")
    return readEdge(choices, text, spelled);
  ForcedKernel &kernel = choices.kernels.emplace_back(ForcedKernel{text.str(), spelled.kernel.str(), {}});
  if (spelled.name == "hero")
    return readHero(kernel.choices, spelled.value);
  if (spelled.name == "tile") {
    kernel.choices.tile = TileSizes::parse(spelled.value);
    return kernel.choices.tile
               ? ""
               : fmt::format("has four numbers in a tile, as 128x256x32/3 has, `{}` has not", spelled.value.str());
  }
  if (spelled.name == "parts" || spelled.name == "rounds") {
    int64_t &number = spelled.name == "parts" ? kernel.choices.parts : kernel.choices.rounds;
    constexpr int64_t most = 1 << 20;
    return !spelled.value.getAsInteger(10, number) && number > 0 && number <= most
               ? ""
               : fmt::format("takes a number of {} from 1 up, not `{}`", spelled.name.str(), spelled.value.str());
  }
  unsigned &vector = kernel.choices.vector;
  return !spelled.value.getAsInteger(10, vector) && vector <= mostOfForcedVector && llvm::isPowerOf2_32(vector)
             ? ""
             : fmt::format("takes a power of two up to {} as vector, not `{}`", mostOfForcedVector,
                           spelled.value.str());
}

llvm::ArrayRef<llvm::StringRef> whatIfOptions() {
  static constexpr llvm::StringRef names[] = {"fusion",       "dots",    "convolutions",
                                              "f32-dots",     "softmax", "fast-math",
                                              "disable-pass", "target",  "optimization-level"};
  return names;
}

/// One option, as if it stood on the command line as well.
static std::string applyOption(CompileOptions &options, llvm::StringRef name, llvm::StringRef value) {
  const OptionRow &row = *findOption(compileCommand, ("--" + name).str());
  std::vector<std::string> values;
  llvm::SmallVector<llvm::StringRef> parts;
  if (row.isList)
    value.split(parts, ',');
  else
    parts.push_back(value);
  for (llvm::StringRef part : parts)
    values.push_back(part.str());
  std::string refusal = wordRefusal(row, values);
  if (refusal.empty() && row.lone && values.front() == row.lone)
    refusal = fmt::format("does not take `{}` here", values.front());
  Command command;
  if (refusal.empty())
    refusal = row.read(command, values);
  if (!refusal.empty())
    return fmt::format("has an option {} that {}", name.str(), refusal);
  auto add = [](std::vector<std::string> &to, const std::vector<std::string> &from) { llvm::append_range(to, from); };
  const CompileOptions &read = command.compile;
  if (name == "fusion")
    options.fusion = read.fusion;
  else if (name == "dots")
    options.dots = read.dots;
  else if (name == "convolutions")
    options.convolutions = read.convolutions;
  else if (name == "f32-dots")
    options.f32Dots = read.f32Dots;
  else if (name == "softmax")
    options.softmax = read.softmax;
  else if (name == "optimization-level")
    options.optimizationLevel = read.optimizationLevel;
  else if (name == "target")
    options.targets = read.targets;
  else
    add(name == "fast-math" ? options.fastMath : options.disabledPasses,
        name == "fast-math" ? read.fastMath : read.disabledPasses);
  return options.targets.size() > 1 && name == "target" ? "compares with one target at a time" : "";
}

std::string applyWhatIf(CompileOptions &options, llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> words, known(forcedNames, std::end(forcedNames));
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  llvm::append_range(known, whatIfOptions());
  if (words.empty())
    return unknownName(text, "", known);
  for (llvm::StringRef word : words) {
    word.consume_front("--");
    const Spelled spelled(word);
    if (!llvm::is_contained(known, spelled.name))
      return unknownName(word, spelled.name, known);
    const bool isForced = llvm::is_contained(forcedNames, spelled.name);
    if (!isForced && !spelled.kernel.empty())
      return fmt::format("has no option {} of a kernel alone", spelled.name.str());
    if (std::string refusal =
            isForced ? readForcedChoice(options.forced, word) : applyOption(options, spelled.name, spelled.value);
        !refusal.empty())
      return refusal;
  }
  return "";
}

//===--- answers ------------------------------------------------------------------------------------------------===//

std::vector<WhatIf> estimateWhatIfs(const HloModule &module, const CompileOptions &options, const TargetInfo &target,
                                    const Toolchain &toolchain, const std::optional<AssembleOptions> &assembling) {
  std::vector<WhatIf> whatIfs;
  for (const std::string &text : options.whatIfs) {
    CompileOptions other = options;
    other.targets = {target};
    applyWhatIf(other, text); // it has been read before
    const TargetInfo &its = other.targets.front();
    const CompiledWay way{compilerOptions(other), its, &deviceFor(other, its), other.only, assembling};
    whatIfs.push_back({text, estimateWay(module, way, toolchain)});
  }
  return whatIfs;
}

/// `m_0`, and what it makes if that is called otherwise: `m_0: soft, d`.
static std::string labelOf(const KernelChange &change) {
  constexpr size_t most = 3;
  if (change.makes.empty() || (change.makes.size() == 1 && change.makes.front() == change.name))
    return change.name;
  const llvm::ArrayRef<std::string> shown = llvm::ArrayRef(change.makes).take_front(most);
  return fmt::format("{}: {}{}", change.name, llvm::join(shown, ", "), change.makes.size() > most ? ", ..." : "");
}

static std::string table(const EstimatedWay &now, const WhatIf &whatIf) {
  using Side = std::optional<KernelChange::Side>;
  const double before = now.seconds * 1e6, after = whatIf.then.seconds * 1e6;
  std::vector<KernelChange> changes = changesBetween(now, whatIf.then);
  const size_t all = changes.size();
  llvm::erase_if(changes, [](const KernelChange &change) { return change.isSame(); });
  if (changes.empty())
    return fmt::format("what if {}: {:.2f} us in all, no kernel takes more or less\n", whatIf.text, after);
  std::string text = fmt::format("what if {}: {:.2f} us in all instead of {:.2f}, {:.2f} times\n", whatIf.text, after,
                                 before, after / before);
  size_t width = 6, ofBound = 7;
  for (const KernelChange &change : changes) {
    width = std::max(width, labelOf(change).size());
    for (const Side *side : {&change.now, &change.then})
      ofBound = std::max(ofBound, *side ? (*side)->bound.size() : 0);
  }
  auto line = [&](const std::string &name, const std::string &first, const std::string &itsBound,
                  const std::string &second, const std::string &other, const std::string &more) {
    text += fmt::format("{:<{}} {:>9}  {:<{}} {:>9}  {:<{}} {:>9}\n", name, width, first, itsBound, ofBound, second,
                        other, ofBound, more);
  };
  auto seconds = [](const Side &side) { return side ? side->seconds : 0; };
  auto time = [](const Side &side) { return side ? fmt::format("{:.2f}", side->seconds * 1e6) : "-"; };
  auto bound = [](const Side &side) { return side ? side->bound : ""; };
  line("kernel", "now", "bound", "then", "bound", "more");
  for (const KernelChange &change : changes)
    line(labelOf(change), time(change.now), bound(change.now), time(change.then), bound(change.then),
         fmt::format("{:+.2f}", (seconds(change.then) - seconds(change.now)) * 1e6));
  if (const size_t same = all - changes.size())
    text += same == 1 ? "another as it is now\n" : fmt::format("{} others as they are now\n", same);
  return text;
}

/// Without the choice itself, which stands before it anyway.
static std::string reasonOf(const WhatIf &whatIf) {
  llvm::StringRef reason = whatIf.then.refusal;
  if (reason.consume_front(whatIf.text))
    reason.consume_front(" cannot be had: ");
  return reason.str();
}

std::string printWhatIfs(const EstimatedWay &now, llvm::ArrayRef<WhatIf> whatIfs) {
  std::string text;
  for (const WhatIf &whatIf : whatIfs)
    text += "\n" + (whatIf.then.module ? table(now, whatIf)
                                       : fmt::format("what if {}: not possible: {}\n", whatIf.text, reasonOf(whatIf)));
  return text;
}

static void writeSide(llvm::json::OStream &json, const char *when, const std::optional<KernelChange::Side> &side) {
  if (side)
    json.attributeObject(when, [&] {
      json.attribute("total_us", side->seconds * 1e6);
      json.attribute("bound", side->bound);
    });
}

void writeWhatIfs(llvm::json::OStream &json, const EstimatedWay &now, llvm::ArrayRef<WhatIf> whatIfs) {
  auto write = [&](const WhatIf &whatIf) {
    json.attribute("choice", whatIf.text);
    json.attribute("possible", whatIf.then.module.has_value());
    if (!whatIf.then.module) {
      json.attribute("reason", reasonOf(whatIf));
      return;
    }
    json.attribute("total_us", whatIf.then.seconds * 1e6);
    json.attribute("more_us", (whatIf.then.seconds - now.seconds) * 1e6);
    if (now.seconds > 0)
      json.attribute("ratio", whatIf.then.seconds / now.seconds);
    json.attributeArray("kernels", [&] {
      for (const KernelChange &change : changesBetween(now, whatIf.then))
        json.object([&] {
          json.attribute("name", change.name);
          json.attributeArray("makes", [&] {
            for (const std::string &one : change.makes)
              json.value(one);
          });
          writeSide(json, "now", change.now);
          writeSide(json, "then", change.then);
        });
    });
  };
  json.attributeArray("what_if", [&] {
    for (const WhatIf &whatIf : whatIfs)
      json.object([&] { write(whatIf); });
  });
}

} // namespace hloc
