#include "hloc/driver/Driver.h"

#include "Colour.h"
#include "Compile.h"
#include "Completions.h"
#include "Lists.h"
#include "LlvmFailures.h"
#include "ManPage.h"
#include "Options.h"
#include "RunCommand.h"
#include "StandardStreams.h"
#include "Subcommands.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace hloc {

namespace {

int runCommand(int argc, char **argv) {
  if (argc > 1 && llvm::StringRef(argv[1]) == "opt")
    return runOpt(argc - 1, argv + 1);
  Command command = parseCommandLine(argc, argv);
  switch (command.kind) {
  case Command::Kind::Compile:
    return runCompile(command.compile);
  case Command::Kind::Run:
    return runRun(command.run);
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
  case Command::Kind::Done:
    return command.exitCode;
  }
  return 0;
}

} // namespace

int runDriver(int argc, char **argv) {
  occupyClosedStandardStreams();
  installLlvmFailureHandler(endOnLlvmFailure);
  setLlvmColours();
  return finishStandardStreams(runCommand(argc, argv));
}

} // namespace hloc
