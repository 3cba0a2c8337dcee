#include "devices/forked_processes.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <stop_token>
#include <thread>

#include "devices/allocator.h"
#include "lazy/deferred.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/linalg/fft.h"
#include "ops/matmul/packed_weight_cache.h"

using namespace renga;

namespace {

// Processes that are forked while another thread acts can act, too.
void check_children(const std::function<void()>& act) {
  const std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) act();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      act();
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
}

class Ones final : public Deferred {
 public:
  Ones(const Array& y, const Array& x) : Deferred(y, {x, x, x, x, x, x, x, x}) {}

 private:
  void compute(const Array& /*y*/) const override {}
};

}  // namespace

TEST_CASE("processes that are forked while another thread takes memory have memory") {
  check_children([] {
    constexpr std::size_t kBytes = 1 << 16;
    deallocate(allocate(kBytes, Device{}), kBytes, Device{});
  });
  check_children([] { memory_stats(Device{}); });
}

TEST_CASE("processes that are forked while another thread transforms can transform") {
  std::atomic<std::int64_t> length = 0;
  check_children([&] {
    const Variable x(full({1 + ++length % 100}, 1, Dtype::float32));
    fft(x, x);
  });
}

TEST_CASE("processes that are forked while another thread convolves can convolve") {
  use_convolution_algorithm("direct");  // it has plans of oneDNN
  std::atomic<std::int64_t> rows = 0;
  check_children([&] {
    const Variable x(full({1, 4, 3 + ++rows % 100, 8}, 1, Dtype::float32));
    convolution_2d(x, Variable(full({8, 4, 3, 3}, 1, Dtype::float32))).array();
  });
  use_convolution_algorithm("auto");
  check_children([] { clear_algorithms(); });
}

TEST_CASE("processes that are forked while another thread packs weights have packed weights") {
  const Array packed = full({1}, 1, Dtype::float32);
  const auto cache = make_ref<PackedWeightCache>(0, std::numeric_limits<std::int64_t>::max(), 1);
  check_children([&] {
    cache->get({1}, [&] { return packed; });
    cache->clear();
  });
}

TEST_CASE("processes that are forked while another thread defers can defer") {
  const Array x = full({1}, 1, Dtype::float32), y = empty_like(x, Dtype::float32);
  check_children([&] {
    for (int i = 0; i < 100; ++i) {
      const auto ones = make_ref<Ones>(y, x);
      ones->watch();
      ones->unwatch();
    }
  });
}
