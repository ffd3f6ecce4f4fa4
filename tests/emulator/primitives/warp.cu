// Warps and halves of warps: sums, scans, sorting by merging, exchange of elements.
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

__device__ int thread() { return blockIdx.x * 128 + threadIdx.x; }

extern "C" __global__ void reduce(const int *x, int *of_warps, int *of_halves, int *of_some) {
  using Warp = cub::WarpReduce<int>;
  using Half = cub::WarpReduce<int, 16>;
  using Some = cub::WarpReduce<int, 12>; // through shared memory; its masks name the first lanes of a warp
  __shared__ typename Warp::TempStorage warps[4];
  __shared__ typename Half::TempStorage halves[8];
  __shared__ typename Some::TempStorage some[4];
  const int v = x[thread()];
  int sum = Warp(warps[threadIdx.x / 32]).Sum(v);
  if (threadIdx.x % 32 == 0)
    of_warps[thread() / 32] = sum;
  sum = Half(halves[threadIdx.x / 16]).Sum(v);
  if (threadIdx.x % 16 == 0)
    of_halves[thread() / 16] = sum;
  if (threadIdx.x % 32 < 12) {
    sum = Some(some[threadIdx.x / 32]).Sum(v);
    if (threadIdx.x % 32 == 0)
      of_some[thread() / 32] = sum;
  }
}

extern "C" __global__ void scan(const int *x, int *inclusive, int *exclusive) {
  using Scan = cub::WarpScan<int>;
  using Half = cub::WarpScan<int, 16>;
  __shared__ typename Scan::TempStorage warps[4];
  __shared__ typename Half::TempStorage halves[8];
  const int v = x[thread()];
  int sum;
  Scan(warps[threadIdx.x / 32]).InclusiveSum(v, sum);
  inclusive[thread()] = sum;
  Half(halves[threadIdx.x / 16]).ExclusiveSum(v, sum);
  exclusive[thread()] = sum;
}

struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};

// Rows of 128 a warp, sorted with the places they come from.
extern "C" __global__ void merge(const int *x, int *keys_out, int *places_out) {
  using Sort = cub::WarpMergeSort<int, 4, 32, int>;
  __shared__ typename Sort::TempStorage storage[4];
  int keys[4], places[4];
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    keys[i] = x[thread() * 4 + i];
    places[i] = lane * 4 + i;
  }
  Sort(storage[threadIdx.x / 32]).StableSort(keys, places, Less());
  for (int i = 0; i < 4; ++i) {
    keys_out[thread() * 4 + i] = keys[i];
    places_out[thread() * 4 + i] = places[i];
  }
}

extern "C" __global__ void merge_keys(const int *x, int *keys_out) {
  using Sort = cub::WarpMergeSort<int, 4, 32>;
  __shared__ typename Sort::TempStorage storage[4];
  int keys[4];
  for (int i = 0; i < 4; ++i)
    keys[i] = x[thread() * 4 + i];
  Sort(storage[threadIdx.x / 32]).Sort(keys, Less());
  for (int i = 0; i < 4; ++i)
    keys_out[thread() * 4 + i] = keys[i];
}

// Rows of 128 a warp as 32 by 4, transposed.
extern "C" __global__ void exchange(const int *x, int *y) {
  using Exchange = cub::WarpExchange<int, 4>;
  __shared__ typename Exchange::TempStorage storage[4];
  int items[4];
  for (int i = 0; i < 4; ++i)
    items[i] = x[thread() * 4 + i];
  Exchange(storage[threadIdx.x / 32]).BlockedToStriped(items, items);
  for (int i = 0; i < 4; ++i)
    y[thread() * 4 + i] = items[i];
}
