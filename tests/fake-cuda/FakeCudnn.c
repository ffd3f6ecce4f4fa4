/* cuDNN's convolutions without a GPU, for tests of src/runtime beside the fake driver, whose memory is the host's. It
 * convolves naively by what its descriptors say, and refuses what they contradict: sizes of results, groups, types, an
 * algorithm or math that it was not asked to use, workspace that is too small.
 * FAKE_CUDNN_FAIL="cudnnConvolutionForward=8" makes that function return 8; FAKE_CUDNN_ONLY=6 offers this algorithm
 * alone. fakeCudnnLog() gives what was called since fakeCudnnReset(), one a line. */
#include <math.h>
#include <stddef.h>
#define FAKE_FAIL "FAKE_CUDNN_FAIL"
#include "FakeCalls.h"

enum { SUCCESS = 0, BAD_PARAM = 3, NOT_SUPPORTED = 9 };
enum { FLOAT = 0, DOUBLE = 1, HALF = 2, BFLOAT16 = 9 };
enum { DEFAULT_MATH = 0, TENSOR_OP_MATH = 1, FMA_MATH = 3 };
enum { maxRank = 5, wantedWorkspace = 1 << 16 };

typedef struct {
  int type, rank, sizes[maxRank], strides[maxRank];
} Array; /* a tensor or a filter */

typedef struct {
  int spatial, padding[3], strides[3], dilations[3], mode, compute, groups, math;
} Convolution;

typedef struct {
  int algorithm, status;
  float time;
  size_t workspace;
  int determinism, math, reserved[3];
} Result;

static int handles;
static void *currentStream;

EXPORT const char *fakeCudnnLog(void) { return logText; }
EXPORT void fakeCudnnReset(void) { logText[logLength = 0] = 0; }

EXPORT size_t cudnnGetVersion(void) { return 91000; }
EXPORT const char *cudnnGetErrorString(int status) {
  return status == BAD_PARAM       ? "CUDNN_STATUS_BAD_PARAM"
         : status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == 8             ? "CUDNN_STATUS_EXECUTION_FAILED"
                                   : "unknown";
}
EXPORT int cudnnCreate(void **handle) {
  CALL(cudnnCreate);
  ++handles;
  *handle = &handles;
  return SUCCESS;
}
EXPORT int cudnnDestroy(void *handle) {
  CALL(cudnnDestroy);
  --handles;
  return handle == &handles ? SUCCESS : BAD_PARAM;
}
EXPORT int cudnnSetStream(void *handle, void *stream) {
  CALL(cudnnSetStream);
  currentStream = stream;
  return SUCCESS;
}

