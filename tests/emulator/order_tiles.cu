// Order among warps of which one lane speaks for all, as in cooperative groups' collectives over tiles of several warps:
// variant 0 of each kernel is right, the others lack something. See OrderTest.cpp.
#define KERNEL(name, v)                                                                                                \
  extern "C" __global__ void name##_##v(const unsigned *in, unsigned *out, unsigned *work) { name<v>(in, out, work); }
#define PAIR(name) KERNEL(name, 0) KERNEL(name, 1)
#define BODY(name) template <int V> __device__ void name(const unsigned *in, unsigned *out, unsigned *work)

enum Order { Full, Acquire, Release, Relaxed };
template <Order order> __device__ unsigned arrive(unsigned *arrived, unsigned bits) {
  unsigned old;
  if (order == Full)
    asm volatile("atom.or.acq_rel.cta.b32 %0, [%1], %2;" : "=r"(old) : "l"(arrived), "r"(bits) : "memory");
  else if (order == Acquire)
    asm volatile("atom.or.acquire.cta.b32 %0, [%1], %2;" : "=r"(old) : "l"(arrived), "r"(bits) : "memory");
  else if (order == Release)
    asm volatile("atom.or.release.cta.b32 %0, [%1], %2;" : "=r"(old) : "l"(arrived), "r"(bits) : "memory");
  else
    asm volatile("atom.or.relaxed.cta.b32 %0, [%1], %2;" : "=r"(old) : "l"(arrived), "r"(bits) : "memory");
  return old;
}
template <Order order> __device__ unsigned load(const unsigned *p) {
  unsigned v;
  if (order == Acquire)
    asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else
    asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ void release(unsigned *p, unsigned v) {
  asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Two warps leave what each lane has; the one that comes last reads all of it. 1: nothing is acquired; 2: nothing is
// released; 3: no shuffle, each lane looks by itself, relaxed; 4: a shuffle that carries something else; 5: lanes have not
// met before the first of them speaks for all; 6: lanes of the last warp hand on what they read with a shuffle between.
BODY(last_warp) {
  __shared__ unsigned s[64], sums[32], arrived;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0)
    arrived = 0;
  __syncthreads();
  s[threadIdx.x] = in[threadIdx.x];
  if (V != 5)
    __syncwarp();
  unsigned old = 0;
  if (lane == 0)
    old = arrive < V == 1 ? Release : V == 2 ? Acquire : Full > (&arrived, 1u << warp);
  if (V == 3)
    old = load<Relaxed>(&arrived) & ~(1u << warp);
  else if (V == 4)
    old = __shfl_sync(~0u, in[lane] & 0, 0) | (load<Relaxed>(&arrived) & ~(1u << warp));
  else
    old = __shfl_sync(~0u, old, 0);
  if ((old | 1u << warp) == 3) {
    unsigned sum = s[lane ^ 1] * 3 + s[32 + (lane ^ 2)];
    sums[lane] = sum;
    if (V == 6)
      sum += __shfl_xor_sync(~0u, old, 4) == ~0u;
    else
      __syncwarp();
    out[lane] = sum + sums[lane ^ 4];
  }
}
PAIR(last_warp)
KERNEL(last_warp, 2)
KERNEL(last_warp, 3)
KERNEL(last_warp, 4)
KERNEL(last_warp, 5)
KERNEL(last_warp, 6)

// One warp waits for the flag of another; its first lane looks, and tells the others by a collective. 1: it does not
// acquire; 2: the collective carries something else.
template <int V, typename Tell> __device__ void tell(const unsigned *in, unsigned *out, Tell tell) {
  __shared__ unsigned s[32], flag;
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0)
    flag = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    s[lane] = in[lane];
    __syncwarp();
    if (lane == 0)
      release(&flag, 1);
    return;
  }
  unsigned seen = 0, told = 0;
  do {
    if (lane == 0)
      seen = load < V == 1 ? Relaxed : Acquire > (&flag);
    told = tell(V == 2 ? in[lane] & 1 : seen);
  } while (V == 2 ? load<Relaxed>(&flag) == 0 : told == 0);
  out[lane] = s[lane ^ 7];
}
BODY(tell_ballot) {
  tell<V>(in, out, [](unsigned v) { return __ballot_sync(~0u, v != 0); });
}
PAIR(tell_ballot)
KERNEL(tell_ballot, 2)
BODY(tell_any) {
  tell<V>(in, out, [](unsigned v) { return unsigned(__any_sync(~0u, v != 0)); });
}
PAIR(tell_any)
KERNEL(tell_any, 2)
BODY(tell_sum) {
  tell<V>(in, out, [](unsigned v) { return __reduce_add_sync(~0u, v); });
}
PAIR(tell_sum)
KERNEL(tell_sum, 2)
BODY(tell_match) {
  tell<V>(in, out, [](unsigned v) { return unsigned(__match_any_sync(~0u, threadIdx.x == 0 ? v : 1) == ~0u); });
}
PAIR(tell_match)
KERNEL(tell_match, 2)

