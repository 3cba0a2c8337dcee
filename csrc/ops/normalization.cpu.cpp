// Sums run over blocks of elements that fit the first cache, in the type of the statistics; blocks
// are merged in float64. A variance is summed up around its block's own mean (Chan, Golub and
// LeVeque 1979), so that nothing cancels however far the mean is from zero.
#include "ops/normalization.h"

#include <cmath>
#include <vector>

#include "devices/long_work.h"
#include "devices/parallel.h"
#include "ops/lanes.cpu.h"

namespace renga {
namespace {

// Two numbers per channel over `count` elements: (mean, sum of squared differences from it) or two
// plain sums.
struct Totals {
  explicit Totals(std::int64_t channels)
      : first(static_cast<std::size_t>(channels)), second(static_cast<std::size_t>(channels)) {}
  double count = 0;
  std::vector<double> first, second;
};

struct MergeMoments {
  template <class S>
  void operator()(Totals& to, double count, const S* mean, const S* squares) const {
    const double all = to.count + count, weight = count / all, cross = to.count * weight;
    for (std::size_t c = 0; c < to.first.size(); ++c) {
      const double delta = static_cast<double>(mean[c]) - to.first[c];
      to.first[c] += delta * weight;
      to.second[c] += static_cast<double>(squares[c]) + delta * delta * cross;
    }
    to.count = all;
  }
};

struct MergeSums {
  template <class S>
  void operator()(Totals& to, double count, const S* first, const S* second) const {
    for (std::size_t c = 0; c < to.first.size(); ++c) {
      to.first[c] += static_cast<double>(first[c]);
      to.second[c] += static_cast<double>(second[c]);
    }
    to.count += count;
  }
};

constexpr std::int64_t kTile = 512;  // channels whose running numbers stay in the first cache

// Rows of adjoining channels. block(row, rows, c, channels, first, second) works on a block; how
// rows are cut does not depend on the number of threads, so neither does the result.
template <class S, class Merge, class Block, class Finish>
void reduce_rows(const ChannelLayout& layout, const Merge& merge, const Block& block,
                 const Finish& finish) {
  const std::int64_t rows = layout.outer, channels = layout.channels;
  const std::int64_t tiles = (channels + kTile - 1) / kTile;
  const std::int64_t height = std::clamp<std::int64_t>(4096 / std::min(channels, kTile), 8, 256);
  const std::int64_t blocks = (rows + height - 1) / height;
  const std::int64_t chunks = tiles >= 8 ? 1 : std::clamp<std::int64_t>(blocks, 1, 16);
  const auto width_of = [&](std::int64_t tile) { return std::min(kTile, channels - tile * kTile); };
  std::vector<Totals> partial;
  for (std::int64_t i = 0; i < tiles * chunks; ++i) partial.emplace_back(width_of(i / chunks));
  const std::int64_t cost = 4 * std::min(channels, kTile) * rows / chunks;
  parallel_for(tiles * chunks, cost, [&](std::int64_t begin, std::int64_t end) {
    S first[kTile], second[kTile];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t tile = i / chunks, width = width_of(tile);
      const std::int64_t chunk = i % chunks, last = blocks * (chunk + 1) / chunks;
      for (std::int64_t b = blocks * chunk / chunks; b < last; ++b) {
        const std::int64_t n = std::min(height, rows - b * height);
        block(b * height, n, tile * kTile, width, first, second);
        merge(partial[static_cast<std::size_t>(i)], static_cast<double>(n), first, second);
      }
    }
  });
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    Totals all(width_of(tile));
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const Totals& part = partial[static_cast<std::size_t>(tile * chunks + chunk)];
      if (part.count > 0) merge(all, part.count, part.first.data(), part.second.data());
    }
    for (std::int64_t c = 0; c < width_of(tile); ++c) {
      const auto k = static_cast<std::size_t>(c);
      finish(tile * kTile + c, all.first[k], all.second[k]);
    }
  }
}

