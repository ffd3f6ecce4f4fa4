#pragma once
// Kernels of one thread that decide, on the device, whether a conditional node's graph runs. hloc's own runtime has the
// same ones (src/runtime/CudaGraph.cpp), and python/hloc/graph_api.py has a copy of their text.

namespace hloc_launch {

inline constexpr const char *branchKernel = "hloc_takes_branch"; ///< (handle, selector, its bytes, branch, branches)
inline constexpr const char *roundKernel = "hloc_goes_round";    ///< (handle, counter of 64 bits, rounds)

/// The driver itself defines cudaGraphSetConditional, when it loads the module.
inline constexpr const char *conditionPtx = R"(.version 7.0
.target sm_80
.address_size 64

.extern .func cudaGraphSetConditional
(
  .param .b64 handle,
  .param .b32 value
);

// Selectors of one byte choose branch 0 if they are not 0, else 1; of four bytes the last one if they are negative or
// too large, which as unsigned numbers are the same.
.visible .entry hloc_takes_branch
(
  .param .u64 handle,
  .param .u64 selector,
  .param .u32 bytes,
  .param .u32 branch,
  .param .u32 branches
)
{
  .reg .pred %isByte, %holds, %isTaken;
  .reg .b64 %handle, %selector;
  .reg .b32 %bytes, %branch, %last, %chosen, %value;

  ld.param.u64 %handle, [handle];
  ld.param.u64 %selector, [selector];
  cvta.to.global.u64 %selector, %selector;
  ld.param.u32 %bytes, [bytes];
  ld.param.u32 %branch, [branch];
  ld.param.u32 %last, [branches];
  sub.u32 %last, %last, 1;
  setp.eq.u32 %isByte, %bytes, 1;
  @%isByte bra BYTE;
  ld.global.u32 %chosen, [%selector];
  min.u32 %chosen, %chosen, %last;
  bra DECIDE;
BYTE:
  ld.global.u8 %chosen, [%selector];
  setp.ne.u32 %holds, %chosen, 0;
  selp.u32 %chosen, 0, 1, %holds;
DECIDE:
  setp.eq.u32 %isTaken, %chosen, %branch;
  selp.u32 %value, 1, 0, %isTaken;
  {
    .param .b64 first;
    .param .b32 second;
    st.param.b64 [first], %handle;
    st.param.b32 [second], %value;
    call.uni cudaGraphSetConditional, (first, second);
  }
  ret;
}

// Counts, from 0, how often it was asked.
.visible .entry hloc_goes_round
(
  .param .u64 handle,
  .param .u64 counter,
  .param .u64 rounds
)
{
  .reg .pred %goesOn;
  .reg .b64 %handle, %counter, %rounds, %before, %after;
  .reg .b32 %value;

  ld.param.u64 %handle, [handle];
  ld.param.u64 %counter, [counter];
  cvta.to.global.u64 %counter, %counter;
  ld.param.u64 %rounds, [rounds];
  ld.global.u64 %before, [%counter];
  add.u64 %after, %before, 1;
  st.global.u64 [%counter], %after;
  setp.lt.u64 %goesOn, %before, %rounds;
  selp.u32 %value, 1, 0, %goesOn;
  {
    .param .b64 first;
    .param .b32 second;
    st.param.b64 [first], %handle;
    st.param.b32 [second], %value;
    call.uni cudaGraphSetConditional, (first, second);
  }
  ret;
}
)";

} // namespace hloc_launch
