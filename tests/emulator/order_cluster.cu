// Order among the blocks of a cluster, by cooperative groups: variant 0 of each kernel is right, the others lack
// something. See OrderTest.cpp. Clusters have four blocks.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define KERNEL(name, v)                                                                                                \
  extern "C" __global__ void __cluster_dims__(4, 1, 1)                                                                 \
      name##_##v(const unsigned *in, unsigned *out, unsigned *work) {                                                  \
    name<v>(in, out, work);                                                                                            \
  }
#define PAIR(name) KERNEL(name, 0) KERNEL(name, 1)
#define BODY(name) template <int V> __device__ void name(const unsigned *in, unsigned *out, unsigned *work)

__device__ unsigned threadOfGrid() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Each block reads the next one's numbers. 1: no barrier of the cluster before it reads, 2: after it; 3: a barrier of
// the block instead of the first.
BODY(ring) {
  __shared__ unsigned s[64];
  cg::cluster_group cluster = cg::this_cluster();
  s[threadIdx.x] = in[threadOfGrid()] * 3;
  if (V == 3)
    __syncthreads();
  else if (V != 1)
    cluster.sync();
  unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  out[threadOfGrid()] = cluster.map_shared_rank(s, next)[threadIdx.x ^ 1];
  if (V != 2)
    cluster.sync();
}
PAIR(ring)
KERNEL(ring, 2)
KERNEL(ring, 3)

// Three rounds around the ring in two buffers. 1: one buffer; 2: the last barrier is missing.
BODY(rounds) {
  __shared__ unsigned s[2][64];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks(), value = in[threadOfGrid()];
  for (int round = 0; round < 3; ++round) {
    unsigned *mine = s[V == 1 ? 0 : round % 2];
    mine[threadIdx.x] = value;
    cluster.sync();
    value = value * 5 + cluster.map_shared_rank(mine, next)[threadIdx.x];
  }
  if (V != 2)
    cluster.sync();
  out[threadOfGrid()] = value;
}
PAIR(rounds)
KERNEL(rounds, 2)

// A sum over the cluster, which its first block writes. 1: parts are not waited for; 2: the others end too early; 3: the
// blocks' own threads do not wait for each other.
BODY(sum) {
  __shared__ unsigned part[2], total;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned value = in[threadOfGrid()];
  for (int step = 16; step; step /= 2)
    value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = value;
  if (V != 3)
    __syncthreads();
  if (threadIdx.x == 0)
    total = part[0] + part[1];
  if (V != 1)
    cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    unsigned sum = 0;
    for (unsigned i = 0; i < cluster.num_blocks(); ++i)
      sum += *cluster.map_shared_rank(&total, i);
    out[blockIdx.x / 4] = sum;
  }
  if (V != 2)
    cluster.sync();
}
PAIR(sum)
KERNEL(sum, 2)
KERNEL(sum, 3)

// Counts in bins that are spread over the blocks. 1: no barrier after the zeros; 2: before the counts are read; 3:
// without atomics; 4: atomics of the block's scope.
BODY(histogram) {
  __shared__ unsigned bins[64];
  cg::cluster_group cluster = cg::this_cluster();
  bins[threadIdx.x] = 0;
  if (V == 1)
    __syncthreads();
  else
    cluster.sync();
  for (unsigned i = 0; i < 4; ++i) {
    unsigned bin = in[threadOfGrid() * 4 + i] * 2654435761u >> 27;
    unsigned *remote = cluster.map_shared_rank(bins + bin / 4, bin % 4);
    if (V == 3)
      *remote += 1;
    else if (V == 4)
      atomicAdd_block(remote, 1);
    else
      atomicAdd(remote, 1);
  }
  if (V == 2)
    __syncthreads();
  else
    cluster.sync();
  out[threadOfGrid()] = bins[threadIdx.x];
}
PAIR(histogram)
KERNEL(histogram, 2)
KERNEL(histogram, 3)
KERNEL(histogram, 4)

