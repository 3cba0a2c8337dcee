#include "devices/device.h"

#include <doctest/doctest.h>

#include "autograd/backward.h"
#include "mirror_device/mirror_device.h"
#include "ops/ops.h"

using namespace renga;

namespace {

// Numbers that no symmetry of a kernel leaves in place.
Variable numbers(const Shape& shape, Device device) {
  const Array x = empty(shape, Dtype::float32);
  for (std::int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = 0.1f * ((i * 7) % 11) - 0.4f;
  return Variable(to_device(x, device), true);
}

// The loss of a small network and the gradients of its parameters.
std::vector<Variable> run(Device device) {
  const Variable x = numbers({2, 3, 6, 6}, device), W = numbers({4, 3, 3, 3}, device),
                 b = numbers({4}, device), V = numbers({5, 36}, device);
  Window window;
  window.pad = {1, 1};
  const Variable h = average_pooling_2d(tanh(convolution_2d(x, W, b, window)), {});
  const Variable y = linear(reshape(h, {2, 36}), V);
  const Variable loss = sum(multiply(y, y));
  backward({&loss, 1}, {});
  return {loss, x.body()->grad, W.body()->grad, b.body()->grad, V.body()->grad};
}

}  // namespace

TEST_CASE("a network stays on its device and computes what the host computes") {
  const auto there = run(mirror_device()), here = run(Device{});
  for (std::size_t i = 0; i < here.size(); ++i) {
    CHECK(there[i].device() == mirror_device());
    const Array a = contiguous(to_device(there[i].array(), Device{})),
                b = contiguous(here[i].array());
    for (std::int64_t k = 0; k < a.size(); ++k) {
      CHECK(a.as<float>()[k] == doctest::Approx(b.as<float>()[k]));
    }
  }
}

TEST_CASE("devices by name") {
  CHECK(to_string(mirror_device()) == "mirror:1");
  CHECK(device_from_string("mirror:1") == mirror_device());
  CHECK(device_from_string(to_string(Device{})) == Device{});
  CHECK_THROWS_WITH(device_from_string("mirror:2"),
                    "device: expected mirror:0 to mirror:1, got mirror:2");
  CHECK_THROWS_WITH(device_from_string("abacus"), "device: no driver is loaded for abacus");
}

TEST_CASE("operands on two devices, and a device without kernels, are named") {
  const Variable here = numbers({3}, Device{}), there = numbers({3}, mirror_device());
  CHECK_THROWS_WITH(add(here, there), doctest::Contains("mirror:1"));
  CHECK_THROWS_WITH(softmax(numbers({1, 3}, bare_device())),
                    "softmax: no kernels for device bare:0");
}
