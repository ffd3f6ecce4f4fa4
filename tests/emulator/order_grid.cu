// Order among blocks: variant 0 of each kernel is right, the others lack something. See OrderTest.cpp.
#define KERNEL(name, v)                                                                                                \
  extern "C" __global__ void name##_##v(const unsigned *in, unsigned *out, unsigned *work) { name<v>(in, out, work); }
#define PAIR(name) KERNEL(name, 0) KERNEL(name, 1)
#define BODY(name) template <int V> __device__ void name(const unsigned *in, unsigned *out, unsigned *work)

template <int kind> __device__ unsigned load(const unsigned *p) { // 0: acquire, 1: relaxed, 2: plain, 3: block, 4: volatile
  unsigned v;
  if (kind == 0)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else if (kind == 1)
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else if (kind == 3)
    asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else if (kind == 4)
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
template <int kind> __device__ void store(unsigned *p, unsigned v) { // 0: release, else as above
  if (kind == 0)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  else if (kind == 1)
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  else if (kind == 3)
    asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  else if (kind == 4)
    asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  else
    asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

__device__ unsigned blockSum(unsigned value) {
  __shared__ unsigned s[32];
  for (int step = 16; step; step /= 2)
    value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    s[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i)
    value += s[i];
  return value;
}

// The last block sums up. 1: no fence; 2: the fence comes after the ticket; 3: of the block's scope; 4: tickets without
// atomics; 5: nobody waits for the others' parts; 6: block-scope tickets.
BODY(last_block) {
  __shared__ bool last;
  unsigned sum = blockSum(in[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x == 0) {
    work[1 + blockIdx.x] = sum;
    if (V == 0 || V == 4 || V == 6)
      __threadfence();
    if (V == 3)
      __threadfence_block();
    unsigned ticket;
    if (V == 4) {
      ticket = work[0];
      work[0] = ticket + 1;
    } else if (V == 6) {
      ticket = atomicAdd_block(&work[0], 1);
    } else {
      ticket = atomicAdd(&work[0], 1);
    }
    if (V == 2)
      __threadfence();
    last = V == 5 ? blockIdx.x == gridDim.x - 1 : ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    unsigned total = blockSum(threadIdx.x < gridDim.x ? work[1 + threadIdx.x] : 0);
    if (threadIdx.x == 0)
      out[0] = total;
  }
}
PAIR(last_block)
KERNEL(last_block, 2)
KERNEL(last_block, 3)
KERNEL(last_block, 4)
KERNEL(last_block, 5)
KERNEL(last_block, 6)

// All threads have parts: each fences its own, all meet, one takes the ticket. 1: they do not meet; 2: no fences.
BODY(last_block_wide) {
  __shared__ bool last;
  work[64 + blockIdx.x * blockDim.x + threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x] * 3;
  if (V != 2)
    __threadfence();
  if (V != 1)
    __syncthreads();
  if (threadIdx.x == 0)
    last = atomicInc(&work[0], gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (last) {
    __threadfence();
    unsigned sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i)
      sum += work[64 + i * blockDim.x + (threadIdx.x ^ 1)];
    out[threadIdx.x] = sum;
    if (threadIdx.x == 0)
      work[0] = 0;
  }
}
PAIR(last_block_wide)
KERNEL(last_block_wide, 2)

// Block 0 tells block 1. 1: the flag is stored relaxed; 2: polled relaxed; 3: an ordinary word; 4: set too early; 5: the
// block's scope; 6: no flag.
BODY(message) {
  unsigned *flag = work, *data = work + 32;
  if (blockIdx.x == 0) {
    if (V == 4 && threadIdx.x == 0)
      store<0>(flag, 1);
    data[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (V != 4 && V != 6 && threadIdx.x == 0)
      store<V == 1 ? 1 : V == 3 ? 2 : V == 5 ? 3 : 0>(flag, 1);
  } else {
    if (V != 6 && threadIdx.x == 0)
      while (load<V == 2 ? 1 : V == 3 ? 2 : V == 5 ? 3 : 0>(flag) == 0)
        ;
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x ^ 1];
  }
}
PAIR(message)
KERNEL(message, 2)
KERNEL(message, 3)
KERNEL(message, 4)
KERNEL(message, 5)
KERNEL(message, 6)

// The same by volatile and fences. 1: none before the flag; 2: none after it; 3: of the block's scope.
BODY(fenced_message) {
  unsigned *flag = work, *data = work + 32;
  if (blockIdx.x == 1) {
    data[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
      if (V == 3)
        __threadfence_block();
      else if (V != 1)
        __threadfence();
      store<4>(flag, 1);
    }
  } else {
    if (threadIdx.x == 0) {
      while (load<4>(flag) == 0)
        ;
      if (V != 2)
        __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x ^ 1];
  }
}
PAIR(fenced_message)
KERNEL(fenced_message, 2)
KERNEL(fenced_message, 3)

// 1: the lanes of the sender do not wait for each other; 2: those of the receiver do not.
BODY(warp_message) {
  unsigned *flag = work, *data = work + 32;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = in[threadIdx.x];
    if (V != 1)
      __syncwarp();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicExch(flag, 1);
    }
  } else {
    if (threadIdx.x == 0) {
      while (load<1>(flag) == 0)
        ;
      __threadfence();
    }
    if (V != 2)
      __syncwarp();
    out[threadIdx.x] = data[threadIdx.x ^ 1];
  }
}
PAIR(warp_message)
KERNEL(warp_message, 2)

/// As cooperative groups do it. 1: no fences; 2: nobody waits; 3, 4: no barrier of the block before, after it.
template <int V> __device__ void gridBarrier(unsigned *count) {
  if (V != 3)
    __syncthreads();
  if (threadIdx.x == 0) {
    if (V != 1)
      __threadfence();
    unsigned expected = (atomicAdd(count, 1) / gridDim.x + 1) * gridDim.x;
    while (V != 2 && load<4>(count) < expected)
      ;
    if (V != 1)
      __threadfence();
  }
  if (V != 4)
    __syncthreads();
}

BODY(grid_barrier) {
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x, value = in[at % 4096];
  unsigned *a = work + 32, *b = a + all;
  a[at] = value;
  gridBarrier<V>(work);
  b[at] = a[(at + 77) % all] * 3;
  gridBarrier<V>(work);
  a[at] = b[(at + 131) % all] + 1;
  gridBarrier<V>(work);
  out[at % 4096] = a[all - 1 - at];
}
PAIR(grid_barrier)
KERNEL(grid_barrier, 2)
KERNEL(grid_barrier, 3)
KERNEL(grid_barrier, 4)

// A lock between blocks. 1: no fence before it is given back; 2: taken without atomics; 3: given back by a plain store;
// 4: never given back; 5: no lock.
BODY(lock) {
  if (threadIdx.x == 0) {
    if (V == 2) {
      while (load<4>(work))
        ;
      store<4>(work, 1);
    } else if (V != 5) {
      while (atomicCAS(work, 0, 1))
        ;
    }
    if (V != 1)
      __threadfence();
    work[32] = work[32] * 3 % 1000003 + 1;
    if (V != 1)
      __threadfence();
    if (V == 3)
      store<2>(work, 0);
    else if (V != 4 && V != 5)
      atomicExch(work, 0);
  }
}
PAIR(lock)
KERNEL(lock, 2)
KERNEL(lock, 3)
KERNEL(lock, 4)
KERNEL(lock, 5)

// A lock that every thread takes, lanes of one warp too. 1: no fences.
BODY(lane_lock) {
  while (atomicCAS(work, 0, 1))
    ;
  if (V == 0)
    __threadfence();
  work[32] += in[threadIdx.x];
  if (V == 0)
    __threadfence();
  atomicExch(work, 0);
}
PAIR(lane_lock)

// 1: atomics of the block's scope.
BODY(block_scope) {
  unsigned value = in[threadIdx.x];
  if (V == 0)
    atomicAdd(work, value);
  else
    atomicAdd_block(work, value);
}
PAIR(block_scope)

// Each block waits for the sum of those before it. 1: no fence; 2: the flag comes first.
BODY(chained_scan) {
  unsigned sum = blockSum(in[(blockIdx.x * blockDim.x + threadIdx.x) % 4096]);
  if (threadIdx.x)
    return;
  unsigned before = 0, *flags = work, *sums = work + 2048;
  if (blockIdx.x) {
    while (load<4>(&flags[blockIdx.x - 1]) == 0)
      ;
    __threadfence();
    before = sums[blockIdx.x - 1];
  }
  if (V == 2)
    store<4>(&flags[blockIdx.x], 1);
  sums[blockIdx.x] = before + sum;
  if (V != 1)
    __threadfence();
  if (V != 2)
    store<4>(&flags[blockIdx.x], 1);
  out[blockIdx.x] = before;
}
PAIR(chained_scan)
KERNEL(chained_scan, 2)

// Partial or whole sums with their state in one word: decoupled look-back. 1: the block's number, not a ticket, decides
// whom it waits for, and it waits for those after it.
BODY(look_back) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0)
    ticket = V == 1 ? gridDim.x - 1 - blockIdx.x : atomicAdd(work, 1);
  __syncthreads();
  unsigned me = ticket, sum = blockSum(in[(me * blockDim.x + threadIdx.x) % 4096]) & 0xffff;
  unsigned long long *states = (unsigned long long *)(work + 32);
  if (threadIdx.x == 0) {
    if (me)
      atomicExch(&states[me], 1ull << 32 | sum);
    unsigned before = 0;
    for (int other = int(me) - 1; other >= 0; --other) {
      unsigned long long state;
      do
        state = *(volatile unsigned long long *)&states[other];
      while (state >> 32 == 0);
      before += unsigned(state);
      if (state >> 32 == 2)
        break;
    }
    atomicExch(&states[me], 2ull << 32 | (before + sum));
    out[me] = before;
  }
}
PAIR(look_back)

