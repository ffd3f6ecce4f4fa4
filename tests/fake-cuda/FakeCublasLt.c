/* cuBLASLt without a GPU, for tests of src/runtime beside the fake driver, whose memory is the host's. It multiplies
 * naively by what its descriptors say, and refuses, with cuBLAS's own words, what the library refuses: sizes that do
 * not fit each other, types that it has no product of, memory that is less aligned than it was told, workspace that is
 * too small, an algorithm that it has not given, a stream that is none. FAKE_CUBLASLT_FAIL="cublasLtMatmul=13" makes
 * that function return 13; FAKE_CUBLASLT_NONE=1 finds no algorithm. fakeCublasLtLog() gives what was called since
 * fakeCublasLtReset(), one a line. */
#include <math.h>
#include <stddef.h>
#define FAKE_FAIL "FAKE_CUBLASLT_FAIL"
#include "FakeCalls.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14, R_8F_E4M3 = 28, R_8F_E5M2 = 29 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32I = 72, COMPUTE_32F_FAST_TF32 = 77 };
enum { wantedWorkspace = 1 << 20, magic = 0x600DA160 };

typedef struct {
  int type;
  uint64_t rows, columns;
  int64_t leadingDimension, batchStride;
  int32_t batch;
} Layout;

typedef struct {
  int compute, scale, transA, transB, epilogue;
  void *bias;
} Desc;

typedef struct {
  uint64_t workspace;
  uint32_t reductions, alignment[4];
} Preference;

typedef struct {
  uint64_t data[8];
} Algorithm;

typedef struct {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} Result;

static int handles;

EXPORT const char *fakeCublasLtLog(void) { return logText; }
EXPORT void fakeCublasLtReset(void) { logText[logLength = 0] = 0; }

EXPORT size_t cublasLtGetVersion(void) { return 120903; }
EXPORT const char *cublasLtGetStatusName(int status) {
  return status == NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
         : status == INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == 13            ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                   : "unknown";
}
EXPORT int cublasLtCreate(void **handle) {
  CALL(cublasLtCreate);
  ++handles;
  *handle = &handles;
  return SUCCESS;
}
EXPORT int cublasLtDestroy(void *handle) {
  CALL(cublasLtDestroy);
  --handles;
  return handle == &handles ? SUCCESS : INVALID_VALUE;
}
EXPORT int cublasLtMatmulDescCreate(Desc **desc, int compute, int scale) {
  CALL(cublasLtMatmulDescCreate);
  *desc = calloc(1, sizeof **desc);
  (*desc)->compute = compute;
  (*desc)->scale = scale;
  (*desc)->epilogue = 1;
  return SUCCESS;
}
EXPORT int cublasLtMatmulDescDestroy(Desc *desc) {
  CALL(cublasLtMatmulDescDestroy);
  free(desc);
  return SUCCESS;
}

