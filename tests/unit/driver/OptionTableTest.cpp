// Walks the table of options: what a row says holds on the command line, in the help and in what is made of it.

#include "driver/OptionTable.h"
#include "driver/CommandHelp.h"
#include "driver/Completions.h"
#include "driver/ManPage.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <catch2/catch.hpp>

using namespace hloc;

namespace {

using Words = std::vector<std::string>;

struct Parsed {
  bool isRefused;
  std::string messages;
};

Parsed parse(Subcommand command, const Words &words) {
  std::vector<const char *> arguments = {"hloc", nameOf(command)};
  for (const std::string &word : words)
    if (command != lspCommand || word.starts_with("-")) // which takes no input
      arguments.push_back(word.c_str());
  DiagnosticEngine diagnostics;
  Command parsed;
  const bool isRefused = !parseCommandLine(arguments, parsed, diagnostics);
  CHECK(isRefused == (diagnostics.exitCode() == ExitCode::InvalidUsage));
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  diagnostics.print(stream, /*colour=*/false);
  return {isRefused, llvm::join(words, " ") + ": " + messages};
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

llvm::SmallVector<llvm::StringRef> partsOf(const char *text, char separator) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text ? text : "").split(parts, separator, -1, /*KeepEmpty=*/false);
  return parts;
}

/// A value that the option takes.
std::string sampleValue(const OptionRow &row) {
  const llvm::StringRef value = row.value;
  if (row.words)
    return row.words().front();
  if (value == "FILE")
    return "f.ptx";
  if (value == "BOUNDS")
    return "exact";
  if (value == "TILE")
    return "128x128x32/3";
  return value == "DIR" ? "." : value == "N" || value == "GIB" || value == "SECONDS" ? "8" : "name";
}

std::string sample(const OptionRow &row) {
  return row.isSwitch() ? row.longName() : row.longName() + "=" + sampleValue(row);
}

/// A condition as a word of the command line.
std::string wordFor(Subcommand command, llvm::StringRef condition) {
  return condition.contains('=') ? condition.str() : sample(*findOption(command, condition));
}

void addNeeds(Subcommand command, const OptionRow &row, Words &words) {
  auto isThere = [&](llvm::StringRef condition) {
    return llvm::any_of(words,
                        [&](llvm::StringRef word) { return word.split('=').first == condition.split('=').first; });
  };
  auto alternatives = partsOf(row.needs, '|');
  llvm::erase_if(alternatives, [&](llvm::StringRef one) { return !findOption(command, one.split('=').first); });
  if (alternatives.empty() || llvm::any_of(alternatives, isThere))
    return;
  words.push_back(wordFor(command, alternatives.front()));
  addNeeds(command, *findOption(command, alternatives.front().split('=').first), words);
}

/// The option with all it needs.
Words lineFor(Subcommand command, const OptionRow &row) {
  Words words = {sample(row)};
  addNeeds(command, row, words);
  return words;
}

std::string inputFor(const OptionRow &row) {
  return row.firstInput == IrKind::Mlir ? "in.mlir" : row.firstInput == IrKind::Ptx ? "in.ptx" : "in.hlo";
}

Words operator+(Words one, const Words &other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

template <typename Function> void forEachOption(Function visit) {
  for (Subcommand command : subcommands)
    for (const OptionRow &row : optionRows())
      if ((row.commands & command) && !row.isPositional() && !row.isHelp())
        visit(command, row);
}

/// Whether a condition is about options that some command of the row takes, and values that they have.
bool isCondition(const OptionRow &row, llvm::StringRef condition) {
  auto [name, value] = condition.split('=');
  for (Subcommand command : subcommands)
    if (const OptionRow *other = findOption(command, name); other && (row.commands & command)) {
      const bool isClosed = other->words && other->wordUse != WordUse::Offered;
      return value.empty() || !isClosed || llvm::is_contained(other->words(), value);
    }
  return false;
}

} // namespace

