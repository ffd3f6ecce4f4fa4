#pragma once
// Runs what hloc has compiled: a manifest (`hloc X.hlo --manifest=X.json`) and its PTX, cubin or fatbin, through the
// CUDA driver. One header for C++17 and later, without exceptions; it needs neither hloc nor the CUDA toolkit.
//
//   hloc_launch::Module module;
//   hloc_launch::Execution execution;
//   hloc_launch::Status status = hloc_launch::Module::load(manifestText, {ptx.data(), ptx.size()}, {}, module);
//   if (status.ok()) status = hloc_launch::Execution::create(module, execution);
//   if (status.ok()) status = execution.run({x, y}, {sum}, stream); // x, y, sum: addresses on the device
//   if (!status.ok()) fprintf(stderr, "%s\n", status.message().c_str());
//
// Inputs are the arrays of the entry's parameters in order (of tuples: their leaves), results those of its result. A
// Module belongs to the context that is current when it is loaded, and may be used by several threads at once; each
// stream needs an Execution of its own, since that has the memory for values in between.
//
// What runs often is a CUDA graph instead, where the driver is of CUDA 12.3 or later: one call starts all of it, and
// the device decides loops and branches.
//
//   hloc_launch::Graph graph;
//   status = hloc_launch::Graph::create(module, {x, y}, {sum}, graph);
//   if (status.ok()) status = graph.launch(stream); // as often as wanted; graph.update() gives it other arrays
//
// By default the driver is opened at run time (libcuda.so.1; link with -ldl before glibc 2.34). With
// HLOC_LAUNCH_LINK_CUDA defined, in all files of a program, its functions are those of <cuda.h>, and the program is
// linked with -lcuda.

// It is installed as one file: src/library/cmake/JoinLauncher.cmake.
#include "hloc_launch/Graph.h"
