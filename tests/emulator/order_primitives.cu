// What libraries of kernels are made of, all of it right. See OrderTest.cpp.
#define KERNEL(name)                                                                                                   \
  extern "C" __global__ void name##_0(const unsigned *in, unsigned *out, unsigned *work) { name(in, out, work); }
#define BODY(name) __device__ void name(const unsigned *in, unsigned *out, unsigned *work)

__device__ unsigned scanWarp(unsigned value) {
  unsigned lane = threadIdx.x % 32;
  for (unsigned step = 1; step < 32; step *= 2) {
    unsigned left = __shfl_up_sync(~0u, value, step);
    value += lane >= step ? left : 0;
  }
  return value;
}

// Scans of warps, then of their sums.
__device__ unsigned scanBlock(unsigned value, unsigned *sums) {
  unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, scanned = scanWarp(value);
  if (lane == 31)
    sums[warp] = scanned;
  __syncthreads();
  if (warp == 0)
    sums[lane] = scanWarp(lane < blockDim.x / 32 ? sums[lane] : 0);
  __syncthreads();
  scanned += warp ? sums[warp - 1] : 0;
  __syncthreads();
  return scanned;
}

BODY(block_scan_of_warps) {
  __shared__ unsigned sums[32];
  unsigned before = 0;
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
    unsigned scanned = scanBlock(in[i], sums);
    out[i] = before + scanned;
    before += sums[31];
  }
}

// Each warp scans a segment of a shared array by itself, without shuffles.
BODY(warp_scan_shared) {
  __shared__ volatile unsigned s[4][48];
  unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  s[warp][lane] = 0;
  s[warp][lane + 16] = in[threadIdx.x];
  __syncwarp();
  unsigned sum = in[threadIdx.x];
  for (unsigned step = 1; step < 32; step *= 2) {
    unsigned left = step <= lane ? s[warp][lane + 16 - step] : 0;
    __syncwarp();
    sum += left;
    s[warp][lane + 16] = sum;
    __syncwarp();
  }
  out[threadIdx.x] = sum;
}

// One warp rakes over what all have put down.
BODY(raking_reduce) {
  __shared__ unsigned s[128 + 4];
  s[threadIdx.x + threadIdx.x / 32] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    unsigned sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += s[threadIdx.x * 4 + i + (threadIdx.x * 4 + i) / 32];
    for (int step = 16; step; step /= 2)
      sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0)
      s[0] = sum;
  }
  __syncthreads();
  out[threadIdx.x] = s[0];
}

// A stable sort of 128 keys by 4 bits a pass: ranks by what lanes match, counters of each warp, a scan of them.
BODY(radix_sort) {
  __shared__ unsigned counters[16 * 4], sums[32], keys[128];
  unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, key = in[threadIdx.x] * 2654435761u >> 20;
  for (unsigned bit = 0; bit < 12; bit += 4) {
    unsigned digit = key >> bit & 15;
    for (unsigned i = threadIdx.x; i < 64; i += blockDim.x)
      counters[i] = 0;
    __syncthreads();
    unsigned peers = __match_any_sync(~0u, digit), rank = __popc(peers & ((1u << lane) - 1));
    if (rank == 0)
      counters[digit * 4 + warp] = __popc(peers);
    __syncthreads();
    unsigned count = threadIdx.x < 64 ? counters[threadIdx.x] : 0, scanned = scanBlock(count, sums);
    if (threadIdx.x < 64)
      counters[threadIdx.x] = scanned - count;
    __syncthreads();
    keys[counters[digit * 4 + warp] + rank] = key;
    __syncthreads();
    key = keys[threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = key;
}

// One atomic for all lanes that want a place.
BODY(aggregated_atomics) {
  unsigned value = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (value % 3)
    return;
  unsigned peers = __activemask(), lane = threadIdx.x % 32, leader = __ffs(peers) - 1, base = 0;
  if (lane == leader)
    base = atomicAdd(work, __popc(peers));
  base = __shfl_sync(peers, base, leader);
  atomicAdd(&out[(base + __popc(peers & ((1u << lane) - 1))) % 4096], 1);
}

// Tiles of 4, 8 and 16 lanes with masks of their own.
template <unsigned size> __device__ unsigned sumTile(unsigned *s, unsigned value) {
  unsigned lane = threadIdx.x % 32, mask = (size == 32 ? ~0u : (1u << size % 32) - 1) << (lane / size * size);
  s[threadIdx.x] = value;
  __syncwarp(mask);
  unsigned sum = 0;
  for (unsigned i = 0; i < size; ++i)
    sum += s[threadIdx.x / size * size + i];
  __syncwarp(mask);
  return sum;
}
BODY(tiled_sums) {
  __shared__ unsigned s[128];
  unsigned sum = sumTile<4>(s, in[threadIdx.x]);
  __syncwarp();
  sum += sumTile<8>(s, sum) * 3;
  __syncwarp();
  out[threadIdx.x] = sumTile<16>(s, sum);
}

// The grid's barrier with a sign bit that all wait for to change, by acquire and release.
__device__ void joinGrid(unsigned *count) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1, old, now;
    asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(count), "r"(add) : "memory");
    do
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
    while (((old ^ now) & 0x80000000u) == 0);
  }
  __syncthreads();
}
BODY(grid_sync) {
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x, *data = work + 32;
  data[at] = in[at];
  for (unsigned step = 1; step < all; step *= 2) {
    joinGrid(work);
    unsigned left = at >= step ? data[at - step] : 0;
    joinGrid(work);
    data[at] += left;
  }
  out[at] = data[at];
}

KERNEL(block_scan_of_warps)
KERNEL(warp_scan_shared)
KERNEL(raking_reduce)
KERNEL(radix_sort)
KERNEL(aggregated_atomics)
KERNEL(tiled_sums)
KERNEL(grid_sync)