/* An attribute has a place and a size, and no other. */
static int set(void *place, size_t size, const void *value, size_t bytes) {
  if (bytes != size)
    return refuse(INVALID_VALUE, "an attribute of another size");
  memcpy(place, value, size);
  return SUCCESS;
}
EXPORT int cublasLtMatmulDescSetAttribute(Desc *desc, int attribute, const void *value, size_t bytes) {
  CALL(cublasLtMatmulDescSetAttribute);
  return attribute == 3   ? set(&desc->transA, sizeof desc->transA, value, bytes)
         : attribute == 4 ? set(&desc->transB, sizeof desc->transB, value, bytes)
         : attribute == 7 ? set(&desc->epilogue, sizeof desc->epilogue, value, bytes)
         : attribute == 8 ? set(&desc->bias, sizeof desc->bias, value, bytes)
                          : refuse(INVALID_VALUE, "no attribute of a product that is known");
}
EXPORT int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  CALL(cublasLtMatrixLayoutCreate);
  if (leading < (int64_t)rows)
    return refuse(INVALID_VALUE, "a leading dimension of less than the rows");
  *layout = calloc(1, sizeof **layout);
  Layout made = {type, rows, columns, leading, 0, 1};
  **layout = made;
  return SUCCESS;
}
EXPORT int cublasLtMatrixLayoutDestroy(Layout *layout) {
  CALL(cublasLtMatrixLayoutDestroy);
  free(layout);
  return SUCCESS;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(Layout *layout, int attribute, const void *value, size_t bytes) {
  CALL(cublasLtMatrixLayoutSetAttribute);
  return attribute == 5   ? set(&layout->batch, sizeof layout->batch, value, bytes)
         : attribute == 6 ? set(&layout->batchStride, sizeof layout->batchStride, value, bytes)
                          : refuse(INVALID_VALUE, "no attribute of a matrix that is known");
}
EXPORT int cublasLtMatmulPreferenceCreate(Preference **preference) {
  CALL(cublasLtMatmulPreferenceCreate);
  *preference = calloc(1, sizeof **preference);
  Preference made = {0, 7, {256, 256, 256, 256}};
  **preference = made;
  return SUCCESS;
}
EXPORT int cublasLtMatmulPreferenceDestroy(Preference *preference) {
  CALL(cublasLtMatmulPreferenceDestroy);
  free(preference);
  return SUCCESS;
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(Preference *preference, int attribute, const void *value,
                                                size_t bytes) {
  CALL(cublasLtMatmulPreferenceSetAttribute);
  return attribute == 1   ? set(&preference->workspace, sizeof preference->workspace, value, bytes)
         : attribute == 3 ? set(&preference->reductions, sizeof preference->reductions, value, bytes)
         : attribute >= 5 && attribute <= 8
             ? set(&preference->alignment[attribute - 5], sizeof *preference->alignment, value, bytes)
             : refuse(INVALID_VALUE, "no preference that is known");
}

static int bytesOf(int type) {
  return type == R_64F ? 8 : type == R_32F || type == R_32I ? 4 : type == R_16F || type == R_16BF ? 2 : 1;
}

/* Tables of cublasLtMatmul: which types a product has. */
static int hasTypes(const Desc *desc, const Layout *a, const Layout *b, const Layout *c, const Layout *d) {
  int in = a->type, out = d->type;
  if (c->type != out)
    return 0;
  if (in == R_8F_E4M3 || in == R_8F_E5M2)
    return desc->compute == COMPUTE_32F && desc->scale == R_32F && (b->type == R_8F_E4M3 || b->type == R_8F_E5M2) &&
           (in == R_8F_E4M3 || b->type == R_8F_E4M3) && (out == R_32F || out == R_16F || out == R_16BF) &&
           desc->transA == 1 && desc->transB == 0;
  if (b->type != in)
    return 0;
  if (in == R_64F)
    return out == R_64F && desc->compute == COMPUTE_64F && desc->scale == R_64F;
  if (in == R_8I)
    return out == R_32I && desc->compute == COMPUTE_32I && desc->scale == R_32I && desc->transA == 1 &&
           desc->transB == 0 && desc->epilogue == 1;
  if (in == R_32F)
    return out == R_32F && desc->scale == R_32F &&
           (desc->compute == COMPUTE_32F || desc->compute == COMPUTE_32F_FAST_TF32);
  return (in == R_16F || in == R_16BF) && (out == in || out == R_32F) && desc->scale == R_32F &&
         desc->compute == COMPUTE_32F;
}

static const char *contradiction(const Desc *desc, const Layout *a, const Layout *b, const Layout *c, const Layout *d) {
  uint64_t m = desc->transA ? a->columns : a->rows, k = desc->transA ? a->rows : a->columns;
  uint64_t n = desc->transB ? b->rows : b->columns, kOfB = desc->transB ? b->columns : b->rows;
  if (k != kOfB || d->rows != m || d->columns != n || c->rows != m || c->columns != n)
    return "sizes that do not fit each other";
  if (a->batch != b->batch || a->batch != c->batch || a->batch != d->batch || a->batch < 1)
    return "batches that do not fit each other";
  if (desc->transA < 0 || desc->transA > 1 || desc->transB < 0 || desc->transB > 1)
    return "no operation that is known";
  if (desc->epilogue != 1 && desc->epilogue != 2 && desc->epilogue != 4 && desc->epilogue != 6 &&
      desc->epilogue != 32 && desc->epilogue != 36)
    return "no epilogue that is known";
  return NULL;
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, Desc *desc, Layout *a, Layout *b, Layout *c, Layout *d,
                                          Preference *preference, int wanted, Result *results, int *found) {
  CALL(cublasLtMatmulAlgoGetHeuristic);
  *found = 0;
  const char *why = contradiction(desc, a, b, c, d);
  if (handle != &handles || wanted < 1 || why)
    return refuse(INVALID_VALUE, why ? why : "no handle");
  if (preference->reductions & 4)
    return refuse(INVALID_VALUE, "partial sums may be rounded to the type of the result");
  if (!hasTypes(desc, a, b, c, d) || getenv("FAKE_CUBLASLT_NONE"))
    return refuse(NOT_SUPPORTED, "types that it has no product of");
  memset(results, 0, sizeof *results);
  results->algorithm.data[0] = magic;
  for (int i = 0; i < 4; ++i)
    results->algorithm.data[1 + i] = preference->alignment[i];
  results->workspace = preference->workspace < wantedWorkspace ? preference->workspace : wantedWorkspace;
  results->algorithm.data[5] = results->workspace;
  *found = 1;
  return SUCCESS;
}

/* Of a float of `exponent` and `mantissa` bits with a bias; that of e4m3 has no infinity, and is not asked for its NaN.
 */
static double narrow(uint32_t bits, int exponent, int mantissa) {
  int bias = (1 << (exponent - 1)) - 1, e = bits >> mantissa & ((1 << exponent) - 1);
  double fraction = (double)(bits & ((1u << mantissa) - 1)) / (1 << mantissa);
  double value = e ? ldexp(1 + fraction, e - bias) : ldexp(fraction, 1 - bias);
  if (e == (1 << exponent) - 1 && !(exponent == 4 && mantissa == 3))
    value = fraction ? NAN : INFINITY;
  return bits >> (exponent + mantissa) & 1 ? -value : value;
}
static double load(int type, const void *base, int64_t index) {
  uint16_t half;
  memcpy(&half, (const char *)base + index * bytesOf(type), bytesOf(type) >= 2 ? 2 : 1);
  switch (type) {
  case R_64F:
    return ((const double *)base)[index];
  case R_32F:
    return ((const float *)base)[index];
  case R_32I:
    return ((const int32_t *)base)[index];
  case R_8I:
    return ((const int8_t *)base)[index];
  case R_16BF:
    return ofBrain(half);
  case R_16F:
    return narrow(half, 5, 10);
  case R_8F_E4M3:
    return narrow(half & 255, 4, 3);
  default:
    return narrow(half & 255, 5, 2);
  }
}
static void store(int type, void *base, int64_t index, double value) {
  if (type == R_64F)
    ((double *)base)[index] = value;
  else if (type == R_32F)
    ((float *)base)[index] = (float)value;
  else if (type == R_32I)
    ((int32_t *)base)[index] = (int32_t)value;
  else if (type == R_16F)
    ((_Float16 *)base)[index] = (_Float16)value;
  else
    ((uint16_t *)base)[index] = toBrain(value);
}
static double scalar(int type, const void *value) {
  return type == R_64F ? *(const double *)value : type == R_32I ? *(const int32_t *)value : *(const float *)value;
}
static double activate(int epilogue, double x) {
  if (epilogue & 2)
    return x < 0 ? 0 : x;
  if (epilogue & 32)
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

struct Product {
  Desc desc;
  Layout al, bl, cl, dl;
  const void *a, *b, *c;
  void *d, *workspace;
  double scale, scaleOfC;
  size_t workspaceBytes;
};
static void multiply(const void *product) {
  const struct Product *p = product;
  const Desc *desc = &p->desc;
  const Layout *al = &p->al, *bl = &p->bl, *cl = &p->cl, *dl = &p->dl;
  const uint64_t m = dl->rows, n = dl->columns, k = desc->transA ? al->rows : al->columns;
  memset(p->workspace, 0x5A, p->workspaceBytes); /* it is the library's */
  for (int32_t i = 0; i < dl->batch; ++i)
    for (uint64_t row = 0; row < m; ++row)
      for (uint64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (uint64_t depth = 0; depth < k; ++depth) {
          uint64_t ra = desc->transA ? depth : row, ca = desc->transA ? row : depth;
          uint64_t rb = desc->transB ? column : depth, cb = desc->transB ? depth : column;
          sum += load(al->type, p->a, i * al->batchStride + ca * al->leadingDimension + ra) *
                 load(bl->type, p->b, i * bl->batchStride + cb * bl->leadingDimension + rb);
        }
        sum *= p->scale;
        if (p->scaleOfC)
          sum += p->scaleOfC * load(cl->type, p->c, i * cl->batchStride + column * cl->leadingDimension + row);
        if (desc->epilogue & 4)
          sum += load(dl->type, desc->bias, row);
        store(dl->type, p->d, i * dl->batchStride + column * dl->leadingDimension + row, activate(desc->epilogue, sum));
      }
}
EXPORT int cublasLtMatmul(void *handle, Desc *desc, const void *alpha, const void *a, Layout *al, const void *b,
                          Layout *bl, const void *beta, const void *c, Layout *cl, void *d, Layout *dl,
                          const Algorithm *algorithm, void *workspace, size_t workspaceBytes, void *stream) {
  CALL(cublasLtMatmul);
  const char *why = contradiction(desc, al, bl, cl, dl);
  const void *memory[4] = {a, b, c, d};
  if (handle != &handles || !stream || why)
    return refuse(INVALID_VALUE, why ? why : "no handle or stream");
  if (!algorithm || algorithm->data[0] != magic)
    return refuse(INVALID_VALUE, "an algorithm that was not given");
  for (int i = 0; i < 4; ++i)
    if (!memory[i] || (uintptr_t)memory[i] % algorithm->data[1 + i])
      return refuse(INVALID_VALUE, "memory that is less aligned than was said");
  if (workspaceBytes < algorithm->data[5] || (algorithm->data[5] && !workspace))
    return refuse(INVALID_VALUE, "too small a workspace");
  if (!hasTypes(desc, al, bl, cl, dl))
    return refuse(NOT_SUPPORTED, "types that it has no product of");
  if (desc->epilogue & 4 && !desc->bias)
    return refuse(INVALID_VALUE, "a bias that is nowhere");
  uint64_t m = dl->rows, n = dl->columns, k = desc->transA ? al->rows : al->columns;
  char text[200];
  snprintf(text, sizeof text, "matmul %c%c m %llu n %llu k %llu batch %d types %d %d %d compute %d epilogue %d",
           desc->transA ? 'T' : 'N', desc->transB ? 'T' : 'N', (unsigned long long)m, (unsigned long long)n,
           (unsigned long long)k, dl->batch, al->type, bl->type, dl->type, desc->compute, desc->epilogue);
  record(text);
  const struct Product product = {*desc, *al, *bl, *cl, *dl, a, b, c, d, workspace, scalar(desc->scale, alpha),
                                  scalar(desc->scale, beta), algorithm->data[5]};
  enqueue(stream, multiply, &product, sizeof product);
  return SUCCESS;
}