// Planes of one channel each. block(offset, n, c, first, second) works on n elements from `offset`.
template <class S, class Merge, class Block, class Finish>
void reduce_planes(const ChannelLayout& layout, const Merge& merge, const Block& block,
                   const Finish& finish) {
  constexpr std::int64_t kLength = 4096;
  parallel_for(layout.channels, 4 * layout.count(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      Totals all(1);
      for (std::int64_t o = 0; o < layout.outer; ++o) {
        const std::int64_t plane = (o * layout.channels + c) * layout.inner;
        for (std::int64_t i = 0; i < layout.inner; i += kLength) {
          const std::int64_t n = std::min(kLength, layout.inner - i);
          S first, second;
          block(plane + i, n, c, first, second);
          merge(all, static_cast<double>(n), &first, &second);
        }
      }
      finish(c, all.first[0], all.second[0]);
    }
  });
}

template <class T, class S>
void moments(const T* x, const ChannelLayout& layout, S* mean, S* var) {
  const double m = static_cast<double>(std::max<std::int64_t>(1, layout.count()));
  const auto finish = [&](std::int64_t c, double average, double squares) {
    mean[c] = static_cast<S>(average);
    var[c] = static_cast<S>(squares / m);
  };
  if (layout.inner > 1) {
    const auto block = [&](std::int64_t at, std::int64_t n, std::int64_t, S& average, S& squares) {
      average =
          sum_lanes<T>(n, [&]<class V>(Type<V>, std::int64_t i) { return load<V>(x + at + i); }) /
          static_cast<S>(n);
      squares = sum_lanes<T>(n, [&]<class V>(Type<V>, std::int64_t i) {
        const V d = load<V>(x + at + i) - V(average);
        return V(d * d);
      });
    };
    return reduce_planes<S>(layout, MergeMoments{}, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         S* average, S* squares) {
    std::fill_n(average, width, S(0));
    std::fill_n(squares, width, S(0));
    const T* top = x + row * layout.channels + at;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* from = top + r * layout.channels;
      each_lanes<T>(width, [&]<class V>(Type<V>, std::int64_t c) {
        store(V(load<V>(average + c) + load<V>(from + c)), average + c);
      });
    }
    for (std::int64_t c = 0; c < width; ++c) average[c] /= static_cast<S>(rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* from = top + r * layout.channels;
      each_lanes<T>(width, [&]<class V>(Type<V>, std::int64_t c) {
        const V d = load<V>(from + c) - load<V>(average + c);
        store(V(load<V>(squares + c) + d * d), squares + c);
      });
    }
  };
  reduce_rows<S>(layout, MergeMoments{}, block, finish);
}

template <class T, class S>
void gradient_sums(const T* x, const T* gy, const ChannelLayout& layout, const S* mean, S* sum_gy,
                   S* sum_gy_x) {
  const auto finish = [&](std::int64_t c, double first, double second) {
    sum_gy[c] = static_cast<S>(first);
    sum_gy_x[c] = static_cast<S>(second);
  };
  if (layout.inner > 1) {
    const auto block = [&](std::int64_t at, std::int64_t n, std::int64_t c, S& first, S& second) {
      first =
          sum_lanes<T>(n, [&]<class V>(Type<V>, std::int64_t i) { return load<V>(gy + at + i); });
      second = sum_lanes<T>(n, [&]<class V>(Type<V>, std::int64_t i) {
        return V(load<V>(gy + at + i) * (load<V>(x + at + i) - V(mean[c])));
      });
    };
    return reduce_planes<S>(layout, MergeSums{}, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         S* first, S* second) {
    std::fill_n(first, width, S(0));
    std::fill_n(second, width, S(0));
    for (std::int64_t r = row; r < row + rows; ++r) {
      const T* g = gy + r * layout.channels + at;
      const T* from = x + r * layout.channels + at;
      each_lanes<T>(width, [&]<class V>(Type<V>, std::int64_t c) {
        const V v = load<V>(g + c);
        store(V(load<V>(first + c) + v), first + c);
        const V d = load<V>(from + c) - load<V>(mean + at + c);
        store(V(load<V>(second + c) + v * d), second + c);
      });
    }
  };
  reduce_rows<S>(layout, MergeSums{}, block, finish);
}

// Calls element(Type<V>{}, i, of_channel) for all elements, where of_channel(p) is what the vector
// p over channels has for them.
template <class T, class S, class Element>
void each_element(const ChannelLayout& layout, const Element& element) {
  if (layout.inner > 1) {
    parallel_for(layout.outer * layout.channels, 2 * layout.inner,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t k = begin; k < end; ++k) {
                     const std::int64_t c = k % layout.channels;
                     each_lanes<T>(layout.inner, [&]<class V>(Type<V> type, std::int64_t i) {
                       element(type, k * layout.inner + i, [c](const S* p) { return V(p[c]); });
                     });
                   }
                 });
    return;
  }
  parallel_for(layout.outer, 2 * layout.channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      each_lanes<T>(layout.channels, [&]<class V>(Type<V> type, std::int64_t c) {
        element(type, r * layout.channels + c, [c](const S* p) { return load<V>(p + c); });
      });
    }
  });
}

