// Sums of tiles of two warps.
// FOUND shared-race: one lane of the last warp acquires what the other warp stored, and another lane, which knows by a
// shuffle alone, reads it. Shuffles order no memory (PTX ISA, CUDA programming guide), though GPUs have been kind so far.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void sums(const int *x, int *y) {
  auto pair = cg::tiled_partition<64>(cg::this_thread_block());
  const int thread = blockIdx.x * 128 + threadIdx.x;
  const int sum = cg::reduce(pair, x[thread], cg::plus<int>());
  if (pair.thread_rank() == 0)
    y[thread / 64] = sum;
}
