// Sums of 512 elements a block, by each algorithm; greatest and least of the elements of 100 threads.
#include <cub/block/block_reduce.cuh>

template <cub::BlockReduceAlgorithm algorithm> __device__ void sum(const int *x, int *y) {
  using Reduce = cub::BlockReduce<int, 128, algorithm>;
  __shared__ typename Reduce::TempStorage storage;
  int items[4];
  for (int i = 0; i < 4; ++i)
    items[i] = x[(blockIdx.x * 128 + threadIdx.x) * 4 + i];
  const int total = Reduce(storage).Sum(items);
  if (threadIdx.x == 0)
    y[blockIdx.x] = total;
}

extern "C" __global__ void raking(const int *x, int *y) { sum<cub::BLOCK_REDUCE_RAKING>(x, y); }
extern "C" __global__ void commutative(const int *x, int *y) { sum<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(x, y); }
extern "C" __global__ void shuffles(const int *x, int *y) { sum<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x, y); }

struct Larger {
  __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
struct Smaller {
  __device__ int operator()(int a, int b) const { return a < b ? a : b; }
};

// The storage serves twice, with a barrier between.
extern "C" __global__ void partial(const int *x, int *greatest, int *least) {
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const int v = threadIdx.x < 100 ? x[blockIdx.x * 100 + threadIdx.x] : 0;
  const int first = Reduce(storage).Reduce(v, Larger(), 100);
  __syncthreads();
  const int second = Reduce(storage).Reduce(v, Smaller(), 100);
  if (threadIdx.x == 0) {
    greatest[blockIdx.x] = first;
    least[blockIdx.x] = second;
  }
}