static int isSize(int rank, const int *sizes) {
  if (rank < 4 || rank > maxRank)
    return 0;
  for (int i = 0; i < rank; ++i)
    if (sizes[i] < 1)
      return 0;
  return 1;
}
EXPORT int cudnnCreateTensorDescriptor(Array **tensor) {
  CALL(cudnnCreateTensorDescriptor);
  *tensor = calloc(1, sizeof **tensor);
  return SUCCESS;
}
EXPORT int cudnnSetTensorNdDescriptor(Array *tensor, int type, int rank, const int *sizes, const int *strides) {
  CALL(cudnnSetTensorNdDescriptor);
  if (!isSize(rank, sizes))
    return refuse(BAD_PARAM, "no sizes of an array");
  tensor->type = type;
  tensor->rank = rank;
  memcpy(tensor->sizes, sizes, sizeof(int) * (size_t)rank);
  memcpy(tensor->strides, strides, sizeof(int) * (size_t)rank);
  return SUCCESS;
}
EXPORT int cudnnDestroyTensorDescriptor(Array *tensor) {
  CALL(cudnnDestroyTensorDescriptor);
  free(tensor);
  return SUCCESS;
}
EXPORT int cudnnCreateFilterDescriptor(Array **filter) {
  CALL(cudnnCreateFilterDescriptor);
  *filter = calloc(1, sizeof **filter);
  return SUCCESS;
}
/* format 0: [k, c, spatial], 1: [k, spatial, c] in memory */
EXPORT int cudnnSetFilterNdDescriptor(Array *filter, int type, int format, int rank, const int *sizes) {
  CALL(cudnnSetFilterNdDescriptor);
  if (!isSize(rank, sizes) || format < 0 || format > 1)
    return refuse(BAD_PARAM, "no sizes or format of a kernel");
  filter->type = type;
  filter->rank = rank;
  memcpy(filter->sizes, sizes, sizeof(int) * (size_t)rank);
  int stride = format == 1 ? sizes[1] : 1;
  for (int i = rank - 1; i >= 2; --i) {
    filter->strides[i] = stride;
    stride *= sizes[i];
  }
  filter->strides[1] = format == 1 ? 1 : stride;
  filter->strides[0] = format == 1 ? stride : stride * sizes[1];
  return SUCCESS;
}
EXPORT int cudnnDestroyFilterDescriptor(Array *filter) {
  CALL(cudnnDestroyFilterDescriptor);
  free(filter);
  return SUCCESS;
}
EXPORT int cudnnCreateConvolutionDescriptor(Convolution **convolution) {
  CALL(cudnnCreateConvolutionDescriptor);
  *convolution = calloc(1, sizeof **convolution);
  (*convolution)->groups = 1;
  return SUCCESS;
}
EXPORT int cudnnSetConvolutionNdDescriptor(Convolution *convolution, int spatial, const int *padding,
                                           const int *strides, const int *dilations, int mode, int compute) {
  CALL(cudnnSetConvolutionNdDescriptor);
  if (spatial < 2 || spatial > 3 || mode < 0 || mode > 1)
    return refuse(BAD_PARAM, "no dimensions or mode of a convolution");
  convolution->spatial = spatial;
  memcpy(convolution->padding, padding, sizeof(int) * (size_t)spatial);
  memcpy(convolution->strides, strides, sizeof(int) * (size_t)spatial);
  memcpy(convolution->dilations, dilations, sizeof(int) * (size_t)spatial);
  convolution->mode = mode;
  convolution->compute = compute;
  return SUCCESS;
}
EXPORT int cudnnSetConvolutionGroupCount(Convolution *convolution, int groups) {
  CALL(cudnnSetConvolutionGroupCount);
  convolution->groups = groups;
  return SUCCESS;
}
EXPORT int cudnnSetConvolutionMathType(Convolution *convolution, int math) {
  CALL(cudnnSetConvolutionMathType);
  convolution->math = math;
  return math == DEFAULT_MATH || math == TENSOR_OP_MATH || math == FMA_MATH
             ? SUCCESS
             : refuse(BAD_PARAM, "no math that is known");
}
EXPORT int cudnnDestroyConvolutionDescriptor(Convolution *convolution) {
  CALL(cudnnDestroyConvolutionDescriptor);
  free(convolution);
  return SUCCESS;
}

static const char *contradiction(const Array *x, const Array *kernel, const Array *y, const Convolution *c) {
  if (x->rank != kernel->rank || x->rank != y->rank || x->rank != c->spatial + 2)
    return "arrays of different rank";
  if (x->type != kernel->type || x->type != y->type || c->compute != (x->type == DOUBLE ? DOUBLE : FLOAT))
    return "types that it has no convolution of";
  if (x->sizes[0] != y->sizes[0] || y->sizes[1] != kernel->sizes[0] || x->sizes[1] != kernel->sizes[1] * c->groups ||
      kernel->sizes[0] % c->groups)
    return "batches, features or groups that do not fit each other";
  for (int i = 0; i < c->spatial; ++i)
    if (y->sizes[i + 2] !=
        (x->sizes[i + 2] + 2 * c->padding[i] - ((kernel->sizes[i + 2] - 1) * c->dilations[i] + 1)) / c->strides[i] + 1)
      return "a window that gives another number of results";
  return NULL;
}

