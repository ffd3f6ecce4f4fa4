// Decoupled look-back: each block scans its tile and adds what the blocks before it have, as soon as they have it.
#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_scan.cuh>

// No word holds one: the status of a tile is kept apart from its values, with fences between.
struct Pair {
  long long sum, count;
};
struct Add {
  template <typename T> __device__ T operator()(const T &a, const T &b) const { return a + b; }
  __device__ Pair operator()(const Pair &a, const Pair &b) const { return {a.sum + b.sum, a.count + b.count}; }
};

constexpr int tiles = 8, threads = 128;
__device__ __align__(16) unsigned char words[8192], pairs[8192];

template <typename T> __device__ cub::ScanTileState<T> stateIn(unsigned char (&memory)[8192]) {
  cub::ScanTileState<T> state;
  state.Init(tiles, memory, sizeof(memory));
  return state;
}

extern "C" __global__ void prepare(const int *x, int *copy) {
  stateIn<int>(words).InitializeStatus(tiles);
  stateIn<Pair>(pairs).InitializeStatus(tiles);
  copy[threadIdx.x] = x[threadIdx.x];
}

// Inclusive sums up to the element of this thread.
template <typename T> __device__ T scanGrid(T v, cub::ScanTileState<T> state) {
  using Scan = cub::BlockScan<T, threads>;
  using Prefix = cub::TilePrefixCallbackOp<T, Add, cub::ScanTileState<T>>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ typename Prefix::TempStorage forPrefix;
  if (blockIdx.x == 0) {
    T sum;
    Scan(scan).InclusiveScan(v, v, Add(), sum);
    if (threadIdx.x == 0)
      state.SetInclusive(0, sum);
  } else {
    Prefix prefix(state, forPrefix, Add(), blockIdx.x);
    Scan(scan).InclusiveScan(v, v, Add(), prefix);
  }
  return v;
}

extern "C" __global__ void scan(const int *x, int *y) {
  const int thread = blockIdx.x * threads + threadIdx.x;
  y[thread] = scanGrid(x[thread], stateIn<int>(words));
}

extern "C" __global__ void scan_pairs(const int *x, int *y) {
  const int thread = blockIdx.x * threads + threadIdx.x;
  const Pair v = scanGrid(Pair{x[thread], 1}, stateIn<Pair>(pairs));
  y[thread] = int(v.sum) + int(v.count);
}
