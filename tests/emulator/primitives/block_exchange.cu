// Between elements side by side and elements a stride apart: rows of 512 as 128 by 4, transposed, and back.
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>

extern "C" __global__ void exchange(const int *x, int *y, int *z) {
  using Exchange = cub::BlockExchange<int, 128, 4>;
  __shared__ typename Exchange::TempStorage storage;
  int items[4], other[4];
  for (int i = 0; i < 4; ++i)
    items[i] = x[(blockIdx.x * 128 + threadIdx.x) * 4 + i];
  Exchange(storage).BlockedToStriped(items, other);
  for (int i = 0; i < 4; ++i) // side by side in memory again, so that the exchange is seen
    y[(blockIdx.x * 128 + threadIdx.x) * 4 + i] = other[i];
  __syncthreads();
  Exchange(storage).StripedToBlocked(items, other);
  for (int i = 0; i < 4; ++i)
    z[(blockIdx.x * 128 + threadIdx.x) * 4 + i] = other[i];
}

// Each element to the place 511 - i.
extern "C" __global__ void scatter(const int *x, int *y) {
  using Exchange = cub::BlockExchange<int, 128, 4>;
  __shared__ typename Exchange::TempStorage storage;
  int items[4], ranks[4];
  for (int i = 0; i < 4; ++i) {
    items[i] = x[(blockIdx.x * 128 + threadIdx.x) * 4 + i];
    ranks[i] = 511 - (threadIdx.x * 4 + i);
  }
  Exchange(storage).ScatterToBlocked(items, ranks);
  for (int i = 0; i < 4; ++i)
    y[(blockIdx.x * 128 + threadIdx.x) * 4 + i] = items[i];
}

// y = 3 x + place, of which the last block has 476 only.
template <cub::BlockLoadAlgorithm loading, cub::BlockStoreAlgorithm storing> __device__ void copy(const int *x, int *y) {
  using Load = cub::BlockLoad<int, 128, 4, loading>;
  using Store = cub::BlockStore<int, 128, 4, storing>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } storage;
  const int begin = blockIdx.x * 512, valid = 1500 - begin < 512 ? 1500 - begin : 512;
  int items[4];
  if (valid == 512)
    Load(storage.load).Load(x + begin, items);
  else
    Load(storage.load).Load(x + begin, items, valid, 0);
  for (int i = 0; i < 4; ++i)
    items[i] = 3 * items[i] + begin + threadIdx.x * 4 + i;
  __syncthreads();
  if (valid == 512)
    Store(storage.store).Store(y + begin, items);
  else
    Store(storage.store).Store(y + begin, items, valid);
}

extern "C" __global__ void direct(const int *x, int *y) { copy<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>(x, y); }
extern "C" __global__ void vectors(const int *x, int *y) {
  copy<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>(x, y);
}
extern "C" __global__ void block_transpose(const int *x, int *y) {
  copy<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>(x, y);
}
extern "C" __global__ void warp_transpose(const int *x, int *y) {
  copy<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(x, y);
}
extern "C" __global__ void warp_transpose_timesliced(const int *x, int *y) {
  copy<cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED, cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED>(x, y);
}
