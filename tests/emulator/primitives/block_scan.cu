// Sums of what comes before each element, with it and without, by each algorithm.
#include <cub/block/block_scan.cuh>

#ifdef BROKEN // the storage serves again at once
#define __syncthreads()
#endif

template <cub::BlockScanAlgorithm algorithm> __device__ void scan(const int *x, int *inclusive, int *exclusive) {
  using Scan = cub::BlockScan<int, 128, algorithm>;
  __shared__ typename Scan::TempStorage storage;
  int items[4], sums[4];
  const int at = (blockIdx.x * 128 + threadIdx.x) * 4;
  for (int i = 0; i < 4; ++i)
    items[i] = x[at + i];
  Scan(storage).InclusiveSum(items, sums);
  for (int i = 0; i < 4; ++i)
    inclusive[at + i] = sums[i];
  __syncthreads();
  Scan(storage).ExclusiveSum(items, sums);
  for (int i = 0; i < 4; ++i)
    exclusive[at + i] = sums[i];
}

extern "C" __global__ void raking(const int *x, int *y, int *z) { scan<cub::BLOCK_SCAN_RAKING>(x, y, z); }
extern "C" __global__ void memoize(const int *x, int *y, int *z) { scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>(x, y, z); }
extern "C" __global__ void shuffles(const int *x, int *y, int *z) { scan<cub::BLOCK_SCAN_WARP_SCANS>(x, y, z); }
