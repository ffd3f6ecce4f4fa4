// c[m][n] = sum over k of a[m][k] * b[k][n]: f16 inputs, f32 sums. A block has four warps and a 32 x 32 tile, a warp 16 x 16
// of it. Tiles of 32 of k go through two buffers of shared memory by cp.async, fragments come by ldmatrix.
#include <cuda_fp16.h>
#include <cstdint>

constexpr int tileSize = 32;

__device__ uint32_t sharedAddress(const void *pointer) { return uint32_t(__cvta_generic_to_shared(pointer)); }

__device__ void copyTile(__half (*tile)[40], const __half *from, int stride) {
  int row = threadIdx.x / 4, column = threadIdx.x % 4 * 8;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sharedAddress(&tile[row][column])),
               "l"(from + row * stride + column));
}

extern "C" __global__ void matmul_mma(const __half *a, const __half *b, float *c, int n, int k) {
  __shared__ __align__(16) __half tileA[2][tileSize][40], tileB[2][tileSize][40];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2 * 16, column = warp % 2 * 16;
  const __half *fromA = a + blockIdx.y * tileSize * k, *fromB = b + blockIdx.x * tileSize;
  float sums[2][4] = {};
  copyTile(tileA[0], fromA, k);
  copyTile(tileB[0], fromB, n);
  asm volatile("cp.async.commit_group;");
  int steps = k / tileSize;
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) {
      copyTile(tileA[(step + 1) & 1], fromA + (step + 1) * tileSize, k);
      copyTile(tileB[(step + 1) & 1], fromB + (step + 1) * tileSize * n, n);
    }
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    for (int inner = 0; inner < tileSize; inner += 16) {
      uint32_t fa[4], fb[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                   : "r"(sharedAddress(&tileA[step & 1][row + lane % 16][inner + lane / 16 * 8])));
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                   : "r"(sharedAddress(&tileB[step & 1][inner + lane % 16][column + lane / 16 * 8])));
      for (int half = 0; half < 2; ++half)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(sums[half][0]), "+f"(sums[half][1]), "+f"(sums[half][2]), "+f"(sums[half][3])
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * half]), "r"(fb[2 * half + 1]));
    }
    __syncthreads();
  }
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 4; ++i) {
      int y = blockIdx.y * tileSize + row + lane / 4 + i / 2 * 8;
      int x = blockIdx.x * tileSize + column + half * 8 + lane % 4 * 2 + i % 2;
      c[y * n + x] = sums[half][i];
    }
}
