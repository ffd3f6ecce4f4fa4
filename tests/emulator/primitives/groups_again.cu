// Collectives of tiles of several warps one after the other in the same shared memory, and those that end in an atomic.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

using Atomic = cuda::atomic_ref<int, cuda::thread_scope_block>;

__device__ int thread() { return blockIdx.x * 128 + threadIdx.x; }

// Tiles of two warps, and of one, add their sums to words of the block.
extern "C" __global__ void updates(const int *x, int *of_pairs, int *of_warps) {
  __shared__ int pairs, warps;
  auto block = cg::this_thread_block();
  cg::invoke_one(block, [&] { pairs = warps = 0; });
  block.sync();
  auto pair = cg::tiled_partition<64>(block);
  auto warp = cg::tiled_partition<32>(block);
  Atomic to_pairs(pairs), to_warps(warps);
  cg::reduce_update_async(pair, to_pairs, x[thread()], cg::plus<int>());
  cg::reduce_update_async(warp, to_warps, x[thread()], cg::plus<int>());
#ifndef BROKEN
  block.sync();
#endif
  if (threadIdx.x == 0) {
    of_pairs[blockIdx.x] = pairs;
    of_warps[blockIdx.x] = warps;
  }
}

extern "C" __global__ void scan_updates(const int *x, int *y) {
  __shared__ int total;
  auto block = cg::this_thread_block();
  if (threadIdx.x == 0)
    total = 0;
  block.sync();
  Atomic to_total(total);
  y[thread()] = cg::inclusive_scan_update(cg::tiled_partition<128>(block), to_total, x[thread()], cg::plus<int>());
}

// Each round ends with what it began with: the sum of the tile, less the sums of its two halves.
extern "C" __global__ void rounds(const int *x, int *y) {
  auto block = cg::this_thread_block();
  auto four = cg::tiled_partition<128>(block);
  auto pair = cg::tiled_partition<64>(four);
  int v = x[thread()];
  for (int round = 0; round < 3; ++round) {
    const int sum = cg::reduce(four, v, cg::plus<int>()), half = cg::reduce(pair, v, cg::plus<int>());
    const int lower = four.shfl(half, round), upper = four.shfl(half, 127 - round);
    v += sum - lower - upper + (four.any(sum != lower + upper) ? 1 : 0);
    v += cg::exclusive_scan(pair, 1, cg::plus<int>()) - int(pair.thread_rank());
  }
  y[thread()] = v;
}
