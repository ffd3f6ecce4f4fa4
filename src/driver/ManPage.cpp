#include "ManPage.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace hloc {

namespace {

struct EnvironmentVariable {
  const char *name, *meaning;
};

constexpr EnvironmentVariable environment[] = {
    {"CUDA_HOME, CUDA_PATH",
     "Folders of CUDA toolkits, in which ptxas, nvJitLink, fatbinary, libdevice, cuBLASLt and cuDNN are looked for; "
     "hloc --doctor prints what was found."},
    {"PATH, VIRTUAL_ENV, XDG_DATA_HOME", "Where these are looked for besides."},
    {"HLOC_CUDA_DRIVER", "File that is loaded instead of libcuda.so.1 (hloc run --platform=cuda)."},
    {"HLOC_CUBLASLT, HLOC_CUDNN",
     "Files that are loaded as cuBLASLt and cuDNN (hloc run --platform=cuda, of what --dots and --convolutions make "
     "calls of them)."},
    {"HLOC_CACHE_DIR, XDG_CACHE_HOME, HOME",
     "Where assembled kernels are kept: in $HLOC_CACHE_DIR, $XDG_CACHE_HOME/hloc or "
     "~/.cache/hloc."},
    {"HLOC_CACHE_LIMIT", "How large that may grow, such as 2G; by default 512M. The oldest files go first. hloc "
                         "--cache-stats says what is there."},
    {"HLOC_NO_CACHE", "If it is not empty, assembled kernels are not kept."},
    {"TERM", "If it is missing or dumb, no line of progress is shown by default."},
    {"NO_COLOR", "If it is not empty, diagnostics have no colour by default."},
    {"XLA_FLAGS", "Read for the dump options in XLA's spelling; everything else in it is named in a warning."},
};

/// Text of roff: no character of it is an instruction, and hyphens can be searched for.
std::string roff(llvm::StringRef text) {
  std::string out;
  if (text.starts_with(".") || text.starts_with("'"))
    out += "\\&";
  for (char c : text)
    switch (c) {
    case '\\':
      out += "\\e";
      break;
    case '-':
      out += "\\-";
      break;
    case '`':
      out += "\\(ga";
      break;
    case '\'':
      out += "\\(aq";
      break;
    case '^':
      out += "\\(ha";
      break;
    case '~':
      out += "\\(ti";
      break;
    default:
      out += c;
    }
  return out;
}

/// `\fB\-o\fR, \fB\-\-output\fR \fIFILE\fR`
std::string signatureOf(const OptionHelp &option) {
  std::string out;
  for (const std::string &name : option.names)
    out += (out.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (option.value.empty())
    return out;
  std::string value = "\\fI" + roff(option.value) + "\\fR";
  if (option.optionalValue)
    return out + "[=" + value + "]";
  return out + (out.empty() ? "" : " ") + value;
}

/// A paragraph with a term in front.
std::string item(const std::string &term, llvm::StringRef text) { return ".TP\n" + term + "\n" + roff(text) + "\n"; }

std::string synopsisOf(const CommandHelp &command) {
  std::string arguments;
  for (const OptionHelp &option : command.options)
    if (option.names.empty())
      arguments += " \\fI" + roff(option.value) + "\\fR" + (option.repeats ? "..." : "");
  std::string name = command.name == "compile" ? "" : " " + command.name;
  return fmt::format("\\fBhloc{}\\fR{} [\\fIOPTION\\fR]...\n", name, arguments);
}

std::string optionsOf(const CommandHelp &command) {
  std::string out;
  for (const OptionHelp &option : command.options)
    if (option.names.empty())
      out += item(signatureOf(option), option.description);
  for (const std::string &group : command.groups()) {
    out += fmt::format(".SS \"{}\"\n", roff(group));
    for (const OptionHelp &option : command.options)
      if (!option.names.empty() && option.group == group)
        out += item(signatureOf(option), fullDescription(option));
  }
  return out;
}

} // namespace

std::string manPage(const std::vector<CommandHelp> &commands) {
  std::string out = ".\\\" made by hloc \\-\\-man\n"
                    ".TH HLOC 1 \"\" \"hloc " HLOC_VERSION "\" \"User Commands\"\n"
                    ".SH NAME\nhloc \\- HLO text to PTX and cubin, and checks of the kernels without a GPU\n"
                    ".SH SYNOPSIS\n";
  for (const CommandHelp &command : commands)
    out += (&command == &commands.front() ? "" : ".br\n") + synopsisOf(command);
  out += ".SH DESCRIPTION\n";
  for (const CommandHelp &command : commands)
    out += (&command == &commands.front() ? "" : ".PP\n") + roff(command.summary) + "\n";
  for (const CommandHelp &command : commands)
    out += fmt::format(".SH \"OPTIONS OF HLOC{}\"\n",
                       command.name == "compile" ? "" : " " + llvm::StringRef(command.name).upper()) +
           optionsOf(command);
  out += ".SH \"EXIT STATUS\"\n";
  for (const auto &[code, meaning] : exitCodeMeanings())
    out += item("\\fB" + std::to_string(code) + "\\fR", meaning);
  out += ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable &variable : environment)
    out += item("\\fB" + roff(variable.name) + "\\fR", variable.meaning);
  return out;
}

} // namespace hloc
