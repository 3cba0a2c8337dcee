// Attention to blocks of keys, against that to all. Values are tested in Python.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ops/attention/attention.h"
#include "tensor/views.h"

using namespace renga;

namespace {

constexpr std::int64_t kQueries = 5, kKeyCount = 7, kDepth = 4;

Array numbers(std::int64_t rows, int seed) {
  const Array x = empty({1, 1, rows, kDepth}, Dtype::float32);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.as<float>()[i] = std::sin(static_cast<float>(seed + 3 * i));
  }
  return x;
}

Attention attention_to(const Array& k, const Array& v) {
  return {.q = numbers(kQueries, 1), .k = k, .v = v, .mask = {}, .scale = 0.5};
}

}  // namespace

TEST_CASE("results and gradients of two blocks of keys give those of all keys") {
  const Array k = numbers(kKeyCount, 2), v = numbers(kKeyCount, 3), gy = numbers(kQueries, 4);
  const Attention all = attention_to(k, v);
  const AttentionBlock whole = attend_to_block(all);
  const auto expected = attention_block_gradients(all, whole, gy);
  std::vector<Attention> parts;
  for (const auto& [begin, count] : {std::pair{0, 3}, std::pair{3, 4}}) {
    parts.push_back(attention_to(slice_view(k, 2, begin, count), slice_view(v, 2, begin, count)));
  }
  const AttentionBlock first = attend_to_block(parts[0]), second = attend_to_block(parts[1]);
  for (std::int64_t i = 0; i < kQueries; ++i) {
    const float a = first.log_sums.as<float>()[i], b = second.log_sums.as<float>()[i];
    const float total = std::log(std::exp(a) + std::exp(b));
    CHECK(whole.log_sums.as<float>()[i] == doctest::Approx(total).epsilon(1e-5));
    for (std::int64_t c = i * kDepth; c < (i + 1) * kDepth; ++c) {
      const float y = std::exp(a - total) * first.y.as<float>()[c] +
                      std::exp(b - total) * second.y.as<float>()[c];
      CHECK(whole.y.as<float>()[c] == doctest::Approx(y).epsilon(1e-4));
    }
  }
  std::vector<std::array<Array, 3>> gradients;
  for (const Attention& part : parts) {
    gradients.push_back(attention_block_gradients(part, whole, gy));
  }
  for (std::int64_t i = 0; i < kQueries * kDepth; ++i) {
    const float sum = gradients[0][0].as<float>()[i] + gradients[1][0].as<float>()[i];
    CHECK(expected[0].as<float>()[i] == doctest::Approx(sum).epsilon(1e-4));
  }
  for (const std::size_t gradient : {1U, 2U}) {
    for (std::int64_t i = 0; i < kKeyCount * kDepth; ++i) {
      const std::int64_t cut = 3 * kDepth;
      const float part = i < cut ? gradients[0][gradient].as<float>()[i]
                                 : gradients[1][gradient].as<float>()[i - cut];
      CHECK(expected[gradient].as<float>()[i] == doctest::Approx(part).epsilon(1e-4));
    }
  }
}

TEST_CASE("a query without keys has the sum -inf, and gradients of zero") {
  const Array k = numbers(kKeyCount, 2);
  Attention attention = attention_to(k, k);
  const Array mask = empty({1, 1, 1, 1}, Dtype::bool_);
  mask.as<bool>()[0] = false;
  attention.mask = mask;
  const AttentionBlock block = attend_to_block(attention);
  const auto gradients = attention_block_gradients(attention, block, block.y);
  for (std::int64_t i = 0; i < kQueries; ++i) {
    CHECK(block.log_sums.as<float>()[i] == -std::numeric_limits<float>::infinity());
    CHECK(block.y.as<float>()[i * kDepth] == 0);
    CHECK(gradients[0].as<float>()[i * kDepth] == 0);
  }
}
