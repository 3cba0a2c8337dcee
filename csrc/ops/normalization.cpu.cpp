// Sums run over blocks of elements in the type of the statistics (channel_sums.cpu.h). A variance
// is summed up around its block's own mean, and blocks are merged by their distance from the common
// one (Chan, Golub and LeVeque 1979), so that nothing cancels however far from zero the elements
// are.
#include "devices/long_work.h"
#include "ops/channel_sums.cpu.h"
#include "ops/lanes.cpu.h"

namespace renga {
namespace {

// The moments of n elements from the sums of differences from a rounded mean and of their squares.
template <class S>
void set_moments(std::int64_t n, S mean, S differences, S squares, double& first, double& second) {
  const double rest = static_cast<double>(differences) / static_cast<double>(n);
  first = static_cast<double>(mean) + rest;
  second = static_cast<double>(squares) - rest * static_cast<double>(differences);
}

template <class T, class S>
void plane_moments(const T* x, std::int64_t n, double& mean, double& squares) {
  const S near = sum_lanes<T>(n, [&]<class V>(Type<V>, std::int64_t i) { return load<V>(x + i); }) /
                 static_cast<S>(n);
  const auto difference = [&]<class V>(Type<V>, std::int64_t i) {
    return V(load<V>(x + i) - V(near));
  };
  const S squared = sum_lanes<T>(n, [&]<class V>(Type<V> type, std::int64_t i) {
    const V d = difference(type, i);
    return V(d * d);
  });
  set_moments(n, near, sum_lanes<T>(n, difference), squared, mean, squares);
}

template <class T, class S>
void row_moments(const T* x, std::int64_t step, std::int64_t rows, std::int64_t width, double* mean,
                 double* squares) {
  S near[kTile], differences[kTile], squared[kTile];
  for (S* sums : {near, differences, squared}) std::fill_n(sums, width, S(0));
  for (std::int64_t r = 0; r < rows; ++r) {
    each_lanes<T>(width, [&]<class V>(Type<V>, std::int64_t c) {
      store(V(load<V>(near + c) + load<V>(x + r * step + c)), near + c);
    });
  }
  for (std::int64_t c = 0; c < width; ++c) near[c] /= static_cast<S>(rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    each_lanes<T>(width, [&]<class V>(Type<V>, std::int64_t c) {
      const V d = load<V>(x + r * step + c) - load<V>(near + c);
      store(V(load<V>(differences + c) + d), differences + c);
      store(V(load<V>(squared + c) + d * d), squared + c);
    });
  }
  for (std::int64_t c = 0; c < width; ++c) {
    set_moments(rows, near[c], differences[c], squared[c], mean[c], squares[c]);
  }
}

template <class T, class S>
void moments(const T* x, const ChannelLayout& layout, S* mean, S* var) {
  const double m = static_cast<double>(std::max<std::int64_t>(1, layout.count()));
  const auto finish = [&](std::int64_t c, double average, double squares) {
    mean[c] = static_cast<S>(average);
    var[c] = static_cast<S>(squares / m);
  };
  if (layout.inner > 1) {
    const auto block = [&](std::int64_t at, std::int64_t n, std::int64_t, double& first,
                           double& second) { plane_moments<T, S>(x + at, n, first, second); };
    return reduce_planes(layout, merge_moments, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         double* first, double* second) {
    const T* top = x + row * layout.channels + at;
    row_moments<T, S>(top, layout.channels, rows, width, first, second);
  };
  reduce_rows(layout, merge_moments, block, finish);
}

template <class T, class S>
void row_gradient_sums(const T* x, const T* gy, const S* mean, std::int64_t step, std::int64_t rows,
                       std::int64_t width, double* first, double* second) {
  S sum_gy[kTile], sum_gy_x[kTile];
  for (S* sums : {sum_gy, sum_gy_x}) std::fill_n(sums, width, S(0));
  for (std::int64_t r = 0; r < rows; ++r) {
    each_lanes<T>(width, [&]<class V>(Type<V>, std::int64_t c) {
      const V g = load<V>(gy + r * step + c);
      const V d = load<V>(x + r * step + c) - load<V>(mean + c);
      store(V(load<V>(sum_gy + c) + g), sum_gy + c);
      store(V(load<V>(sum_gy_x + c) + g * d), sum_gy_x + c);
    });
  }
  std::copy_n(sum_gy, width, first);
  std::copy_n(sum_gy_x, width, second);
}

template <class T, class S>
void gradient_sums(const T* x, const T* gy, const ChannelLayout& layout, const S* mean, S* sum_gy,
                   S* sum_gy_x) {
  const auto finish = [&](std::int64_t c, double first, double second) {
    sum_gy[c] = static_cast<S>(first);
    sum_gy_x[c] = static_cast<S>(second);
  };
  if (layout.inner > 1) {
    const auto block = [&](std::int64_t at, std::int64_t n, std::int64_t c, double& first,
                           double& second) {
      first =
          sum_lanes<T>(n, [&]<class V>(Type<V>, std::int64_t i) { return load<V>(gy + at + i); });
      second = sum_lanes<T>(n, [&]<class V>(Type<V>, std::int64_t i) {
        return V(load<V>(gy + at + i) * (load<V>(x + at + i) - V(mean[c])));
      });
    };
    return reduce_planes(layout, merge_sums, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         double* first, double* second) {
    const std::int64_t top = row * layout.channels + at;
    row_gradient_sums(x + top, gy + top, mean + at, layout.channels, rows, width, first, second);
  };
  reduce_rows(layout, merge_sums, block, finish);
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
