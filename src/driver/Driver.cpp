#include "hloc/driver/Driver.h"

#include "Colour.h"
#include "Compile.h"
#include "Completions.h"
#include "Lists.h"
#include "LlvmFailures.h"
#include "ManPage.h"
#include "Opt.h"
#include "Options.h"
#include "RunCommand.h"
#include "StandardStreams.h"

#include "hloc/support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

int carryOut(const Command &command) {
  switch (command.kind) {
  case Command::Kind::Compile:
    return runCompile(command.compile);
  case Command::Kind::Run:
    return runRun(command.run);
  case Command::Kind::Opt:
    return runOpt(command.opt);
  case Command::Kind::Help:
    llvm::outs() << helpText(describeCommand(command.subcommand));
    if (command.subcommand == optCommand)
      printPasses();
    return 0;
  case Command::Kind::ListOps:
    llvm::outs() << listOps();
    return 0;
  case Command::Kind::ListHeroes:
    llvm::outs() << listHeroes();
    return 0;
  case Command::Kind::ListPasses:
    llvm::outs() << listPasses(command.compile.optimizationLevel);
    return 0;
  case Command::Kind::ListTargets:
    llvm::outs() << listTargets();
    return 0;
  case Command::Kind::ListRules:
    llvm::outs() << listRules();
    return 0;
  case Command::Kind::ListRewrites:
    llvm::outs() << listRewrites(/*fastMathOnly=*/false);
    return 0;
  case Command::Kind::ListFastMath:
    llvm::outs() << listRewrites(/*fastMathOnly=*/true);
    return 0;
  case Command::Kind::Doctor:
    llvm::outs() << Toolchain::discover(command.compile.toolchain).describe();
    return 0;
  case Command::Kind::Version:
    llvm::outs() << versionText();
    return 0;
  case Command::Kind::Man:
    llvm::outs() << manPage(describeCommands());
    return 0;
  case Command::Kind::Completion:
    llvm::outs() << completionFor(command.shell, describeCommands());
    return 0;
  }
  return 0;
}

int parseAndCarryOut(llvm::ArrayRef<const char *> arguments) {
  DiagnosticEngine diagnostics;
  std::optional<Command> command = parseCommandLine(arguments, diagnostics);
  diagnostics.print(llvm::errs(), useColour(command ? command->compile.colour : ColourChoice::Auto));
  return command ? carryOut(*command) : static_cast<int>(diagnostics.exitCode());
}

} // namespace

int runDriver(int argc, char **argv) {
  occupyClosedStandardStreams();
  installLlvmFailureHandler(endOnLlvmFailure);
  setLlvmColours();
  return finishStandardStreams(parseAndCarryOut(llvm::ArrayRef(argv, argc)));
}

} // namespace hloc