// Calls visit(Type<T>{}, Type<S>{}) with the types of x and of its statistics.
template <class Visit>
void visit_types(const Array& x, const Visit& visit) {
  visit_dtype(x.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (is_floating<T>) visit(type, Type<Compute<T>>{});
  });
}

void moments_cpu(const Array& x, const ChannelLayout& layout, const Array& mean, const Array& var) {
  const LongWork work(x.size());
  visit_types(x, [&]<class T, class S>(Type<T>, Type<S>) {
    moments(x.as<const T>(), layout, mean.as<S>(), var.as<S>());
  });
}

void normalize_cpu(const Array& x, const ChannelLayout& layout, const Array& mean,
                   const Array& scale, const Array& beta, const Array& y) {
  const LongWork work(x.size());
  visit_types(x, [&]<class T, class S>(Type<T>, Type<S>) {
    const T* from = x.as<const T>();
    T* to = y.as<T>();
    const S *m = mean.as<S>(), *a = scale.as<S>(), *b = beta.as<S>();
    each_element<T, S>(layout, [=]<class V>(Type<V>, std::int64_t i, const auto& of_channel) {
      const V d = load<V>(from + i) - of_channel(m);
      store(V(d * of_channel(a) + of_channel(b)), to + i);
    });
  });
}

void gradient_sums_cpu(const Array& x, const Array& gy, const ChannelLayout& layout,
                       const Array& mean, const Array& sum_gy, const Array& sum_gy_x) {
  const LongWork work(x.size());
  visit_types(x, [&]<class T, class S>(Type<T>, Type<S>) {
    gradient_sums(x.as<const T>(), gy.as<const T>(), layout, mean.as<const S>(), sum_gy.as<S>(),
                  sum_gy_x.as<S>());
  });
}

void input_grad_cpu(const Array& x, const Array& gy, const ChannelLayout& layout, const Array& mean,
                    const Array& scale, const Array& shift, const Array& slope, const Array& gx) {
  const LongWork work(x.size());
  visit_types(x, [&]<class T, class S>(Type<T>, Type<S>) {
    const T *from = x.as<const T>(), *g = gy.as<const T>();
    T* to = gx.as<T>();
    const S *m = mean.as<S>(), *a = scale.as<S>(), *b = shift.as<S>(), *k = slope.as<S>();
    each_element<T, S>(layout, [=]<class V>(Type<V>, std::int64_t i, const auto& of_channel) {
      const V kept = (load<V>(g + i) - of_channel(b)) * of_channel(a);
      store(V(kept - (load<V>(from + i) - of_channel(m)) * of_channel(k)), to + i);
    });
  });
}

[[maybe_unused]] const bool registered =
    normalization_kernels.add(0, {moments_cpu, normalize_cpu, gradient_sums_cpu, input_grad_cpu});

}  // namespace
}  // namespace renga