TEST_CASE("rows are about options and values that there are") {
  std::set<std::pair<Subcommand, std::string>> names;
  for (const OptionRow &row : optionRows()) {
    INFO(row.names);
    CHECK(row.commands != 0);
    CHECK(row.group[0]);
    CHECK(row.help[0]);
    for (Subcommand command : subcommands)
      if (row.commands & command)
        CHECK(names.emplace(command, row.longName()).second);
    for (auto [conditions, separator] :
         {std::pair(row.needs, '|'), {row.excludes, ' '}, {row.sameAs, ' '}, {row.questionTakes, ' '}})
      for (llvm::StringRef condition : partsOf(conditions, separator)) {
        INFO(condition.str());
        CHECK(isCondition(row, condition));
      }
    if (row.lone)
      CHECK(llvm::is_contained(row.words(), row.lone));
    CHECK((!row.bare || row.value));
    CHECK((row.read || row.isHelp() || row.sameAs || row.group == llvm::StringRef(passGroup) ||
           llvm::StringRef(row.names).contains("dump")));
  }
}

TEST_CASE("an option is taken with what it needs, and with an input that it is about") {
  forEachOption([](Subcommand command, const OptionRow &row) {
    if (row.onlyWarns)
      return;
    Parsed parsed = parse(command, lineFor(command, row) + Words{inputFor(row)});
    INFO(parsed.messages);
    CHECK(!parsed.isRefused);
  });
}

TEST_CASE("an option is refused without what it needs") {
  size_t count = 0;
  forEachOption([&](Subcommand command, const OptionRow &row) {
    if (!row.needs || (command == runCommand && llvm::StringRef(row.needs).contains("--platform=emulator")))
      return; // of the emulator, which is there by default, below
    Parsed parsed = parse(command, {sample(row), inputFor(row)});
    INFO(parsed.messages);
    CHECK(parsed.isRefused);
    CHECK(has(parsed.messages, row.longName() + " needs "));
    ++count;
  });
  CHECK(count > 15);
  for (const OptionRow &row : optionRows())
    if (llvm::StringRef(row.needs).starts_with("--platform=emulator")) {
      Parsed parsed = parse(runCommand, {sample(row), "--platform=interpreter", "in.hlo"});
      INFO(parsed.messages);
      CHECK(parsed.isRefused);
      CHECK(has(parsed.messages, row.longName() + " needs --platform=emulator"));
    }
}

TEST_CASE("options that exclude each other are refused together") {
  size_t count = 0;
  forEachOption([&](Subcommand command, const OptionRow &row) {
    for (llvm::StringRef condition : partsOf(row.excludes, ' ')) {
      Words words = lineFor(command, row) + Words{wordFor(command, condition)};
      addNeeds(command, *findOption(command, condition.split('=').first), words);
      Parsed parsed = parse(command, words + Words{inputFor(row)});
      INFO(parsed.messages);
      CHECK(parsed.isRefused);
      CHECK(has(parsed.messages, " exclude each other"));
      ++count;
    }
    if (row.sameAs) {
      Parsed parsed = parse(command, {row.longName(), row.sameAs, "in.hlo"});
      INFO(parsed.messages);
      CHECK(parsed.isRefused);
    }
  });
  CHECK(count > 15);
}

TEST_CASE("no two options write to standard output") {
  for (Subcommand command : {compileCommand, runCommand}) {
    struct Writer {
      const OptionRow *row;
      std::string word;
      bool owns;
    };
    std::vector<Writer> writers;
    forEachOption([&](Subcommand of, const OptionRow &row) {
      if (of != command)
        return;
      const llvm::StringRef owned = row.ownsOutput ? row.ownsOutput : "";
      if (owned == "*")
        writers.push_back({&row, sample(row), true});
      else if (!owned.empty())
        writers.push_back({&row, row.longName() + "=" + owned.str(), true});
      if (row.reports)
        writers.push_back({&row, row.longName(), false});
    });
    CHECK(writers.size() >= (command == compileCommand ? 15 : 5));
    for (const Writer &one : writers)
      for (const Writer &other : writers) {
        if (one.row == other.row)
          continue;
        Parsed parsed = parse(command, {one.word, other.word, "in.hlo"});
        INFO(parsed.messages);
        CHECK(parsed.isRefused == (one.owns || other.owns));
        const bool isQuestion = one.row->questionTakes || other.row->questionTakes;
        CHECK((isQuestion || has(parsed.messages, "both write to standard output") == parsed.isRefused));
      }
  }
}

