// Kernels that send some elements of a vector.
#include <algorithm>
#include <array>
#include <vector>

#include "compression/compression.h"
#include "compression/cpu/magnitude.h"
#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/random/cpu/philox.h"
#include "tensor/error.h"

namespace renga::cpu {
namespace {

struct Candidate {
  std::uint32_t magnitude;
  std::int32_t index;
};

// The lower edge of the histogram bin that element number `count` falls into, from the largest
// magnitude down, among every `stride`th element. A bin is an eighth of a power of two.
std::uint32_t lower_edge(const float* x, std::int64_t n, std::int64_t stride, std::int64_t count) {
  constexpr int kShift = 20, kBins = 1 << (31 - kShift);
  std::array<std::int64_t, kBins> histogram{};
  for (std::int64_t i = 0; i < n; i += stride) ++histogram[magnitude(x[i]) >> kShift];
  int bin = kBins - 1;
  for (std::int64_t above = histogram[kBins - 1]; above < count && bin > 0;) {
    above += histogram[static_cast<std::size_t>(--bin)];
  }
  return static_cast<std::uint32_t>(bin) << kShift;
}

// The elements whose magnitude is at least `edge`.
std::vector<Candidate> elements_above(const float* x, std::int64_t n, std::uint32_t edge) {
  constexpr std::int64_t kRun = 16;
  std::vector<Candidate> found;
  for (std::int64_t begin = 0; begin < n; begin += kRun) {
    const std::int64_t end = std::min(n, begin + kRun);
    if (largest_magnitude(x + begin, end - begin) < edge) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint32_t m = magnitude(x[i]);
      if (m >= edge) found.push_back({m, static_cast<std::int32_t>(i)});
    }
  }
  return found;
}

// At least `count` elements, the largest of all, from the first index to the last.
std::vector<Candidate> candidates(const float* x, std::int64_t n, std::int64_t count) {
  // A sample mostly finds an edge below which there are none of the largest. The exact histogram of
  // all elements takes several times as long.
  constexpr std::int64_t kStride = 61, kSample = 512;
  if (n >= kStride * kSample) {
    const std::uint32_t edge = lower_edge(x, n, kStride, count * 5 / (4 * kStride) + 4);
    std::vector<Candidate> found = elements_above(x, n, edge);
    if (std::ssize(found) >= count) return found;
  }
  return elements_above(x, n, lower_edge(x, n, 1, count));
}

// The index of the element of each of k equal parts of n elements that this seed draws.
template <class Visit>
void for_each_drawn(std::int64_t n, std::int64_t k, std::uint64_t seed, const Visit& visit) {
  PhiloxBlock numbers;
  std::int64_t begin = 0;
  for (std::int64_t j = 0; j < k; ++j) {
    if (j % kPhiloxBlock == 0) philox(seed, j / kPhiloxBlock, numbers);
    const std::int64_t end = (j + 1) * n / k;
    const std::uint64_t drawn = numbers[static_cast<std::size_t>(j % kPhiloxBlock)];
    visit(j, begin + static_cast<std::int64_t>((drawn * static_cast<std::uint64_t>(end - begin)) >>
                                               32));
    begin = end;
  }
}

bool accumulate(const Array& x, const Array& y) {
  const std::int64_t n = x.size();
  const GilRelease work(n);
  const float* from = x.as<float>();
  if (largest_magnitude(from, n) >= magnitude(0x1p100F)) return false;
  float* to = y.as<float>();
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  return true;
}

void take_largest(const Array& x, const Array& indices, const Array& values) {
  const std::int64_t n = x.size(), k = values.size();
  if (k == 0) return;
  const GilRelease work(n);
  float* from = x.as<float>();
  const std::vector<Candidate> found = candidates(from, n, k);
  std::vector<std::uint32_t> order;
  order.reserve(found.size());
  for (const Candidate& c : found) order.push_back(c.magnitude);
  std::ranges::nth_element(order, order.begin() + (k - 1), std::greater());
  const std::uint32_t least = order[static_cast<std::size_t>(k - 1)];
  // Elements equal to the least one that are taken.
  std::int64_t equal =
      k - std::ranges::count_if(found, [least](const Candidate& c) { return c.magnitude > least; });
  auto* index = indices.as<std::int32_t>();
  auto* value = values.as<float>();
  for (const Candidate& c : found) {
    if (c.magnitude < least || (c.magnitude == least && equal-- <= 0)) continue;
    *index++ = c.index;
    *value++ = from[c.index];
    from[c.index] = 0;
  }
}

void add_at(const Array& y, const Array& indices, const Array& values) {
  const std::int64_t n = y.size(), k = values.size();
  const GilRelease work(k);
  float* to = y.as<float>();
  const auto* index = indices.as<std::int32_t>();
  const float* value = values.as<float>();
  for (std::int64_t j = 0; j < k; ++j) {
    require<std::invalid_argument>(index[j] >= 0 && index[j] < n, "add_at: expected indices of ", n,
                                   " elements, got ", index[j]);
  }
  for (std::int64_t j = 0; j < k; ++j) to[index[j]] += value[j];
}

void take_random(const Array& x, std::uint64_t seed, const Array& values) {
  const GilRelease work(values.size());
  float *from = x.as<float>(), *value = values.as<float>();
  for_each_drawn(x.size(), values.size(), seed, [&](std::int64_t j, std::int64_t i) {
    value[j] = from[i];
    from[i] = 0;
  });
}

void add_at_random(const Array& y, std::uint64_t seed, const Array& values) {
  const GilRelease work(values.size());
  float* to = y.as<float>();
  const float* value = values.as<float>();
  for_each_drawn(y.size(), values.size(), seed,
                 [&](std::int64_t j, std::int64_t i) { to[i] += value[j]; });
}

[[maybe_unused]] const bool registered =
    sparse_kernels.add(0, {accumulate, take_largest, add_at, take_random, add_at_random});

}  // namespace
}  // namespace renga::cpu
