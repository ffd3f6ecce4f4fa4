// Stands in for parts of LLVM that hloc never gets to (LeftOut.txt), so that these are not linked. Getting to one is a
// mistake of ours, and ends as those do: the program by exit code 70, a call of the library by being given up.

#include "hloc/support/Check.h"

extern "C" {

[[noreturn]] void hlocLeftOut() {
  HLOC_UNREACHABLE("a part of LLVM was called that hloc is linked without (LeftOut.txt)");
}

void *hlocNothing() { return nullptr; }
}