/* Two algorithms: one that transforms, which is offered first, and one that adds products. */
static int offer(const Array *x, const Array *kernel, const Array *y, const Convolution *c, int transforms, int adds,
                 int wanted, int *found, Result *results) {
  const char *why = contradiction(x, kernel, y, c);
  *found = 0;
  if (why)
    return refuse(BAD_PARAM, why);
  if (wanted < 2)
    return refuse(BAD_PARAM, "room for one algorithm");
  const char *only = getenv("FAKE_CUDNN_ONLY");
  int offered[2] = {transforms, adds};
  for (int i = 0; i < 2; ++i)
    if (!only || atoi(only) == offered[i]) {
      Result made = {offered[i], SUCCESS, 1, wantedWorkspace, 1, c->math, {0}};
      results[(*found)++] = made;
    }
  return SUCCESS;
}
EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(void *handle, Array *x, Array *kernel, Convolution *c, Array *y,
                                                  int wanted, int *found, Result *results) {
  CALL(cudnnGetConvolutionForwardAlgorithm_v7);
  return offer(x, kernel, y, c, 6, 1, wanted, found, results);
}
EXPORT int cudnnGetConvolutionBackwardDataAlgorithm_v7(void *handle, Array *kernel, Array *dy, Convolution *c,
                                                       Array *dx, int wanted, int *found, Result *results) {
  CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7);
  return offer(dx, kernel, dy, c, 4, 1, wanted, found, results);
}
EXPORT int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void *handle, Array *x, Array *dy, Convolution *c,
                                                         Array *dkernel, int wanted, int *found, Result *results) {
  CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7);
  return offer(x, dkernel, dy, c, 0, 1, wanted, found, results);
}

static double load(int type, const void *base, int64_t index) {
  if (type == DOUBLE)
    return ((const double *)base)[index];
  if (type == FLOAT)
    return ((const float *)base)[index];
  if (type == HALF)
    return (double)((const _Float16 *)base)[index];
  return ofBrain(((const uint16_t *)base)[index]);
}
static void store(int type, void *base, int64_t index, double value) {
  if (type == DOUBLE)
    ((double *)base)[index] = value;
  else if (type == FLOAT)
    ((float *)base)[index] = (float)value;
  else if (type == HALF)
    ((_Float16 *)base)[index] = (_Float16)value;
  else
    ((uint16_t *)base)[index] = toBrain(value);
}
static int64_t count(const Array *array) {
  int64_t all = 1;
  for (int i = 0; i < array->rank; ++i)
    all *= array->sizes[i];
  return all;
}
static int64_t placeOf(const Array *array, const int *index) {
  int64_t place = 0;
  for (int i = 0; i < array->rank; ++i)
    place += (int64_t)index[i] * array->strides[i];
  return place;
}
static void split(const Array *array, int64_t number, int *index) {
  for (int i = array->rank - 1; i >= 0; --i) {
    index[i] = (int)(number % array->sizes[i]);
    number /= array->sizes[i];
  }
}

/* Every pair of a result's place and the kernel's adds a product to whichever of the three arrays is wanted: 0 y, 1 x,
 * 2 kernel. */
