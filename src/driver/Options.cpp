// From the words of a command line to what they ask for, by the table.

#include "Options.h"

#include "CommandHelp.h"
#include "OptionRules.h"
#include "OptionTable.h"
#include "Outputs.h"
#include "PassList.h"
#include "SystemEnvironment.h"

#include "hloc/support/Diagnostics.h"
#include "hloc/support/Suggestion.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <cstdlib>
#include <map>

namespace hloc {

namespace {

constexpr const char *noPassOptions = "-";

/// A command line on its way to a Command.
class CommandLine {
public:
  CommandLine(Subcommand subcommand, Command &command, DiagnosticEngine &diagnostics)
      : command(command), diagnostics(diagnostics), app("", "hloc"), given(subcommand) {
    command.subcommand = subcommand;
    for (const OptionRow &row : optionRows())
      if (row.commands & subcommand)
        declare(row);
    if (subcommand == optCommand)
      for (const PassRow &pass : optPasses())
        passes[app.add_flag("--" + pass.name + "{" + noPassOptions + "}")] = pass.name;
  }

  /// False after errors were reported.
  bool parse(llvm::ArrayRef<const char *> arguments) {
    try {
      app.parse(arguments.size(), arguments.data());
    } catch (const CLI::CallForHelp &) {
      command.help = true;
      return true;
    } catch (const CLI::CallForAllHelp &) {
      command.help = command.helpAll = true;
      return true;
    } catch (const CLI::ParseError &error) {
      diagnostics.report(DiagnosticKind::BadUsage, usageError(app, error, given.command))
          .note(fmt::format("`{} --help-all` lists the options", calledAs(given.command)));
      if (llvm::any_of(arguments, [](llvm::StringRef word) { return word == "--diagnostics=json"; }))
        command.compile.diagnosticForm = DiagnosticForm::Json; // nothing has been read, and a program wants to know why
      return false;
    }
    read();
    if (!diagnostics.hasErrors())
      settle();
    if (diagnostics.hasErrors())
      return false;
    std::string refusal = command.answer ? questionContradiction(given) : contradiction(command, given, diagnostics);
    if (!refusal.empty())
      diagnostics.report(DiagnosticKind::BadUsage, std::move(refusal));
    else if (command.answer && !command.compile.inputs.empty())
      diagnostics.report(DiagnosticKind::IgnoredInput,
                         fmt::format("nothing is compiled: `{}` is not read", command.compile.inputs.front()));
    command.run.compile = command.compile;
    return !diagnostics.hasErrors();
  }

private:
  /// CLI11 takes the line apart; what its words mean is the table's business.
  void declare(const OptionRow &row) {
    if (row.isHelp()) {
      row.isHelpAll() ? app.set_help_all_flag(row.names) : app.set_help_flag(row.names);
      return;
    }
    CLI::Option *option = row.isSwitch()
                              ? app.add_flag(row.bare ? fmt::format("{}{{{}}}", row.names, row.bare) : row.names)
                              : app.add_option(row.names);
    if (row.value)
      option->type_name(row.value);
    if (row.isList || row.repeats)
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (row.isList)
      option->delimiter(',');
    if (row.repeats && row.isPositional())
      option->expected(-1);
    declared[&row] = option;
    if (row.group == passGroup)
      passes[option] = "";
  }

  /// What is neither given nor has a value by default stays as it is.
  void read() {
    for (const auto &[row, option] : declared) {
      std::vector<std::string> values = option->results();
      std::string refusal = values.empty() ? "" : wordRefusal(*row, values);
      if (!values.empty() && refusal.empty())
        refusal = give(*row, std::move(values));
      else if (values.empty() && row->byDefault && row->read)
        refusal = row->read(command, {row->byDefault});
      if (!refusal.empty())
        diagnostics.report(DiagnosticKind::BadUsage, row->longName() + " " + refusal);
    }
    command.opt.passes = passesInOrder();
  }

  /// What is wrong with the values; empty if nothing is.
  std::string give(const OptionRow &row, std::vector<std::string> values) {
    if (row.sameAs) {
      auto [name, value] = llvm::StringRef(row.sameAs).split('=');
      return given.has(name) ? fmt::format("and {} exclude each other", name.str())
                             : give(*findOption(given.command, name), {value.str()});
    }
    std::string refusal = row.read ? row.read(command, values) : "";
    given.give(row, std::move(values));
    return refusal;
  }

