#pragma once
// CHECK(status): says what is wrong and ends the program, of a cutlass::Status.
#include "cutlass/cutlass.h"

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cutlass::Status status = (call);                                                                                   \
    if (status != cutlass::Status::kSuccess) {                                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cutlassGetStatusString(status));                         \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)
