// Stands in for parts of LLVM that hloc never gets to (LeftOut.txt), so that these are not linked.

#include <stdio.h>
#include <stdlib.h>

enum { bugInHloc = 70 };

__attribute__((noreturn)) void hlocLeftOut(void) {
  fputs("hloc: error: a part of LLVM was called that this program was linked without (LeftOut.txt) [internal-error]\n", stderr);
  _Exit(bugInHloc);
}

void *hlocNothing(void) { return NULL; }