  /// The elements of a textual pipeline, in the order of the command line.
  std::vector<std::string> passesInOrder() const {
    std::vector<std::string> elements;
    std::map<const CLI::Option *, size_t> numSeen;
    for (const CLI::Option *option : app.parse_order()) {
      auto pass = passes.find(option);
      if (pass == passes.end())
        continue;
      const std::string &value = option->results().at(numSeen[option]++);
      elements.push_back(pass->second.empty()     ? value
                         : value == noPassOptions ? pass->second
                                                  : pass->second + "{" + value + "}");
    }
    return elements;
  }

  /// What follows from several options.
  void settle() {
    CompileOptions &options = command.compile;
    options.toolchain.environment = systemEnvironment;
    std::string problem;
    options.cache = CacheSettings::of(systemEnvironment, problem);
    if (!problem.empty())
      diagnostics.report(DiagnosticKind::BadUsage, std::move(problem));
    if (given.command & (reduceCommand | bisectCommand | replayCommand))
      settleSearch();
    command.compare.inputs = options.inputs;
    command.compare.colour = options.colour;
    if (!(given.command & (compileCommand | runCommand)) || command.answer)
      return;
    settleDumps(options.dump);
    if (given.command == compileCommand && given.has("--what-if") && !given.has("--estimate")) {
      given.give("--estimate", {"table"});
      options.estimate = true;
    }
    if (options.remarks)
      warnOfIdleRemarks(*options.remarks);
    options.targetGiven = given.has("--target");
    if (options.f32Dots == F32Dots::Tf32)
      warnOfTargetsWithoutTf32(options.targets);
    if (given.command == runCommand) {
      options.lineInfo = true; // findings name HLO instructions; the code is the same
      return;
    }
    if (std::optional<EmitKind> kind = kindOfSuffix(options.output); kind && !given.has("--emit"))
      options.emit = *kind;
    given.settle("--emit", nameOf(options.emit));
    options.kindGiven = given.has("--emit");
    options.outputAsked = given.has("--output") || options.kindGiven;
    for (const OptionRow *row : given.rows()) {
      options.outputWanted &= !row->replacesOutput || options.outputAsked;
      options.needsKernels |= row->stage == Stage::Ptx;
    }
  }

  void settleSearch() {
    ReduceOptions &options = command.reduce;
    options.input = command.compile.inputs.empty() ? "" : command.compile.inputs.front();
    options.colour = command.compile.colour;
    options.progress = command.compile.progress;
  }

  void settleDumps(DumpOptions &dump) {
    unsigned verbosity = 0;
    if (given.has("--v") && !llvm::StringRef(given.valueOf("--v")).getAsInteger(10, verbosity) && verbosity < 5)
      given.forget("--v");
    readXlaFlags(dump);
    const bool isOwn = given.has("--dump-after-each-pass"), isXla = given.has("--xla_dump_to");
    dump.enabled = isOwn || isXla || given.has("--v");
    dump.xlaStyle = isXla && !isOwn;
    dump.folder = isOwn ? given.valueOf("--dump-after-each-pass") : isXla ? given.valueOf("--xla_dump_to") : "";
    if (isOwn && dump.folder == "-")
      dump.folder.clear();
  }

