#include "ops/loss/paths.h"

#include <algorithm>
#include <cmath>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "simd/elementary.h"

namespace renga {
namespace {

// The logarithm of probability 0, finite so that sums with it do not overflow.
constexpr double kNever = -1e10;

// Numbers before and behind a row, so that its neighbours can be read.
constexpr std::int64_t kMargin = 2, kVector = 16;

// A number for each position of a path, of which whole vectors are computed; impossible elsewhere.
template <class T>
class PathRow {
 public:
  explicit PathRow(std::int64_t positions)
      : numbers_(static_cast<std::size_t>(positions + 2 * kMargin + kVector), T(kNever)) {}
  T* get() { return numbers_.data() + kMargin; }

 private:
  std::vector<T> numbers_;
};

// to[s] = log(e^from[s] + e^from[s + step] + e^(from[s + 2 step] + skip[s])) + added[s]
template <class T>
void sum_ways(const T* from, std::int64_t step, const T* skip, const T* added, std::int64_t n,
              T* to) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), T>;
    for (std::int64_t s = 0; s < n; s += V::width) {
      const V a(V::load(from + s)), b(V::load(from + s + step));
      const V c(V::load(from + s + 2 * step) + V::load(skip + s));
      const V top = max(a, max(b, c));
      const V sum = exp(a - top) + exp(b - top) + exp(c - top);
      V::store((log(sum) + top + V(V::load(added + s))).v, to + s);
    }
  });
}

// One sample of an alignment.
template <class T>
struct Sample {
  const Alignment& x;
  std::int64_t n, steps, samples, labels, positions, length, used;
  const std::int64_t* path;
  // Whether a blank before the label at a position, or behind it, may be left out.
  PathRow<T> skip_before, skip_behind, now, next, none;

  Sample(const Alignment& x, std::int64_t n)
      : x(x),
        n(n),
        steps(x.scores.shape(0)),
        samples(x.scores.shape(1)),
        labels(x.scores.shape(2)),
        positions(x.path.shape(1)),
        length(x.lengths.as<const std::int64_t>()[n]),
        used(x.path_lengths.as<const std::int64_t>()[n]),
        path(x.path.as<const std::int64_t>() + n * positions),
        skip_before(positions),
        skip_behind(positions),
        now(positions),
        next(positions),
        none(positions) {
    for (std::int64_t s = 2; s < positions; ++s) {
      if (path[s] == x.blank || path[s] == path[s - 2]) continue;
      skip_before.get()[s] = 0;
      skip_behind.get()[s - 2] = 0;
    }
    std::fill_n(none.get(), positions, T(0));
  }

  const T* scores(std::int64_t t) const {
    return x.scores.as<const T>() + (t * samples + n) * labels;
  }
  void read_scores(std::int64_t t, T* to) const {
    const T* const from = scores(t);
    for (std::int64_t s = 0; s < positions; ++s) to[s] = from[path[s]];
  }
};

template <class T>
void align_sample(const Alignment& x, std::int64_t n, T* alpha, T* loss) {
  Sample<T> sample(x, n);
  const std::int64_t positions = sample.positions;
  PathRow<T> added(positions);
  T *now = sample.now.get(), *next = sample.next.get();
  for (std::int64_t t = 0; t < sample.length; ++t) {
    sample.read_scores(t, added.get());
    if (t == 0) {
      for (std::int64_t s = 0; s < std::min<std::int64_t>(2, positions); ++s) {
        next[s] = added.get()[s];
      }
    } else {
      sum_ways<T>(now, -1, sample.skip_before.get(), added.get(), positions, next);
    }
    std::copy_n(next, positions, alpha + t * positions);
    std::swap(now, next);
  }
  // All end at the last label or at the blank behind it. Where there is no label, the margin before
  // the positions is kNever.
  const double blank = now[sample.used - 1];
  const double label = now[sample.used - 2];
  const double top = std::max(blank, label);
  *loss = static_cast<T>(-(top + std::log(std::exp(blank - top) + std::exp(label - top))));
}