// Split-K: each block has a quarter of each dot product and adds up a quarter of the results. 1: parts are read too
// early; 2: blocks end too early; 3: all add up the same quarter.
BODY(split) {
  __shared__ unsigned parts[64];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), first = blockIdx.x / 4 * 256, sum = 0;
  for (unsigned k = 0; k < 8; ++k)
    sum += in[first + (threadIdx.x * 32 + rank * 8 + k) % 256] * in[1024 + rank * 8 + k];
  parts[threadIdx.x] = sum;
  if (V == 1)
    __syncthreads();
  else
    cluster.sync();
  unsigned at = threadIdx.x % 16 + 16 * (V == 3 ? 0 : rank), all = 0;
  for (unsigned i = 0; i < 4; ++i)
    all += cluster.map_shared_rank(parts, i)[at];
  if (threadIdx.x < 16)
    out[blockIdx.x / 4 * 64 + at] = all + (V == 3 ? rank : 0);
  if (V != 2)
    cluster.sync();
}
PAIR(split)
KERNEL(split, 2)
KERNEL(split, 3)

// The first block stores its tile to all others, while they do something else: the barrier's halves. 1: arrives before
// it has stored; 2: the others may not have begun; 3: nobody waits.
BODY(broadcast) {
  __shared__ unsigned tile[64];
  cg::cluster_group cluster = cg::this_cluster();
  if (V != 2)
    cluster.sync();
  if (V == 1)
    cluster.barrier_arrive();
  if (cluster.block_rank() == 0)
    for (unsigned i = 0; i < cluster.num_blocks(); ++i)
      cluster.map_shared_rank(tile, i)[threadIdx.x] = in[threadOfGrid()];
  if (V != 1)
    cluster.barrier_arrive();
  unsigned own = in[threadOfGrid()] * 7;
  if (V != 3)
    cluster.barrier_wait();
  else
    __syncthreads();
  out[threadOfGrid()] = own + tile[threadIdx.x ^ 2];
}
PAIR(broadcast)
KERNEL(broadcast, 2)
KERNEL(broadcast, 3)

template <int kind> __device__ unsigned load(const unsigned *p) { // 0: acquire, 1: relaxed, 2: of the block's scope
  unsigned v;
  if (kind == 0)
    asm volatile("ld.acquire.cluster.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else if (kind == 1)
    asm volatile("ld.relaxed.cluster.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else
    asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
template <int kind> __device__ void store(unsigned *p, unsigned v) { // 0: release, else as above
  if (kind == 0)
    asm volatile("st.release.cluster.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  else if (kind == 1)
    asm volatile("st.relaxed.cluster.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  else
    asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Each block hands its tile on to the next one, which polls a flag in its own memory. 1: the flag is stored relaxed; 2:
// polled relaxed; 3, 4: of the block's scope; 5: set too early.
BODY(chain) {
  __shared__ unsigned tile[64], flag;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), value = in[threadOfGrid()];
  flag = 0;
  cluster.sync();
  if (rank) {
    if (threadIdx.x == 0)
      while (load<V == 2 ? 1 : V == 4 ? 2 : 0>(&flag) == 0)
        ;
    __syncthreads();
    value += tile[threadIdx.x] * 3;
  }
  if (rank + 1 < cluster.num_blocks()) {
    unsigned *there = cluster.map_shared_rank(&flag, rank + 1);
    if (V == 5 && threadIdx.x == 0)
      store<0>(there, 1);
    cluster.map_shared_rank(tile, rank + 1)[threadIdx.x] = value;
    __syncthreads();
    if (V != 5 && threadIdx.x == 0)
      store<V == 1 ? 1 : V == 3 ? 2 : 0>(there, 1);
  }
  out[threadOfGrid()] = value;
}
PAIR(chain)
KERNEL(chain, 2)
KERNEL(chain, 3)
KERNEL(chain, 4)
KERNEL(chain, 5)

// A word of global memory from block to block of a cluster. 1: of the block's scope; 2: to the next cluster.
BODY(scope) {
  unsigned *flag = work + blockIdx.x / 4 * 32, *data = flag + 16, rank = blockIdx.x % 4;
  if (V == 2)
    flag = work, data = flag + 16, rank = blockIdx.x / 4;
  if (threadIdx.x || rank > 1 || (V == 2 && blockIdx.x % 4))
    return;
  if (rank == 0) {
    *data = in[blockIdx.x];
    store<V == 1 ? 2 : 0>(flag, 1);
  } else {
    while (load<0>(flag) == 0)
      ;
    out[blockIdx.x] = *data;
  }
}
PAIR(scope)
KERNEL(scope, 2)
