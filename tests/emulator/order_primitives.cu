// What libraries are made of, all of it right: scans, reductions, ranks, barriers of the grid. See OrderTest.cpp.
#include <cooperative_groups.h>
#include <cub/block/block_radix_rank.cuh>