// The probability of passing a position at a step is that of its beginnings times that of its ends,
// of all of which the sum is 1.
template <class T>
void align_sample_grad(const Alignment& x, std::int64_t n, const T* alpha, T gy, T* gx) {
  Sample<T> sample(x, n);
  const std::int64_t positions = sample.positions;
  PathRow<T> ends(positions), added(positions), chances(positions);
  T *now = sample.now.get(), *next = sample.next.get();
  for (std::int64_t s = std::max<std::int64_t>(sample.used - 2, 0); s < sample.used; ++s)
    now[s] = 0;
  for (std::int64_t t = sample.length - 1; t >= 0; --t) {
    if (t < sample.length - 1) {
      // `ends` has what ends at the next step's positions.
      sample.read_scores(t + 1, added.get());
      for (std::int64_t s = 0; s < positions; ++s) ends.get()[s] = now[s] + added.get()[s];
      sum_ways<T>(ends.get(), 1, sample.skip_behind.get(), sample.none.get(), positions, next);
      std::swap(now, next);
    }
    const T* const begun = alpha + t * positions;
    T top = begun[0] + now[0];
    for (std::int64_t s = 0; s < positions; ++s) {
      chances.get()[s] = begun[s] + now[s];
      top = std::max(top, chances.get()[s]);
    }
    T total = 0;
    simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
      using V = simd::Vector<decltype(target), T>;
      for (std::int64_t s = 0; s < positions; s += V::width) {
        V::store(exp(V(V::load(chances.get() + s) - top)).v, chances.get() + s);
      }
    });
    for (std::int64_t s = 0; s < positions; ++s) total += chances.get()[s];
    std::fill_n(chances.get() + positions, kVector, T(kNever));
    T* const to = gx + (t * sample.samples + n) * sample.labels;
    const T factor = -gy / total;
    for (std::int64_t s = 0; s < positions; ++s) to[sample.path[s]] += chances.get()[s] * factor;
  }
}

template <class Body>
void for_each_sample(const Alignment& x, const Body& body) {
  constexpr std::int64_t kCost = 16;
  const std::int64_t cost = kCost * x.scores.shape(0) * x.path.shape(1);
  const GilRelease work(cost * x.path.shape(0));
  visit_wide(x.scores.dtype(), [&]<class T>(Type<T> type) {
    parallel_for(x.path.shape(0), cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) body(type, n);
    });
  });
}

void align_cpu(const Alignment& x, const Array& alpha, const Array& loss) {
  const std::int64_t each = x.scores.shape(0) * x.path.shape(1);
  for_each_sample(x, [&]<class T>(Type<T>, std::int64_t n) {
    align_sample<T>(x, n, alpha.as<T>() + n * each, loss.as<T>() + n);
  });
}

void align_grad_cpu(const Alignment& x, const Array& alpha, const Array& gy, const Array& gx) {
  const std::int64_t each = x.scores.shape(0) * x.path.shape(1);
  for_each_sample(x, [&]<class T>(Type<T>, std::int64_t n) {
    align_sample_grad<T>(x, n, alpha.as<const T>() + n * each, gy.as<const T>()[n], gx.as<T>());
  });
}

// best[j] and from[j]: the largest of sums[i] + cost[i][j], and the first i that has it.
template <class T>
void best_ways(const T* sums, const T* cost, std::int64_t k, T* __restrict best,
               std::int32_t* __restrict from) {
  for (std::int64_t j = 0; j < k; ++j) {
    best[j] = sums[0] + cost[j];
    from[j] = 0;
  }
  for (std::int64_t i = 1; i < k; ++i) {
    const T sum = sums[i];
    const T* const row = cost + i * k;
    const auto index = static_cast<std::int32_t>(i);
    for (std::int64_t j = 0; j < k; ++j) {
      const T way = sum + row[j];
      const bool is_better = way > best[j];
      best[j] = is_better ? way : best[j];
      from[j] = is_better ? index : from[j];
    }
  }
}

void best_paths_cpu(const Array& cost, const std::vector<Array>& xs,
                    const std::vector<Array>& labels) {
  const std::int64_t k = cost.shape(0), sequences = xs[0].shape(0);
  const auto steps = static_cast<std::int64_t>(xs.size());
  const GilRelease work(sequences * steps * k * k);
  visit_wide(cost.dtype(), [&]<class T>(Type<T>) {
    parallel_for(sequences, steps * k * k, [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> sums(static_cast<std::size_t>(k)), next(static_cast<std::size_t>(k));
      std::vector<std::int32_t> from(static_cast<std::size_t>(steps * k));
      for (std::int64_t b = begin; b < end; ++b) {
        std::int64_t length = 0;
        for (; length < steps && xs[static_cast<std::size_t>(length)].shape(0) > b; ++length) {
          const T* const x = xs[static_cast<std::size_t>(length)].as<const T>() + b * k;
          if (length == 0) {
            std::copy_n(x, k, sums.data());
            continue;
          }
          best_ways(sums.data(), cost.as<const T>(), k, next.data(), from.data() + length * k);
          for (std::int64_t j = 0; j < k; ++j) next[static_cast<std::size_t>(j)] += x[j];
          std::swap(sums, next);
        }
        auto label = static_cast<std::int32_t>(std::ranges::max_element(sums) - sums.begin());
        for (std::int64_t t = length - 1; t >= 0; --t) {
          labels[static_cast<std::size_t>(t)].as<std::int32_t>()[b] = label;
          label = from[static_cast<std::size_t>(t * k + label)];
        }
      }
    });
  });
}

[[maybe_unused]] const bool registered =
    path_kernels.add(0, {align_cpu, align_grad_cpu, best_paths_cpu});

}  // namespace
}  // namespace renga
