#include "Completions.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace hloc {

namespace {

/// How a value is completed, in every shell.
enum class ValueKind { Words, Files, FilesWithSuffix, Folders, Nothing };

ValueKind kindOf(const OptionHelp &option) {
  llvm::StringRef value = option.value;
  if (!option.valueNames.empty())
    return ValueKind::Words;
  if (value == "DIR")
    return ValueKind::Folders;
  if (value == "FILE")
    return ValueKind::Files;
  bool hasSuffix = value.starts_with("FILE.") || value.starts_with("INPUT.");
  return hasSuffix ? ValueKind::FilesWithSuffix : ValueKind::Nothing;
}

/// `npz` of `FILE.npz`; `mlir` and `ll` of `INPUT.mlir|ll`.
llvm::SmallVector<llvm::StringRef> suffixesOf(const OptionHelp &option) {
  llvm::SmallVector<llvm::StringRef> suffixes;
  llvm::StringRef(option.value).split('.').second.split(suffixes, '|');
  return suffixes;
}

std::string replaceAll(llvm::StringRef text, char what, llvm::StringRef with) {
  std::string out;
  for (char c : text)
    out += c == what ? with.str() : std::string(1, c);
  return out;
}

std::string commandNames(const std::vector<CommandHelp> &commands, llvm::StringRef separator) {
  std::vector<std::string> names;
  for (const CommandHelp &command : commands)
    names.push_back(command.name);
  return llvm::join(names, separator);
}

//===--- bash ---------------------------------------------------------------------------------------------------===//

/// `required list sm_70 sm_72`: what _hloc_value prints about an option's value.
std::string bashValue(const OptionHelp &option) {
  std::string out = option.optionalValue ? "optional " : "required ";
  switch (kindOf(option)) {
  case ValueKind::Words:
    return out + (option.isList ? "list " : "words ") + llvm::join(option.valueNames, " ");
  case ValueKind::Files:
    return out + "files";
  case ValueKind::FilesWithSuffix:
    return out + "suffixes " + llvm::join(suffixesOf(option), " ");
  case ValueKind::Folders:
    return out + "folders";
  case ValueKind::Nothing:
    return out + "nothing";
  }
  return out;
}

constexpr llvm::StringLiteral bashFunctions = R"bash(
# Of the words before the cursor: the value of an option, an option, or an input file.
_hloc() {
  local command=compile word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} option= prefix= about=
  COMPREPLY=()
  if ((COMP_CWORD > 1)) && [[ " $_hloc_commands " == *" ${COMP_WORDS[1]} "* ]]; then
    command=${COMP_WORDS[1]}
  fi
  # `=` is a word of its own, unless COMP_WORDBREAKS was changed.
  if [[ $word == = ]]; then
    option=$before word=
  elif [[ $before == = ]]; then
    option=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $word == --*=* ]]; then
    option=${word%%=*} prefix=${word%%=*}= word=${word#*=}
  elif [[ $word != -?* && $(_hloc_value "$command" "$before") == required* ]]; then
    option=$before
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_hloc_options "$command")" -- "$word")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
      compopt -o nospace 2>/dev/null
    fi
    return
  fi
  about=$(_hloc_value "$command" "${option:-INPUT}")
  local how=${about#* }
  local names=${how#* }
  case ${how%% *} in
  list) _hloc_words "$names" "$prefix$([[ $word == *,* ]] && echo "${word%,*},")" "${word##*,}" ;;
  words) _hloc_words "$names" "$prefix" "$word" ;;
  files) _hloc_files f '' "$prefix" "$word" ;;
  folders) _hloc_files d '' "$prefix" "$word" ;;
  suffixes) _hloc_files f "$names" "$prefix" "$word" ;;
  esac
  if ((COMP_CWORD == 1)); then
    COMPREPLY+=($(compgen -W "$_hloc_commands" -- "$word"))
  fi
}

# NAMES PREFIX WORD
_hloc_words() {
  mapfile -t COMPREPLY < <(compgen -P "$2" -W "$1" -- "$3")
}