// From lane to lane: each hears of it from the one before. 1: the last of them does not.
BODY(tell_in_turn) {
  tell<0>(in, out, [](unsigned v) {
    for (unsigned step = 1; step < (V == 1 ? 16 : 32); step *= 2) {
      unsigned left = __shfl_up_sync(~0u, v, step);
      v |= threadIdx.x >= step ? left : 0;
    }
    return V == 1 ? v | unsigned(threadIdx.x >= 16) : v;
  });
}
PAIR(tell_in_turn)

// Each lane leaves a part for its neighbour, again and again; lanes have read before they get a value that is made after
// it, as in cooperative groups' scans. 1: no collective; 2: it goes another way; 3: it comes before they read; 4: lanes do
// not meet before they read, but get values; 5: in global memory.
BODY(reuse) {
  __shared__ unsigned parts[32], arrived;
  unsigned *s = V == 5 ? work : parts;
  if (threadIdx.x == 0)
    arrived = 0;
  __syncthreads();
  unsigned sum = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned value = in[threadIdx.x + 32 * i];
    s[threadIdx.x] = value;
    if (V != 4)
      __syncwarp();
    if (V == 3 || V == 4)
      sum += __shfl_xor_sync(~0u, value, 1) == ~0u;
    sum += s[threadIdx.x ^ 1];
    if (V == 0 || V == 4 || V == 5)
      sum += __shfl_xor_sync(~0u, value, 1) == ~0u;
    if (V == 2)
      sum += __shfl_xor_sync(~0u, value, 2) == ~0u;
  }
  arrive<Full>(&arrived, 1);
  out[threadIdx.x] = sum;
}
PAIR(reuse)
KERNEL(reuse, 2)
KERNEL(reuse, 3)
KERNEL(reuse, 4)
KERNEL(reuse, 5)

// What a lane has learned it tells other warps. 1: it does not let go.
BODY(tell_on) {
  __shared__ unsigned s[32], flags[2];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < 2)
    flags[threadIdx.x] = 0;
  __syncthreads();
  if (warp == 0) {
    s[lane] = in[lane];
    __syncwarp();
    if (lane == 0)
      release(&flags[0], 1);
  } else if (warp == 1) {
    unsigned seen = 0;
    while (lane == 0 && seen == 0)
      seen = load<Acquire>(&flags[0]);
    seen = __shfl_sync(~0u, seen, 0);
    if (lane == 9 && V == 0)
      release(&flags[1], seen);
    else if (lane == 9)
      asm volatile("st.relaxed.cta.u32 [%0], %1;" ::"l"(&flags[1]), "r"(seen) : "memory");
  } else {
    while (load<Acquire>(&flags[1]) == 0)
      ;
    out[lane] = s[lane ^ 3];
  }
}
PAIR(tell_on)
