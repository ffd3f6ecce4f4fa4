#include "hloc/driver/Driver.h"

#include "hloc/driver/Subcommands.h"

#include <string_view>

int hloc::runDriver(int argc, char **argv) {
  if (argc > 1 && std::string_view(argv[1]) == "opt")
    return runOpt(argc - 2, argv + 2);
  return 0;
}
