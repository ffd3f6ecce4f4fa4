// Counts of 64 values by sorting and by atomics; where a value differs from the one before it; differences.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_shuffle.cuh>

template <cub::BlockHistogramAlgorithm algorithm> __device__ void count(const unsigned char *x, int *y) {
  using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 64, algorithm>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ int bins[64];
  unsigned char items[4];
  for (int i = 0; i < 4; ++i)
    items[i] = x[(blockIdx.x * 128 + threadIdx.x) * 4 + i] & 63;
  Histogram(storage).Histogram(items, bins);
  __syncthreads();
  if (threadIdx.x < 64)
    y[blockIdx.x * 64 + threadIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void by_sorting(const unsigned char *x, int *y) { count<cub::BLOCK_HISTO_SORT>(x, y); }
extern "C" __global__ void by_atomics(const unsigned char *x, int *y) { count<cub::BLOCK_HISTO_ATOMIC>(x, y); }

struct Differs {
  __device__ bool operator()(int a, int b) const { return a != b; }
};
struct Minus {
  __device__ int operator()(int a, int b) const { return a - b; }
};

// Of `x & 3`. The first of a block is a head and the last a tail.
extern "C" __global__ void neighbours(const unsigned char *x, int *heads, int *tails, int *differences, int *rotated) {
  using Flags = cub::BlockDiscontinuity<int, 128>;
  using Difference = cub::BlockAdjacentDifference<int, 128>;
  using Shuffle = cub::BlockShuffle<int, 128>;
  __shared__ union {
    typename Flags::TempStorage flags;
    typename Difference::TempStorage difference;
    typename Shuffle::TempStorage shuffle;
  } storage;
  int items[4], head[4], tail[4], out[4];
  const int at = (blockIdx.x * 128 + threadIdx.x) * 4;
  for (int i = 0; i < 4; ++i)
    items[i] = x[at + i] & 3;
  Flags(storage.flags).FlagHeadsAndTails(head, tail, items, Differs());
  __syncthreads();
  Difference(storage.difference).SubtractLeft(items, out, Minus());
  __syncthreads();
  int other;
  Shuffle(storage.shuffle).Rotate(items[0], other, 5);
  for (int i = 0; i < 4; ++i) {
    heads[at + i] = head[i];
    tails[at + i] = tail[i];
    differences[at + i] = out[i];
  }
  rotated[blockIdx.x * 128 + threadIdx.x] = other;
}