TEST_CASE("an option without effect is refused: where hloc ends before it, and on other inputs") {
  size_t count = 0;
  forEachOption([&](Subcommand command, const OptionRow &row) {
    if (!(command & (compileCommand | runCommand)) || row.questionTakes)
      return;
    if (row.stage > Stage::Verify) {
      Words ends = {command == compileCommand ? "--stop-after=verify" : "--platform=interpreter", inputFor(row)};
      Parsed parsed = parse(command, lineFor(command, row) + ends);
      INFO(parsed.messages);
      const bool ownsStage = row.longName() == "--only" && command == runCommand; // what is left is interpreted
      CHECK(parsed.isRefused == (!row.onlyWarns && !ownsStage));
      CHECK(has(parsed.messages, " has no effect: ") == !ownsStage);
      ++count;
    }
    for (auto [kind, input] : {std::pair(IrKind::Hlo, "in.hlo"),
                               {IrKind::Mlir, "in.mlir"},
                               {IrKind::Llvm, "in.ll"},
                               {IrKind::Ptx, "in.ptx"}}) {
      if (command == runCommand || (kind >= row.firstInput && kind <= row.lastInput))
        continue;
      Parsed parsed = parse(command, lineFor(command, row) + Words{"-o", "f.cubin", input});
      INFO(parsed.messages);
      CHECK((parsed.isRefused || row.onlyWarns));
      CHECK((has(parsed.messages, " has no effect: it is about ") || has(parsed.messages, "name different kinds")));
      ++count;
    }
  });
  CHECK(count > 60);
}

TEST_CASE("what prints something instead of compiling takes no other options than those it is about") {
  forEachOption([](Subcommand command, const OptionRow &question) {
    const bool always = question.ownsOutput == llvm::StringRef("*");
    if (!question.questionTakes || !always)
      return;
    forEachOption([&](Subcommand of, const OptionRow &row) {
      if (of != command || &row == &question)
        return;
      Parsed parsed = parse(command, {sample(question), sample(row)});
      INFO(parsed.messages);
      const bool taken = llvm::is_contained(partsOf(question.questionTakes, ' '), row.longName());
      CHECK(parsed.isRefused == !taken);
    });
  });
}

TEST_CASE("values that there are not, and what stands alone, are refused") {
  forEachOption([](Subcommand command, const OptionRow &row) {
    Words wrong;
    if (!row.value)
      wrong.push_back(row.longName() + "=5");
    if (row.words && row.wordUse != WordUse::Offered)
      wrong.push_back(row.longName() + "=nothing-of-the-kind");
    if (row.lone)
      wrong.push_back(row.longName() + "=" + row.lone + "," + row.words().front());
    for (const std::string &word : wrong) {
      Parsed parsed = parse(command, {word, "in.hlo"});
      INFO(parsed.messages);
      CHECK(parsed.isRefused);
      CHECK(has(parsed.messages, "error: " + row.longName() + " takes ") !=
            has(parsed.messages, "error: " + row.longName() + " does not take "));
    }
  });
}

TEST_CASE("what is known to make no sense stays refused, whatever the table says") {
  const std::pair<Subcommand, Words> lines[] = {
      {compileCommand, {"--explain", "--manifest=-"}},
      {compileCommand, {"--lint=json", "--explain"}},
      {compileCommand, {"--estimate=json", "--list-kernels"}},
      {compileCommand, {"--lint", "--lint-only=spills", "--lint-disable=cas-loop"}},
      {compileCommand, {"--launch=f.json"}},
      {compileCommand, {"--keep-going", "--golden=d"}},
      {compileCommand, {"--only=a", "--golden=d", "--update-golden"}},
      {compileCommand, {"--xla_dump_to=d", "--dump-after-each-pass=e"}},
      {compileCommand, {"--v=4", "--dump-changed"}},
      {compileCommand, {"--explain", "--stop-after=verify"}},
      {compileCommand, {"--list-kernels", "--emit=hlo-fused", "-o", "f.hlo"}},
      {runCommand, {"--shrink", "--only=a"}},
      {runCommand, {"--seed=1", "--inputs=f.npz"}},
      {runCommand, {"--regimes=exact,special", "--expected=f.npz"}},
      {runCommand, {"--ptx=f.ptx", "--manifest=f.json", "--platform=interpreter"}},
      {runCommand, {"--ptx=f.ptx", "--manifest=f.json", "--launch=g.json"}},
      {runCommand, {"--ptx=f.ptx", "--launch=g.json", "--compare-steps"}},
      {runCommand, {"--ptx=f.ptx", "--launch=g.json", "--target=sm_80"}},
      {runCommand, {"--expected=f.npz", "--compare=steps"}},
      {runCommand, {"--tolerance=exact", "--reference=none"}},
      {runCommand, {"--compare=both", "--reference=none"}},
      {runCommand, {"--check=races", "--platform=cuda"}},
      {runCommand, {"--target=sm_80,sm_90"}},
      {optCommand, {"--max-vector-bytes=16"}},
  };
  for (const auto &[command, words] : lines) {
    Parsed parsed = parse(command, words + Words{"in.hlo"});
    INFO(parsed.messages);
    CHECK(parsed.isRefused);
  }
  // Tables of a run are parts of one report; a target is what an estimate is for.
  CHECK(!parse(runCommand, {"--counters", "--estimate", "in.hlo"}).isRefused);
  CHECK(!parse(runCommand, {"--ptx=f.ptx", "--launch=g.json", "--target=sm_80", "--estimate", "in.hlo"}).isRefused);
}

