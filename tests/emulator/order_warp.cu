// Order within a warp: variant 0 of each kernel is right, the others lack something. See OrderTest.cpp.
#define KERNEL(name, v)                                                                                                \
  extern "C" __global__ void name##_##v(const unsigned *in, unsigned *out, unsigned *work) { name<v>(in, out, work); }
#define PAIR(name) KERNEL(name, 0) KERNEL(name, 1)
#define BODY(name) template <int V> __device__ void name(const unsigned *in, unsigned *out, unsigned *work)

// 1: nothing; 2..6: an instruction that waits for lanes, but orders no memory.
BODY(lanes) {
  __shared__ unsigned s[32];
  s[threadIdx.x] = in[threadIdx.x];
  unsigned extra = 0;
  if (V == 0)
    __syncwarp();
  if (V == 2)
    extra = __shfl_sync(~0u, in[threadIdx.x], 3);
  if (V == 3)
    extra = __ballot_sync(~0u, in[threadIdx.x] & 1);
  if (V == 4)
    extra = __match_any_sync(~0u, in[threadIdx.x] & 1);
  if (V == 5)
    extra = __reduce_add_sync(~0u, in[threadIdx.x]);
  if (V == 6)
    extra = __activemask();
  out[threadIdx.x] = s[31 - threadIdx.x];
  out[threadIdx.x + 32] = extra;
}
PAIR(lanes)
KERNEL(lanes, 2)
KERNEL(lanes, 3)
KERNEL(lanes, 4)
KERNEL(lanes, 5)
KERNEL(lanes, 6)

// 1: halves wait among themselves only; 2: the mask names lanes that are elsewhere.
BODY(members) {
  __shared__ unsigned s[32];
  s[threadIdx.x] = in[threadIdx.x];
  if (V == 1)
    __syncwarp(threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u);
  else if (V == 2 && threadIdx.x < 16)
    __syncwarp();
  else if (V == 0)
    __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 16];
}
PAIR(members)
KERNEL(members, 2)

// Tiles of eight lanes; 1: one reads a neighbour's tile.
BODY(small_tiles) {
  __shared__ unsigned s[32];
  unsigned lane = threadIdx.x, tile = lane / 8;
  s[lane] = in[lane];
  __syncwarp(0xffu << (tile * 8));
  out[lane] = s[V == 0 ? lane ^ 5 : lane ^ 9];
}
PAIR(small_tiles)

// 1: written again before the others have read.
BODY(lanes_reuse) {
  __shared__ unsigned s[32];
  unsigned sum = 0;
  for (int i = 0; i < 4; ++i) {
    s[threadIdx.x] = in[threadIdx.x + 32 * i];
    __syncwarp();
    sum = sum * 3 + s[(threadIdx.x + 1) % 32];
    if (V == 0)
      __syncwarp();
  }
  out[threadIdx.x] = sum;
}
PAIR(lanes_reuse)

// 1: lockstep is taken for granted; 2: shuffles between are taken for fences.
BODY(warp_tree) {
  __shared__ unsigned s[64];
  unsigned lane = threadIdx.x, keep = 0;
  s[lane] = in[lane];
  s[lane + 32] = 0;
  if (V == 0)
    __syncwarp();
  for (int step = 16; step; step /= 2) {
    unsigned other = s[lane + step];
    if (V == 0)
      __syncwarp();
    if (V == 2)
      keep += __shfl_xor_sync(~0u, other, 1);
    s[lane] += other;
    if (V == 0)
      __syncwarp();
    if (V == 2)
      keep += __shfl_xor_sync(~0u, other, 2);
  }
  if (lane == 0)
    out[0] = s[0];
  out[lane + 32] = keep;
}
PAIR(warp_tree)
KERNEL(warp_tree, 2)

// Bitonic sort; 1: no waiting between the steps.
BODY(sort) {
  __shared__ unsigned s[32];
  unsigned lane = threadIdx.x;
  s[lane] = in[lane] * 2654435761u;
  __syncwarp();
  for (unsigned size = 2; size <= 32; size *= 2)
    for (unsigned step = size / 2; step; step /= 2) {
      unsigned other = lane ^ step, mine = s[lane], theirs = s[other];
      bool low = ((lane & size) == 0) == (lane < other);
      if (V == 0)
        __syncwarp();
      s[lane] = low ? min(mine, theirs) : max(mine, theirs);
      if (V == 0)
        __syncwarp();
    }
  out[lane] = s[lane];
}
PAIR(sort)

// 1: a shuffle names lanes that do not come.
BODY(half_shuffle) {
  unsigned value = in[threadIdx.x];
  if (threadIdx.x < 16)
    value = __shfl_xor_sync(V == 0 ? 0xffffu : ~0u, value, 3);
  out[threadIdx.x] = value;
}
PAIR(half_shuffle)

// In global memory; 1: no waiting.
BODY(lanes_global) {
  work[threadIdx.x] = in[threadIdx.x];
  if (V == 0)
    __syncwarp();
  out[threadIdx.x] = work[threadIdx.x ^ 1];
}
PAIR(lanes_global)

// A matrix of 8 rows; 1: loaded before all have stored.
BODY(matrix) {
  __shared__ __align__(16) unsigned s[32];
  s[threadIdx.x] = in[threadIdx.x];
  if (V == 0)
    __syncwarp();
  unsigned value, row = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x % 8 * 4]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(value) : "r"(row) : "memory");
  out[threadIdx.x] = value;
}
PAIR(matrix)

// One lane tells the others; 1: they do not wait.
BODY(leader) {
  __shared__ unsigned s;
  if (threadIdx.x == 0)
    s = in[7];
  if (V == 0)
    __syncwarp();
  out[threadIdx.x] = s + threadIdx.x;
}
PAIR(leader)

// Two warps; 1: waiting for one's own warp is taken for a barrier.
BODY(other_warp) {
  __shared__ unsigned s[64];
  s[threadIdx.x] = in[threadIdx.x];
  if (V == 0)
    __syncthreads();
  else
    __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 32];
}
PAIR(other_warp)

// Lanes add to one word; 1: without atomics.
BODY(lane_sum) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0)
    sum = 0;
  __syncwarp();
  if (V == 0)
    atomicAdd(&sum, in[threadIdx.x]);
  else
    sum += in[threadIdx.x];
  __syncwarp();
  if (threadIdx.x == 0)
    out[0] = sum;
}
PAIR(lane_sum)