  /// XLA_FLAGS holds many flags of another program: the dump flags are read, the rest is named once.
  void readXlaFlags(DumpOptions &dump) {
    const char *flags = std::getenv("XLA_FLAGS");
    if (!flags)
      return;
    std::string ignored;
    llvm::SmallVector<llvm::StringRef> words;
    llvm::StringRef(flags).split(words, ' ', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef word : words) {
      auto [name, value] = word.split('=');
      name.consume_front("--");
      if (name == "xla_dump_to" && !given.has("--xla_dump_to") && !given.has("--dump-after-each-pass"))
        given.give("--xla_dump_to", {value.str()});
      else if (name == "xla_dump_hlo_pass_re" && dump.hloFilter.empty() && llvm::Regex(value).isValid())
        dump.hloFilter = value.str();
      else if (name == "xla_dump_emitter_re" && dump.emitterFilter.empty() && llvm::Regex(value).isValid())
        dump.emitterFilter = value.str();
      else if (name != "xla_dump_hlo_as_text" || value == "false")
        ignored += (ignored.empty() ? "" : ", ") + name.str();
    }
    bool filters = !dump.hloFilter.empty() || !dump.emitterFilter.empty();
    if (filters && !given.has("--xla_dump_to") && llvm::StringRef(flags).contains("xla_dump_"))
      ignored += (ignored.empty() ? "" : ", ") + std::string("dump filters without xla_dump_to");
    if (!ignored.empty())
      diagnostics.report(DiagnosticKind::IgnoredInput, "XLA_FLAGS is read for dump flags only; ignored: " + ignored);
  }

  void warnOfTargetsWithoutTf32(llvm::ArrayRef<TargetInfo> targets) {
    for (const TargetInfo &target : targets)
      if (!target.hasTf32())
        diagnostics.report(
            DiagnosticKind::IgnoredInput,
            fmt::format("{} has no tf32: its dots of f32 stay f32, whatever --f32-dots says", target.name));
  }

  void warnOfIdleRemarks(const std::string &expression) {
    std::vector<std::string> kinds = findOption(given.command, "--remarks")->words();
    if (llvm::none_of(kinds, [&](const std::string &kind) { return llvm::Regex(expression).match(kind); }))
      diagnostics.report(DiagnosticKind::IgnoredInput,
                         fmt::format("no kind of remark has a name that --remarks={} matches; there are {}", expression,
                                     llvm::join(kinds, ", ")));
  }

  Command &command;
  DiagnosticEngine &diagnostics;
  CLI::App app;
  std::map<const OptionRow *, CLI::Option *> declared; ///< in the order of the table, in which the rows lie
  /// What `hloc opt` runs: the name of a pass, or none if it is the value.
  std::map<const CLI::Option *, std::string> passes;
  GivenOptions given;
};

} // namespace

const char *nameOf(Subcommand command) {
  switch (command) {
  case compileCommand:
    return "compile";
  case runCommand:
    return "run";
  case optCommand:
    return "opt";
  case reduceCommand:
    return "reduce";
  case bisectCommand:
    return "bisect";
  case replayCommand:
    return "replay";
  case comparisonCommand:
    return "compare";
  case lspCommand:
    return "lsp";
  }
  return "";
}

std::string calledAs(Subcommand command) {
  return command == compileCommand ? "hloc" : std::string("hloc ") + nameOf(command);
}

/// Behind `--` are options of `hloc run`, which has to understand them.
static bool parseSubcommand(Subcommand subcommand, llvm::ArrayRef<const char *> arguments, Command &command,
                            DiagnosticEngine &diagnostics) {
  const auto *end = subcommand & (reduceCommand | bisectCommand | comparisonCommand)
                        ? llvm::find_if(arguments, [](llvm::StringRef word) { return word == "--"; })
                        : arguments.end();
  if (!CommandLine(subcommand, command, diagnostics).parse(arguments.take_front(end - arguments.begin())))
    return false;
  if (end == arguments.end() || command.help)
    return true;
  command.reduce.arguments.assign(end + 1, arguments.end());
  command.compare.arguments = command.reduce.arguments;
  std::vector<const char *> run = {"run", command.compile.inputs.front().c_str()};
  const std::string ptx = "--ptx=" + command.reduce.ptx;
  if (command.reduce.isPtx)
    run.push_back(ptx.c_str());
  run.insert(run.end(), end + 1, arguments.end());
  Command tried;
  return CommandLine(runCommand, tried, diagnostics).parse(run);
}

bool parseCommandLine(llvm::ArrayRef<const char *> arguments, Command &command, DiagnosticEngine &diagnostics) {
  for (Subcommand subcommand : subcommands)
    if (arguments.size() > 1 && llvm::StringRef(arguments[1]) == nameOf(subcommand))
      return parseSubcommand(subcommand, arguments.drop_front(), command, diagnostics);
  return CommandLine(compileCommand, command, diagnostics).parse(arguments);
}

} // namespace hloc
