// Rows of 512, sorted: keys alone by digits, downward by digits, with the places they come from, and by merging.
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>

__device__ int placeOf(int i) { return (blockIdx.x * 128 + threadIdx.x) * 4 + i; }

extern "C" __global__ void radix(const int *x, int *upward, int *downward, int *places) {
  using Sort = cub::BlockRadixSort<int, 128, 4>;
  using SortPairs = cub::BlockRadixSort<int, 128, 4, int>;
  __shared__ union {
    typename Sort::TempStorage keys;
    typename SortPairs::TempStorage pairs;
  } storage;
  int keys[4], values[4];
  for (int i = 0; i < 4; ++i)
    keys[i] = x[placeOf(i)];
  Sort(storage.keys).Sort(keys);
  for (int i = 0; i < 4; ++i)
    upward[placeOf(i)] = keys[i];
  __syncthreads();
  Sort(storage.keys).SortDescendingBlockedToStriped(keys);
  for (int i = 0; i < 4; ++i)
    downward[blockIdx.x * 512 + i * 128 + threadIdx.x] = keys[i];
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    keys[i] = x[placeOf(i)];
    values[i] = threadIdx.x * 4 + i;
  }
  SortPairs(storage.pairs).Sort(keys, values);
  for (int i = 0; i < 4; ++i)
    places[placeOf(i)] = values[i];
}

struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};

extern "C" __global__ void merge(const int *x, int *upward) {
  using Sort = cub::BlockMergeSort<int, 128, 4>;
  __shared__ typename Sort::TempStorage storage;
  int keys[4];
  for (int i = 0; i < 4; ++i)
    keys[i] = x[placeOf(i)];
  Sort(storage).Sort(keys, Less());
  for (int i = 0; i < 4; ++i)
    upward[placeOf(i)] = keys[i];
}

// 500 of 512: the rest counts as larger than all.
extern "C" __global__ void merge_partial(const int *x, int *upward) {
  using Sort = cub::BlockMergeSort<int, 128, 4>;
  __shared__ typename Sort::TempStorage storage;
  int keys[4];
  for (int i = 0; i < 4; ++i) {
    const int at = threadIdx.x * 4 + i;
    keys[i] = at < 500 ? x[blockIdx.x * 512 + at] : 0;
  }
  Sort(storage).Sort(keys, Less(), 500, 0x7fffffff);
  for (int i = 0; i < 4; ++i)
    if (threadIdx.x * 4 + i < 500)
      upward[blockIdx.x * 500 + threadIdx.x * 4 + i] = keys[i];
}