TEST_CASE("an option of another command is said to be one") {
  Parsed parsed = parse(runCommand, {"--keep-going", "in.hlo"});
  CHECK(parsed.isRefused);
  CHECK(has(parsed.messages, "`hloc run` does not take --keep-going, `hloc compile` does"));
}

TEST_CASE("every option is in the help, the manual page and the completions") {
  const std::vector<CommandHelp> commands = describeCommands();
  const std::string man = manPage(commands), bash = bashCompletion(commands), zsh = zshCompletion(commands),
                    fish = fishCompletion(commands);
  for (Subcommand command : subcommands) {
    const std::string help = helpText(describeCommand(command), HelpExtent::All);
    for (const OptionRow &row : optionRows()) {
      if (!(row.commands & command))
        continue;
      INFO(nameOf(command) << " " << row.names);
      std::string words = help; // the help is filled to a width
      words = llvm::join(partsOf(words.c_str(), '\n'), " ");
      std::string text;
      for (llvm::StringRef word : partsOf(words.c_str(), ' '))
        text += (text.empty() ? "" : " ") + word.str();
      CHECK(has(text, row.help));
      if (row.isPositional())
        continue;
      const std::string name = row.longName(), bare = name.substr(2);
      std::string escaped;
      for (char c : name)
        escaped += c == '-' ? "\\-" : std::string(1, c);
      CHECK(has(text, name));
      CHECK(has(man, "\\fB" + escaped + "\\fR"));
      CHECK((has(bash, " " + name + (row.isSwitch() ? "" : "="))));
      CHECK(has(zsh, name + (row.value ? row.bare ? "=-[" : "=[" : "[")));
      CHECK(has(fish, std::string("'__hloc_command ") + nameOf(command) + "'"));
      CHECK(has(fish, " -l " + bare + " "));
    }
  }
}

TEST_CASE("--help has the options that most need, and says how many more there are") {
  for (Subcommand command : subcommands) {
    const std::string basic = helpText(describeCommand(command), HelpExtent::Basic),
                      all = helpText(describeCommand(command), HelpExtent::All);
    INFO(nameOf(command));
    size_t numBasic = 0, numOptions = 0;
    for (const OptionRow &row : optionRows()) {
      if (!(row.commands & command) || row.isPositional())
        continue;
      ++numOptions;
      numBasic += (row.basicIn & command) != 0;
      // At the start of a line; the words of others may name it.
      std::string name = "\n  " + llvm::StringRef(row.names).split(',').first.str();
      INFO(row.names);
      CHECK(has(all + "\n", name));
      if (command & (compileCommand | runCommand))
        CHECK((has(basic, name + " ") || has(basic, name + ",") || has(basic, name + "[")) ==
              ((row.basicIn & command) != 0));
    }
    if (command & (compileCommand | runCommand)) {
      CHECK(numBasic >= 15);
      CHECK(numBasic <= 25);
      CHECK(has(basic, "\n" + std::to_string(numOptions - numBasic) + " more options: "));
    } else { // few options, all of which are in both
      CHECK(numBasic == 0);
      CHECK(basic == all);
    }
    CHECK_FALSE(has(all, "more options"));
  }
}