# KIND SUFFIXES PREFIX WORD: files with one of the suffixes, and folders.
_hloc_files() {
  local suffix
  if [[ -z $3 ]]; then
    compopt -o filenames 2>/dev/null
  fi
  if [[ -z $2 ]]; then
    mapfile -t COMPREPLY < <(compgen -P "$3" -"$1" -- "$4")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -P "$3" -d -- "$4"; for suffix in $2; do compgen -P "$3" -f -X "!*.$suffix" -- "$4"; done)
}

complete -F _hloc hloc
)bash";

//===--- zsh ----------------------------------------------------------------------------------------------------===//

/// Within single quotes of a shell.
std::string inQuotes(llvm::StringRef text) { return replaceAll(text, '\'', "'\\''"); }

/// A part of an _arguments specification: `:` and brackets end one.
std::string zshEscaped(llvm::StringRef text) {
  std::string out;
  for (char c : text)
    out += (llvm::StringRef("\\[]:").contains(c) ? "\\" : "") + std::string(1, c);
  return inQuotes(out);
}

std::string zshAction(const OptionHelp &option) {
  std::string names = llvm::join(option.valueNames, " ");
  switch (kindOf(option)) {
  case ValueKind::Words:
    return option.isList ? "_sequence compadd - " + names : "(" + names + ")";
  case ValueKind::Files:
    return "_files";
  case ValueKind::FilesWithSuffix: {
    std::string suffixes = llvm::join(suffixesOf(option), "|"); // `(hlo)` alone would be a qualifier, as `(-.)` is
    return inQuotes("_files -g \"*.(" + suffixes + "|)(-.)\"");
  }
  case ValueKind::Folders:
    return "_files -/";
  case ValueKind::Nothing:
    return " ";
  }
  return " ";
}

/// A specification a name: `'--emit=[description]:KIND:(hlo ptx)'`.
void addZshOption(std::string &out, const OptionHelp &option) {
  std::string value = option.value.empty() ? "" : ":" + zshEscaped(option.value) + ":" + zshAction(option);
  if (option.names.empty()) {
    out += fmt::format("    '{}{}'\n", option.repeats ? "*" : "", value);
    return;
  }
  for (const std::string &name : option.names) {
    bool isLong = llvm::StringRef(name).starts_with("--");
    const char *join = option.value.empty() ? "" : option.optionalValue ? "=-" : isLong ? "=" : "+";
    std::string others = option.names.size() > 1 ? "(" + llvm::join(option.names, " ") + ")" : "";
    out += fmt::format("    '{}{}{}[{}]{}{}'\n", others, name, join, zshEscaped(option.description),
                       option.optionalValue ? ":" : "", value);
  }
}

//===--- fish ---------------------------------------------------------------------------------------------------===//

std::string fishQuoted(llvm::StringRef text) {
  return "'" + replaceAll(replaceAll(text, '\\', "\\\\"), '\'', "\\'") + "'";
}

std::string fishArguments(const OptionHelp &option) {
  std::string names = llvm::join(option.valueNames, " ");
  switch (kindOf(option)) {
  case ValueKind::Words:
    return "-a " + (option.isList ? fishQuoted("(__fish_append , " + names + ")") : fishQuoted(names));
  case ValueKind::Files:
    return "-F";
  case ValueKind::FilesWithSuffix: {
    std::string calls;
    for (llvm::StringRef suffix : suffixesOf(option))
      calls += "(__fish_complete_suffix ." + suffix.str() + ") ";
    return "-k -a " + fishQuoted(llvm::StringRef(calls).rtrim());
  }
  case ValueKind::Folders:
    return "-a '(__fish_complete_directories)'";
  case ValueKind::Nothing:
    return "";
  }
  return "";
}

void addFishOption(std::string &out, const std::string &condition, const OptionHelp &option) {
  std::string line = "complete -c hloc -n " + fishQuoted(condition);
  std::string arguments = fishArguments(option);
  if (option.names.empty()) {
    out += line + " " + arguments + "\n";
    return;
  }
  for (const std::string &name : option.names) {
    llvm::StringRef bare = name;
    line += bare.consume_front("--") ? " -l " + bare.str() : " -s " + bare.drop_front().str();
  }
  if (!option.value.empty() && !option.optionalValue)
    line += (llvm::StringRef(arguments).starts_with("-F") ? " -r " : " -x ") + arguments;
  out += line + " -d " + fishQuoted(option.description) + "\n";
  if (option.optionalValue) // fish has no options whose value may be missing: `--dump-changed=diff` is a word to it
    for (const std::string &value : option.valueNames)
      out += fmt::format("complete -c hloc -n {} -a {}\n", fishQuoted(condition),
                         fishQuoted(option.names.back() + "=" + value));
}

} // namespace

