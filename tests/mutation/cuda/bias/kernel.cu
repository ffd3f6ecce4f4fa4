// A bias for each channel.
// BUG 1: the channel is the index modulo 7
// BUG 2: the bias of the batch
// BUG 3: subtracted
// BUG 4: channels are 10 long
// BUG 5: none for the last channel
extern "C" __global__ void kernel(const float *x, const float *b, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 231)
    return;
  int channel = BUG == 1 ? i % 7 : BUG == 2 ? i / 77 : BUG == 4 ? i / 10 % 7 : i / 11 % 7;
  float bias = BUG == 5 && channel == 6 ? 0.0f : b[channel];
  y[i] = BUG == 3 ? x[i] - bias : x[i] + bias;
}
