// Collectives of tiles of several warps. The last warp to come reads what the others have left, lane by lane, though
// only its first lane has acquired it and told the others by a shuffle.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__device__ int thread() { return blockIdx.x * 128 + threadIdx.x; }

// Sums of tiles of two warps and of four.
extern "C" __global__ void sums(const int *x, int *of_pairs, int *of_blocks) {
  auto block = cg::this_thread_block();
  auto four = cg::tiled_partition<128>(block);
  auto pair = cg::tiled_partition<64>(block);
  int sum = cg::reduce(pair, x[thread()], cg::plus<int>());
  if (pair.thread_rank() == 0)
    of_pairs[thread() / 64] = sum;
  sum = cg::reduce(four, x[thread()], cg::plus<int>());
  if (four.thread_rank() == 0)
    of_blocks[blockIdx.x] = sum;
}

// Each tile's sum is stored by the warp that comes last.
extern "C" __global__ void late_sums(const int *x, int *of_pairs) {
  auto pair = cg::tiled_partition<64>(cg::this_thread_block());
  cg::reduce_store_async(pair, of_pairs + thread() / 64, x[thread()], cg::plus<int>());
}

extern "C" __global__ void scans(const int *x, int *inclusive, int *exclusive) {
  auto four = cg::tiled_partition<128>(cg::this_thread_block());
  inclusive[thread()] = cg::inclusive_scan(four, x[thread()], cg::plus<int>());
  exclusive[thread()] = cg::exclusive_scan(four, x[thread()], cg::plus<int>());
}

// Lane 37's element; whether all, and whether any, elements of a tile are below 16.
extern "C" __global__ void votes(const int *x, int *told, int *all, int *any) {
  auto pair = cg::tiled_partition<64>(cg::this_thread_block());
  const int v = x[thread()];
  told[thread()] = pair.shfl(v, 37);
  const int below = v < 16;
  const int all_below = pair.all(below), any_below = pair.any(below);
  if (pair.thread_rank() == 40) {
    all[thread() / 64] = all_below != 0;
    any[thread() / 64] = any_below != 0;
  }
}