std::string bashCompletion(const std::vector<CommandHelp> &commands) {
  std::string out = "# bash completion for hloc, made by `hloc --completion=bash`\n\n"
                    "_hloc_commands='" +
                    commandNames(commands, " ") +
                    "'\n\n"
                    "_hloc_options() { # COMMAND\n  case $1 in\n";
  for (const CommandHelp &command : commands) {
    out += "  " + command.name + ")\n    echo '";
    for (const OptionHelp &option : command.options)
      for (const std::string &name : option.names) {
        bool isLong = llvm::StringRef(name).starts_with("--");
        if (option.value.empty() || option.optionalValue || !isLong)
          out += " " + name;
        if (!option.value.empty() && isLong)
          out += " " + name + "=";
      }
    out += "'\n    ;;\n";
  }
  out += "  esac\n}\n\n"
         "_hloc_value() { # COMMAND OPTION: whether it needs a value, and which\n  case \"$1 $2\" in\n";
  for (const CommandHelp &command : commands)
    for (const OptionHelp &option : command.options) {
      if (option.value.empty())
        continue;
      std::vector<std::string> patterns;
      for (const std::string &name : option.names.empty() ? std::vector<std::string>{"INPUT"} : option.names)
        patterns.push_back("'" + command.name + " " + name + "'");
      out += fmt::format("  {}) echo '{}' ;;\n", llvm::join(patterns, " | "), bashValue(option));
    }
  return out + "  esac\n}\n" + bashFunctions.str();
}

std::string zshCompletion(const std::vector<CommandHelp> &commands) {
  std::string out = "#compdef hloc\n# zsh completion for hloc, made by `hloc --completion=zsh`\n\n_hloc() {\n"
                    "  local command=compile\n"
                    "  if ((CURRENT > 2)) && [[ \" " +
                    commandNames(commands, " ") +
                    " \" == *\" ${words[2]} \"* ]]; then\n"
                    "    command=${words[2]}\n    shift words\n    ((CURRENT--))\n  elif ((CURRENT == 2)); then\n"
                    "    compadd " +
                    commandNames(commands, " ") + "\n  fi\n  _hloc_$command\n}\n";
  for (const CommandHelp &command : commands) {
    out += fmt::format("\n_hloc_{}() {{\n  local -a specs=(\n", command.name);
    for (const OptionHelp &option : command.options)
      addZshOption(out, option);
    out += "  )\n  _arguments -S : $specs\n}\n";
  }
  return out + "\n_hloc \"$@\"\n";
}

std::string fishCompletion(const std::vector<CommandHelp> &commands) {
  std::string out = "# fish completion for hloc, made by `hloc --completion=fish`\n\n"
                    "function __hloc_command\n"
                    "    set -l words (commandline -opc)\n"
                    "    set -l command compile\n"
                    "    if test (count $words) -gt 1; and contains -- $words[2] " +
                    commandNames(commands, " ") +
                    "\n        set command $words[2]\n    end\n"
                    "    test $command = $argv[1]\nend\n\n"
                    "complete -c hloc -f\n"
                    "complete -c hloc -n 'test (count (commandline -opc)) -eq 1' -a '" +
                    commandNames(commands, " ") + "'\n";
  for (const CommandHelp &command : commands)
    for (const OptionHelp &option : command.options)
      addFishOption(out, "__hloc_command " + command.name, option);
  return out;
}

std::vector<std::string> completionShells() { return {"bash", "zsh", "fish"}; }

std::string completionFor(const std::string &shell, const std::vector<CommandHelp> &commands) {
  return shell == "bash"  ? bashCompletion(commands)
         : shell == "zsh" ? zshCompletion(commands)
                          : fishCompletion(commands);
}

} // namespace hloc
