#include "hloc/driver/Driver.h"

#include "BisectCommand.h"
#include "Colour.h"
#include "CommandHelp.h"
#include "CompareCommand.h"
#include "Compile.h"
#include "DiagnosticForm.h"
#include "LlvmFailures.h"
#include "LspCommand.h"
#include "Opt.h"
#include "Options.h"
#include "ReduceCommand.h"
#include "Reproducer.h"
#include "RunCommand.h"
#include "StandardStreams.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace hloc {

namespace {

int printHelp(const Command &command) {
  llvm::outs() << helpText(describeCommand(command.subcommand), command.helpAll ? HelpExtent::All : HelpExtent::Basic);
  if (command.subcommand == optCommand)
    printPasses();
  return 0;
}

int carryOut(const Command &command) {
  if (command.help)
    return printHelp(command);
  if (command.answer) {
    llvm::outs() << command.answer(command);
    return 0;
  }
  switch (command.subcommand) {
  case compileCommand:
    return runCompile(command.compile);
  case runCommand:
    return runRun(command.run);
  case optCommand:
    return runOpt(command.opt);
  case comparisonCommand:
    return runCompare(command.compare);
  case reduceCommand:
    return runReduce(command.reduce);
  case bisectCommand:
    return runBisect(command.reduce);
  case replayCommand:
    return runReplay(command.reduce);
  case lspCommand:
    return runLsp(command.compile, command.lsp);
  }
  return 0;
}

/// What goes wrong is kept, if that is wanted.
int carryOutWithCapsule(llvm::ArrayRef<const char *> arguments, const Command &command) {
  std::optional<Capsule> capsule;
  if (!command.compile.reproducerFolder.empty() && !command.help && !command.answer) {
    DiagnosticEngine diagnostics;
    capsule = Capsule::write(arguments, command, diagnostics);
    printDiagnostics(diagnostics, useColour(command.compile.colour));
    if (!capsule)
      return static_cast<int>(diagnostics.exitCode());
  }
  const int code = carryOut(command);
  if (capsule)
    capsule->finish(code);
  else
    sayHowToReproduce(command, code);
  return code;
}

int parseAndCarryOut(llvm::ArrayRef<const char *> arguments) {
  DiagnosticEngine diagnostics;
  Command command;
  const bool isRight = parseCommandLine(arguments, command, diagnostics);
  setDiagnosticForm(command.compile.diagnosticForm);
  printDiagnostics(diagnostics, useColour(command.compile.colour));
  return isRight ? carryOutWithCapsule(arguments, command) : static_cast<int>(diagnostics.exitCode());
}

} // namespace

/// Arrays of megabytes come and go by the thousand: a third of a run's time went by if each was taken from the kernel
/// anew, page by page.
static void keepFreedMemory() {
#ifdef __GLIBC__
  constexpr int mebibyte = 1 << 20;
  mallopt(M_TRIM_THRESHOLD, 1024 * mebibyte);
  mallopt(M_MMAP_THRESHOLD, 32 * mebibyte); // the most that glibc takes by itself, which the line before switches off
#endif
}

int runDriver(int argc, char **argv) {
  keepFreedMemory();
  occupyClosedStandardStreams();
  installLlvmFailureHandler(endOnLlvmFailure);
  setLlvmColours();
  return finishStandardStreams(parseAndCarryOut(llvm::ArrayRef(argv, argc)));
}

} // namespace hloc
