// Cooperative groups within a block.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__device__ int thread() { return blockIdx.x * 128 + threadIdx.x; }

// Sums and scans of tiles of a warp and a quarter of one.
extern "C" __global__ void tiles(const int *x, int *of_warps, int *of_eights, int *scans) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto eight = cg::tiled_partition<8>(warp);
  const int v = x[thread()];
  int sum = cg::reduce(warp, v, cg::plus<int>());
  if (warp.thread_rank() == 0)
    of_warps[thread() / 32] = sum;
  sum = v;
  for (int distance = 4; distance; distance /= 2)
    sum += eight.shfl_xor(sum, distance);
  if (eight.thread_rank() == 7)
    of_eights[thread() / 8] = sum;
  scans[thread()] = cg::inclusive_scan(warp, v, cg::plus<int>());
}

// Two warps hand their elements to each other through shared memory.
extern "C" __global__ void pairs(const int *x, int *y) {
  __shared__ int values[128];
  auto pair = cg::tiled_partition<64>(cg::this_thread_block());
  const int first = threadIdx.x / 64 * 64;
  for (int round = 0; round < 3; ++round) {
    values[threadIdx.x] = x[round * 256 + thread()];
#ifndef BROKEN
    pair.sync();
#endif
    y[round * 256 + thread()] = values[first + 63 - threadIdx.x % 64];
    pair.sync();
  }
}

// Sums of the lanes with the same `x & 3`, of those with the same `x & 1`, and how many are even in the block.
extern "C" __global__ void labels(const int *x, int *by_label, int *by_parity, int *counts) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int v = x[thread()];
  auto same = cg::labeled_partition(warp, v & 3);
  by_label[thread()] = cg::reduce(same, v, cg::plus<int>());
  auto parity = cg::binary_partition(warp, v % 2 == 0);
  by_parity[thread()] = cg::reduce(parity, v, cg::plus<int>());
  __shared__ int count;
  if (threadIdx.x == 0)
    count = 0;
  __syncthreads();
  if (v % 2 == 0) {
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0)
      atomicAdd(&count, active.size());
  }
  __syncthreads();
  if (threadIdx.x == 0)
    counts[blockIdx.x] = count;
}

// Rows of 200 through shared memory, reversed.
extern "C" __global__ void asynchronous(const int *x, int *y) {
  __shared__ __align__(16) int row[200];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, row, x + blockIdx.x * 200, sizeof(row));
  cg::wait(block);
  for (int i = block.thread_rank(); i < 200; i += block.size())
    y[blockIdx.x * 200 + i] = row[199 - i];
}