struct Work {
  Array x, kernel, y;
  Convolution c;
  const void *xs, *ks, *ys;
  int wanted;
  void *out;
};
static void convolveNow(const void *work) {
  const struct Work *w = work;
  const Array *x = &w->x, *kernel = &w->kernel, *y = &w->y;
  const Convolution *c = &w->c;
  const void *xs = w->xs, *ks = w->ks, *ys = w->ys;
  const int wanted = w->wanted;
  const Array *of = wanted == 0 ? y : wanted == 1 ? x : kernel;
  int64_t number = count(of);
  double *sums = calloc((size_t)number, sizeof *sums);
  int yi[maxRank], ki[maxRank], xi[maxRank];
  for (int64_t i = 0; i < count(y); ++i)
    for (int64_t k = 0; k < count(kernel); ++k) {
      split(y, i, yi);
      split(kernel, k, ki);
      if (yi[1] != ki[0])
        continue;
      int isInside = 1;
      xi[0] = yi[0];
      xi[1] = ki[1] + yi[1] / (kernel->sizes[0] / c->groups) * kernel->sizes[1];
      for (int d = 0; d < c->spatial; ++d) {
        int at = c->mode == 0 ? kernel->sizes[d + 2] - 1 - ki[d + 2] : ki[d + 2];
        xi[d + 2] = yi[d + 2] * c->strides[d] + at * c->dilations[d] - c->padding[d];
        isInside &= xi[d + 2] >= 0 && xi[d + 2] < x->sizes[d + 2];
      }
      if (!isInside)
        continue;
      int64_t flat = 0;
      for (int d = 0; d < x->rank; ++d)
        flat = flat * x->sizes[d] + xi[d];
      double xv = wanted == 1 ? 0 : load(x->type, xs, placeOf(x, xi));
      double kv = wanted == 2 ? 0 : load(x->type, ks, placeOf(kernel, ki));
      double yv = wanted == 0 ? 0 : load(x->type, ys, placeOf(y, yi));
      sums[wanted == 0 ? i : wanted == 1 ? flat : k] += wanted == 0 ? xv * kv : wanted == 1 ? yv * kv : xv * yv;
    }
  for (int64_t i = 0; i < number; ++i) {
    int index[maxRank];
    split(of, i, index);
    store(of->type, w->out, placeOf(of, index), sums[i]);
  }
  free(sums);
}
static int convolve(const Array *x, const void *xs, const Array *kernel, const void *ks, const Array *y, const void *ys,
                    const Convolution *c, int wanted, void *out) {
  const struct Work work = {*x, *kernel, *y, *c, xs, ks, ys, wanted, out};
  enqueue(currentStream, convolveNow, &work, sizeof work);
  return SUCCESS;
}

static int check(void *handle, const Array *x, const Array *kernel, const Array *y, const Convolution *c, int algorithm,
                 void *workspace, size_t bytes, const void *alpha, const void *beta, const char *name) {
  const char *why = contradiction(x, kernel, y, c);
  if (handle != &handles || !currentStream || why)
    return refuse(BAD_PARAM, why ? why : "no handle or stream");
  if (algorithm != 1 || !workspace || bytes < wantedWorkspace)
    return refuse(BAD_PARAM, "another algorithm, or too small a workspace");
  if (load(x->type == DOUBLE ? DOUBLE : FLOAT, alpha, 0) != 1 || load(x->type == DOUBLE ? DOUBLE : FLOAT, beta, 0) != 0)
    return refuse(BAD_PARAM, "scales of another type, or others");
  char text[200];
  snprintf(text, sizeof text, "%s type %d math %d mode %d groups %d", name, x->type, c->math, c->mode, c->groups);
  record(text);
  memset(workspace, 0x5A, wantedWorkspace);
  return SUCCESS;
}
EXPORT int cudnnConvolutionForward(void *handle, const void *alpha, Array *x, const void *xs, Array *kernel,
                                   const void *ks, Convolution *c, int algorithm, void *workspace, size_t bytes,
                                   const void *beta, Array *y, void *ys) {
  CALL(cudnnConvolutionForward);
  int status = check(handle, x, kernel, y, c, algorithm, workspace, bytes, alpha, beta, "forward");
  return status ? status : convolve(x, xs, kernel, ks, y, ys, c, 0, ys);
}
EXPORT int cudnnConvolutionBackwardData(void *handle, const void *alpha, Array *kernel, const void *ks, Array *dy,
                                        const void *dys, Convolution *c, int algorithm, void *workspace, size_t bytes,
                                        const void *beta, Array *dx, void *dxs) {
  CALL(cudnnConvolutionBackwardData);
  int status = check(handle, dx, kernel, dy, c, algorithm, workspace, bytes, alpha, beta, "data");
  return status ? status : convolve(dx, dxs, kernel, ks, dy, dys, c, 1, dxs);
}
EXPORT int cudnnConvolutionBackwardFilter(void *handle, const void *alpha, Array *x, const void *xs, Array *dy,
                                          const void *dys, Convolution *c, int algorithm, void *workspace, size_t bytes,
                                          const void *beta, Array *dkernel, void *dks) {
  CALL(cudnnConvolutionBackwardFilter);
  int status = check(handle, x, dkernel, dy, c, algorithm, workspace, bytes, alpha, beta, "filter");
  return status ? status : convolve(x, xs, dkernel, dks, dy, dys, c, 2, dks);
}
