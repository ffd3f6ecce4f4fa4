// Order within a block: variant 0 of each kernel is right, the others lack something. See OrderTest.cpp.
#define KERNEL(name, v)                                                                                                \
  extern "C" __global__ void name##_##v(const unsigned *in, unsigned *out, unsigned *work) { name<v>(in, out, work); }
#define PAIR(name) KERNEL(name, 0) KERNEL(name, 1)
#define BODY(name) template <int V> __device__ void name(const unsigned *in, unsigned *out, unsigned *work)

// Each takes what another thread put down; 1: no barrier.
BODY(exchange) {
  __shared__ unsigned s[128];
  s[threadIdx.x] = in[threadIdx.x];
  if (V == 0)
    __syncthreads();
  out[threadIdx.x] = s[127 - threadIdx.x];
}
PAIR(exchange)

// The buffer is used again; 1: no barrier before it is.
BODY(reuse) {
  __shared__ unsigned s[128];
  unsigned sum = 0;
  for (int i = 0; i < 4; ++i) {
    s[threadIdx.x] = in[threadIdx.x + 128 * i];
    __syncthreads();
    sum += s[(threadIdx.x + 33) % 128] * (i + 1);
    if (V == 0)
      __syncthreads();
  }
  out[threadIdx.x] = sum;
}
PAIR(reuse)

// Two buffers need one barrier a round; 1: odd rounds have none.
BODY(double_buffer) {
  __shared__ unsigned s[2][128];
  unsigned sum = 0;
  for (int i = 0; i < 6; ++i) {
    s[i % 2][threadIdx.x] = in[threadIdx.x + 128 * i];
    if (V == 0 || i % 2 == 0)
      __syncthreads();
    sum = sum * 3 + s[i % 2][(threadIdx.x + 65) % 128];
  }
  out[threadIdx.x] = sum;
}
PAIR(double_buffer)

// 1: the bins are not zeroed before others count; 2: they are read before all have counted; 3: no atomics.
BODY(histogram) {
  __shared__ unsigned bins[64];
  if (threadIdx.x < 64)
    bins[threadIdx.x] = 0;
  if (V != 1)
    __syncthreads();
  for (int i = threadIdx.x; i < 1024; i += 128) {
    unsigned bin = in[i] * 2654435761u >> 26;
    if (V == 3)
      bins[bin] += 1;
    else
      atomicAdd(&bins[bin], 1);
  }
  if (V != 2)
    __syncthreads();
  if (threadIdx.x >= 64)
    out[threadIdx.x - 64] = bins[threadIdx.x - 64];
}
PAIR(histogram)
KERNEL(histogram, 2)
KERNEL(histogram, 3)

// 1: steps without barriers; 2: the last steps, of one warp, rely on lockstep.
BODY(tree) {
  __shared__ unsigned s[128];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int step = 64; step > 16; step /= 2) {
    if (threadIdx.x < step)
      s[threadIdx.x] += s[threadIdx.x + step];
    if (V != 1)
      __syncthreads();
  }
  if (threadIdx.x < 32)
    for (int step = 16; step; step /= 2) {
      unsigned other = s[threadIdx.x + step];
      if (V != 2)
        __syncwarp();
      s[threadIdx.x] += other;
      if (V != 2)
        __syncwarp();
    }
  if (threadIdx.x == 0)
    out[0] = s[0];
}
PAIR(tree)
KERNEL(tree, 2)

// 1: written before all have read.
BODY(scan_in_place) {
  __shared__ unsigned s[128];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int step = 1; step < 128; step *= 2) {
    unsigned left = threadIdx.x >= step ? s[threadIdx.x - step] : 0;
    if (V == 0)
      __syncthreads();
    s[threadIdx.x] += left;
    __syncthreads();
  }
  out[threadIdx.x] = s[threadIdx.x];
}
PAIR(scan_in_place)

// 1: half a warp waits at a barrier of its own; 2: part of a warp has left.
BODY(branch_barrier) {
  __shared__ unsigned s[128];
  s[threadIdx.x] = in[threadIdx.x];
  if (V == 1) {
    if (threadIdx.x % 32 < 16)
      __syncthreads();
    else
      __syncthreads();
  } else if (V == 2) {
    if (threadIdx.x >= 16)
      __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = s[threadIdx.x ^ 64];
}
PAIR(branch_barrier)
KERNEL(branch_barrier, 2)

// One thread tells all; 1: they do not wait; 2: it tells the next before all have heard.
BODY(broadcast) {
  __shared__ unsigned s;
  unsigned sum = 0;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0)
      s = in[i];
    if (V != 1)
      __syncthreads();
    sum += s * (threadIdx.x + i);
    if (V != 2)
      __syncthreads();
  }
  out[threadIdx.x] = sum;
}
PAIR(broadcast)
KERNEL(broadcast, 2)

