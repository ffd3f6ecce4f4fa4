#include "hloc/driver/Driver.h"

#include "Colour.h"
#include "CommandHelp.h"
#include "CompareCommand.h"
#include "Compile.h"
#include "LlvmFailures.h"
#include "Opt.h"
#include "Options.h"
#include "ReduceCommand.h"
#include "RunCommand.h"
#include "StandardStreams.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

int printHelp(Subcommand command) {
  llvm::outs() << helpText(describeCommand(command));
  if (command == optCommand)
    printPasses();
  return 0;
}

int carryOut(const Command &command) {
  if (command.help)
    return printHelp(command.subcommand);
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
  }
  return 0;
}

int parseAndCarryOut(llvm::ArrayRef<const char *> arguments) {
  DiagnosticEngine diagnostics;
  Command command;
  const bool isRight = parseCommandLine(arguments, command, diagnostics);
  diagnostics.print(llvm::errs(), useColour(command.compile.colour));
  return isRight ? carryOut(command) : static_cast<int>(diagnostics.exitCode());
}

} // namespace

int runDriver(int argc, char **argv) {
  occupyClosedStandardStreams();
  installLlvmFailureHandler(endOnLlvmFailure);
  setLlvmColours();
  return finishStandardStreams(parseAndCarryOut(llvm::ArrayRef(argv, argc)));
}

} // namespace hloc
