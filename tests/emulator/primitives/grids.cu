// Grids that meet: cooperative launches.
// BROKEN global-race: blocks read what others store, and do not wait for them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__device__ int thread() { return blockIdx.x * 128 + threadIdx.x; }

__device__ void meet() {
#ifndef BROKEN
  cg::this_grid().sync();
#endif
}

// Scans all elements in nine steps; `work` has room for two arrays.
extern "C" __global__ void scan(const int *x, int *y, int *work) {
  const int n = gridDim.x * 128;
  int *from = work, *to = work + n;
  from[thread()] = x[thread()];
  for (int distance = 1; distance < n; distance *= 2) {
    meet();
    to[thread()] = from[thread()] + (thread() >= distance ? from[thread() - distance] : 0);
    int *other = from;
    from = to;
    to = other;
  }
  y[thread()] = from[thread()];
}

// Blocks do something else between coming and waiting.
extern "C" __global__ void split(const int *x, int *sums, int *y) {
  auto grid = cg::this_grid();
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int sum = cg::reduce(warp, x[thread()], cg::plus<int>());
  if (warp.thread_rank() == 0)
    sums[thread() / 32] = sum;
#ifndef BROKEN
  auto token = grid.barrier_arrive();
#endif
  const int own = x[grid.num_threads() - 1 - grid.thread_rank()];
#ifndef BROKEN
  grid.barrier_wait(static_cast<decltype(token) &&>(token));
#endif
  y[thread()] = own + sums[gridDim.x * 4 - 1 - thread() / 32];
}