__device__ void joinSome(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ void arrive(unsigned id, unsigned threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Pairs of warps meet; 1: at barriers of the wrong pair; 2: one does not wait.
BODY(named) {
  __shared__ unsigned s[128];
  unsigned warp = threadIdx.x / 32, pair = warp / 2;
  s[threadIdx.x] = in[threadIdx.x];
  if (V == 0)
    joinSome(pair + 1, 64);
  else if (V == 1)
    joinSome(warp % 2 + 1, 64);
  else if (warp % 2)
    joinSome(pair + 1, 64);
  else
    arrive(pair + 1, 64);
  out[threadIdx.x] = s[threadIdx.x ^ 32];
}
PAIR(named)
KERNEL(named, 2)

// One half produces, the other consumes; 1: the producer overwrites before it knows that it may; 2: numbers differ.
BODY(producer) {
  __shared__ unsigned s[64];
  unsigned lane = threadIdx.x % 64, sum = 0;
  if (threadIdx.x < 64) {
    for (int i = 0; i < 3; ++i) {
      if (i && V != 1)
        joinSome(2, 128);
      s[lane] = in[lane + 64 * i];
      arrive(V == 2 ? 3 : 1, 128);
    }
  } else {
    for (int i = 0; i < 3; ++i) {
      joinSome(1, 128);
      sum += s[lane ^ 32] * (i + 1);
      if (i < 2 && V != 1)
        arrive(2, 128);
    }
    out[lane] = sum;
  }
}
PAIR(producer)
KERNEL(producer, 2)

// Partial sums of warps; 1: the first warp does not wait for them.
BODY(warp_sums) {
  __shared__ unsigned s[32];
  unsigned sum = in[threadIdx.x];
  for (int step = 16; step; step /= 2)
    sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0)
    s[threadIdx.x / 32] = sum;
  if (V == 0)
    __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < 4 ? s[threadIdx.x] : 0;
    for (int step = 16; step; step /= 2)
      sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x == 0)
      out[0] = sum;
  }
}
PAIR(warp_sums)

// A flag in shared memory; 1: no fence before it; 2: none after it; 3: the flag is an ordinary word.
BODY(shared_flag) {
  __shared__ unsigned data;
  __shared__ unsigned flag;
  if (threadIdx.x == 0)
    flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = in[5];
    if (V != 1)
      __threadfence_block();
    if (V == 3)
      flag = 1;
    else
      *(volatile unsigned *)&flag = 1;
  }
  if (threadIdx.x == 64) {
    if (V == 3) {
      while (!flag)
        ;
    } else {
      while (!*(volatile unsigned *)&flag)
        ;
    }
    if (V != 2)
      __threadfence_block();
    out[0] = data;
  }
}
PAIR(shared_flag)
KERNEL(shared_flag, 2)
KERNEL(shared_flag, 3)

__device__ void copyAsync(unsigned *to, const unsigned *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
               : "memory");
}

// 1: only for one's own copies; 2: nobody waits; 3: copies start while others still read.
BODY(async_copy) {
  __shared__ unsigned s[128];
  unsigned sum = 0;
  for (int i = 0; i < 3; ++i) {
    copyAsync(&s[threadIdx.x], &in[threadIdx.x + 128 * i]);
    if (V != 2)
      asm volatile("cp.async.wait_all;" ::: "memory");
    if (V != 1)
      __syncthreads();
    sum = sum * 5 + s[(threadIdx.x + 40) % 128];
    if (V != 3)
      __syncthreads();
  }
  out[threadIdx.x] = sum;
}
PAIR(async_copy)
KERNEL(async_copy, 2)
KERNEL(async_copy, 3)

// Values are put into a list; 1: the end is counted without atomics; 2: read before all are in.
BODY(push) {
  __shared__ unsigned list[128], count;
  if (threadIdx.x == 0)
    count = 0;
  __syncthreads();
  if (in[threadIdx.x] % 3 == 0) {
    unsigned at = V == 1 ? count++ : atomicAdd(&count, 1);
    list[at % 128] = in[threadIdx.x];
  }
  if (V != 2)
    __syncthreads();
  if (threadIdx.x == 0) {
    unsigned sum = count;
    for (unsigned i = 0; i < count && i < 128; ++i)
      sum += list[i];
    out[0] = sum;
  }
}
PAIR(push)
KERNEL(push, 2)

// 1: compared and stored by all.
BODY(maximum) {
  __shared__ unsigned most;
  if (threadIdx.x == 0)
    most = 0;
  __syncthreads();
  unsigned value = in[threadIdx.x] * 2654435761u;
  if (V == 0)
    atomicMax(&most, value);
  else if (value > most)
    most = value;
  __syncthreads();
  if (threadIdx.x == 0)
    out[0] = most;
}
PAIR(maximum)

// Within one block, in global memory; 1: no barrier.
BODY(global_shift) {
  work[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  unsigned next = work[(threadIdx.x + 1) % 128];
  if (V == 0)
    __syncthreads();
  work[threadIdx.x] = next;
  out[threadIdx.x] = next;
}
PAIR(global_shift)

// 1: a tile is read without a barrier, by columns.
BODY(tile) {
  __shared__ unsigned s[32][33];
  unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int i = y; i < 32; i += 4)
    s[i][x] = in[i * 32 + x];
  if (V == 0)
    __syncthreads();
  for (int i = y; i < 32; i += 4)
    out[i * 32 + x] = s[x][i];
}
PAIR(tile)

// Volatile words do not race, but what is read depends on who comes first; 1: no barrier.
BODY(volatile_exchange) {
  __shared__ volatile unsigned s[128];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = in[threadIdx.x];
  if (V == 0)
    __syncthreads();
  out[threadIdx.x] = s[127 - threadIdx.x];
}
PAIR(volatile_exchange)
