// Calls kernels that hloc compiled when this was built. A user's program has its arrays from cudaMalloc, and its
// streams from cudaStreamCreate; this one asks the driver for them, so that it is built without the toolkit.

#include <app_kernels.h>
#include <kernels.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using hloc_launch::Driver;
using hloc_launch::Status;

std::atomic<int> failures{0};

void expect(bool holds, const char *what, const Status &status = {}) {
  if (holds)
    return;
  ++failures;
  std::fprintf(stderr, "use_kernels: not so: %s; %s\n", what, status.message().c_str());
}

/// Memory on the device for `bytes`.
template <typename Element> Element *allocate(const Driver &driver, unsigned long long bytes) {
  hloc_launch::DevicePointer address = 0;
  const Status status = driver.check(driver.memoryAllocate(&address, bytes), "allocating");
  expect(status.ok(), "there is memory", status);
  return reinterpret_cast<Element *>(static_cast<uintptr_t>(address));
}

void callOnce(const Driver &driver, hloc_launch::Context context, hloc_launch::Stream stream, unsigned rounds) {
  hloc_launch::CurrentContext current(driver, context);
  auto *rows = allocate<float>(driver, kernels::running_mean_bytes::rows);
  auto *mean = allocate<float>(driver, kernels::running_mean_bytes::result0);
  for (unsigned i = 0; i < rounds; ++i) {
    const Status status = kernels::running_mean(rows, mean, stream);
    expect(status.ok(), "running_mean is done", status);
  }
}

void callAppend(const Driver &driver, hloc_launch::Stream stream) {
  using bytes = kernels::append_bytes;
  auto *cache = allocate<float>(driver, bytes::state_0), *row = allocate<float>(driver, bytes::new_row);
  auto *count = allocate<int32_t>(driver, bytes::state_1), *after = allocate<int32_t>(driver, bytes::result1);
  auto *marks = allocate<bool>(driver, bytes::marks), *others = allocate<bool>(driver, bytes::result2);
  Status status = kernels::append(cache, count, row, marks, after, others, stream);
  expect(status.ok(), "append is done", status);
  status = kernels::append(nullptr, count, row, marks, after, others, stream);
  expect(status.message() == "input 0 (f32[128,16]{1,0}) is missing", "an address of 0 is refused", status);
  status = kernels::append(reinterpret_cast<float *>(reinterpret_cast<char *>(cache) + 4), count, row, marks, after,
                           others, stream);
  expect(status.message().find("is not aligned to") != std::string::npos, "so is one that is not aligned", status);
}

} // namespace

int main(int count, char **) {
  const Driver *driver = nullptr;
  Status status = Driver::open(driver);
  hloc_launch::Context context = nullptr;
  if (status.ok())
    status = driver->check(driver->primaryContextRetain(&context, 0), "making a context");
  if (!status.ok()) {
    std::fprintf(stderr, "use_kernels: %s\n", status.message().c_str());
    return 1;
  }
  hloc_launch::CurrentContext current(*driver, context);
  hloc_launch::Stream streams[3] = {};
  for (hloc_launch::Stream &stream : streams)
    expect(!driver->streamCreate(&stream, 1), "there are streams");

  callAppend(*driver, streams[0]);
  auto *x = allocate<hloc_launch::bfloat16>(*driver, kernels::gelu_bytes::x);
  auto *y = allocate<hloc_launch::bfloat16>(*driver, kernels::gelu_bytes::result0);
  status = kernels::gelu(x, y, streams[0]);
  expect(status.ok(), "gelu is done", status);
  if (count > 1) { // machine code is nothing for a driver without a device
    status = app::kernels::gelu(x, y, streams[0]);
    expect(status.ok(), "gelu of machine code is done", status);
  }
  // Four threads on three streams, of which two share one.
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { callOnce(*driver, context, streams[i % 3], 5); });
  for (std::thread &thread : threads)
    thread.join();
  for (hloc_launch::Stream stream : streams)
    expect(!driver->streamSynchronize(stream), "the work is done");
  return failures ? 1 : 0;
}
