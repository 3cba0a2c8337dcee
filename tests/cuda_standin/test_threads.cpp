// Under the thread sanitizer: it reports what CUDA does not order, and nothing else.
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <atomic>

#include "test_launch.h"

namespace {

std::atomic<int> reports = 0;

// Whether the thread sanitizer reports anything, which is not printed, while `body` runs.
template <class Body>
bool has_reports(const Body& body) {
  const int before = reports;
  const std::intptr_t nowhere = open("/dev/null", O_WRONLY), error = STDERR_FILENO;
  __sanitizer_set_report_fd(reinterpret_cast<void*>(nowhere));
  body();
  __sanitizer_set_report_fd(reinterpret_cast<void*>(error));
  close(static_cast<int>(nowhere));
  return reports != before;
}

// The memory is written again after it was read: a barrier has to be between.
template <bool waits>
void reverse_twice(float* y) {
  auto* shared = static_cast<float*>(cuda_standin::shared_memory());
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < 2; ++i) {
    shared[threadIdx.x] = x;
    __syncthreads();
    x = shared[blockDim.x - 1 - threadIdx.x];
    if (waits) __syncthreads();
  }
  y[threadIdx.x] = x;
}

// A shuffle is no barrier.
void neighbour_by_warp(float* y) {
  auto* shared = static_cast<float*>(cuda_standin::shared_memory());
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  const float one = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  y[threadIdx.x] = one + shared[threadIdx.x ^ 1];
}

// Blocks are not ordered.
void write_first(float* y) {
  if (threadIdx.x == 0) y[0] = static_cast<float>(blockIdx.x);
}

}  // namespace

// The thread sanitizer calls these. The reports of this test are no failure; tests/sanitizers/run
// looks for others.
extern "C" void __tsan_on_report(void*) { ++reports; }
extern "C" const char* __tsan_default_options() { return "exitcode=0:suppress_equal_addresses=0"; }

TEST_CASE("the thread sanitizer reports accesses that no barrier orders") {
  float* y = device_floats(128);
  const auto is_reported = [y](void (*kernel)(float*), unsigned blocks) {
    return has_reports([=] {
      launch(blocks, 64, 64 * sizeof(float), nullptr, kernel, y);
      cudaDeviceSynchronize();
    });
  };
  CHECK(is_reported(reverse<false>, 1));
  CHECK(is_reported(reverse_twice<false>, 1));
  CHECK(is_reported(neighbour_by_warp, 1));
  CHECK(is_reported(write_first, 2));
  CHECK(!is_reported(reverse<true>, 1));
  CHECK(!is_reported(reverse_twice<true>, 1));
  CHECK(!is_reported(sum_of_warp, 1));
  const auto fill_two_blocks = [y] {
    launch(2, 64, 0, nullptr, fill, y, 1.0f);
    cudaDeviceSynchronize();
  };
  CHECK(!has_reports(fill_two_blocks));
}