// 1: nobody sets the flag; 2: the compiler keeps it in a register.
BODY(wait_for_nobody) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (V == 2) {
      while (work[0] == 0)
        ;
    } else {
      while (load<0>(work) == 0)
        ;
    }
    out[0] = 1;
  } else if (threadIdx.x == 0 && blockIdx.x == 1) {
    store<0>(V == 1 ? work + 1 : work, 1);
  }
}
PAIR(wait_for_nobody)
KERNEL(wait_for_nobody, 2)

// A maximum by compare and swap. 1: what is expected never changes; 2: exchanged without comparing; 3: read, then stored.
BODY(compare_and_swap) {
  unsigned value = in[threadIdx.x + blockIdx.x * 32] * 2654435761u;
  unsigned old = load<1>(work);
  if (V == 3) {
    if (value > old)
      store<1>(work, value);
    return;
  }
  if (V == 2) {
    if (value > old)
      atomicExch(work, value);
    return;
  }
  while (old < value) {
    unsigned found = atomicCAS(work, old, value);
    if (found == old)
      break;
    if (V == 0)
      old = found;
  }
}
PAIR(compare_and_swap)
KERNEL(compare_and_swap, 2)
KERNEL(compare_and_swap, 3)

// Work is handed out. 1: by reading and storing.
BODY(work_queue) {
  for (;;) {
    unsigned item;
    if (V == 0) {
      item = atomicAdd(work, 1);
    } else {
      item = load<4>(work);
      store<4>(work, item + 1);
    }
    if (item >= 96)
      break;
    atomicAdd(&out[item], in[item]);
  }
}
PAIR(work_queue)

// Blocks write tiles that touch; 1: that overlap by one word.
BODY(tiles) {
  unsigned begin = blockIdx.x * (V == 0 ? 33 : 32);
  for (unsigned i = threadIdx.x; i < 33; i += blockDim.x)
    out[begin + i] = in[begin + i] + blockIdx.x;
}
PAIR(tiles)

// Blocks read their neighbours' words; 1: where those write.
BODY(stencil) {
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (V == 0) {
    out[at] = in[at] + in[at + 1];
  } else {
    work[at] = in[at];
    __syncthreads();
    out[at] = work[at] + work[at + 1];
  }
}
PAIR(stencil)

// Counted by all blocks in global memory; 1: without atomics; 2: volatile.
BODY(global_histogram) {
  unsigned *bin = &work[in[blockIdx.x * blockDim.x + threadIdx.x] * 2654435761u >> 28];
  if (V == 0)
    atomicAdd(bin, 1);
  else if (V == 1)
    *bin += 1;
  else
    store<4>(bin, load<4>(bin) + 1);
}
PAIR(global_histogram)
KERNEL(global_histogram, 2)
