// Sums run over blocks of elements in the type of the statistics (channel_sums.cpu.h). A variance
// is summed up around the mean of its block's first elements, and blocks are merged by their
// distance from the common one (Chan, Golub and LeVeque 1979), so that nothing cancels however far
// from zero the elements are.
#include "devices/long_work.h"
#include "ops/channel_sums.cpu.h"
#include "ops/wide_lanes.cpu.h"

namespace renga {
namespace {

// Activations of numbers v as T holds them, and what they make of a gradient, given y or another
// number of its sign. Comparisons with NaN are false: as in the operations of these names, ReLU's
// gradient is then 0.
struct Identity {
  static constexpr bool is_identity = true;
};

// A number that was loaded whatever is done with it. The compiler would make a load and a choice
// one instruction, which waits for what the choice depends on before it asks the memory.
template <class V>
[[gnu::always_inline]] inline V loaded(V v) {
  asm("" : "+v"(v));
  return v;
}

struct Relu {
  static constexpr bool is_identity = false;
  // Rounding y does the same as rounding v before.
  template <class T, class L, class V>
  [[gnu::always_inline]] V value(L, const V& v) const {
    return v < V{} ? V{} : v;
  }
  template <class T, class L, class V>
  [[gnu::always_inline]] V gradient(L, const V& y, const V& gy) const {
    return y > V{} ? loaded(gy) : V{};
  }
};

template <class S>
struct LeakyRelu {
  static constexpr bool is_identity = false;
  S slope;
  template <class T, class L, class V>
  [[gnu::always_inline]] V value(L, const V& v) const {
    const V kept = L::template kept<T>(v);
    return kept < V{} ? kept * slope : kept;
  }
  template <class T, class L, class V>
  [[gnu::always_inline]] V gradient(L, const V& y, const V& gy) const {
    return y < V{} ? L::template kept<T>(gy * slope) : gy;
  }
};

// A channel's numbers in planes of one channel each, and those of adjoining channels.
struct OfPlane {
  std::int64_t c;
  template <class L, class S>
  [[gnu::always_inline]] typename L::V get(L, const S* vector) const {
    return L::repeat(vector + c);
  }
};
struct OfRow {
  std::int64_t c;
  template <class L, class S>
  [[gnu::always_inline]] typename L::V get(L, const S* vector) const {
    return L::load(vector + c);
  }
};

// A normalization with the types of its elements, statistics and activation.
template <class T, class S, class A>
struct Typed {
  const T* x;
  const S *mean, *scale, *beta;
  A activation;

  // The same for elements and channels further on.
  Typed from(std::int64_t element, std::int64_t channel) const {
    return {x + element, mean + channel, scale + channel, beta + channel, activation};
  }

  template <class L, class Of>
  [[gnu::always_inline]] typename L::V centred(L l, std::int64_t i, Of of) const {
    return L::load(x + i) - of.get(l, mean);
  }

  template <class L, class Of>
  [[gnu::always_inline]] typename L::V before(L l, typename L::V centred, Of of) const {
    return centred * of.get(l, scale) + of.get(l, beta);
  }

  template <class L, class Of>
  [[gnu::always_inline]] typename L::V value(L l, typename L::V centred, Of of) const {
    const typename L::V v = before(l, centred, of);
    if constexpr (A::is_identity) {
      return v;
    } else {
      return activation.template value<T>(l, v);
    }
  }

  template <class L, class Of>
  [[gnu::always_inline]] typename L::V gradient(L l, typename L::V centred, Of of,
                                                typename L::V gy) const {
    if constexpr (A::is_identity) {
      return gy;
    } else if constexpr (std::is_same_v<T, float16>) {
      // Numbers near 0 become 0 in float16, and in no other dtype.
      const typename L::V y = L::template kept<T>(value(l, centred, of));
      return activation.template gradient<T>(l, y, gy);
    } else {
      return activation.template gradient<T>(l, before(l, centred, of), gy);
    }
  }
};

// Calls visit(typed) with the types of a normalization.
template <class Visit>
void visit_types(const Normalization& of, const Visit& visit) {
  visit_dtype(of.x.array.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      const auto with = [&](auto activation) {
        visit(Typed<T, S, decltype(activation)>{of.x.array.as<const T>(), of.mean.as<const S>(),
                                                of.scale.as<const S>(), of.beta.as<const S>(),
                                                activation});
      };
      switch (of.activation.kind) {
        case Activation::Kind::none:
          return with(Identity{});
        case Activation::Kind::relu:
          return with(Relu{});
        case Activation::Kind::leaky_relu:
          return with(LeakyRelu<S>{static_cast<S>(of.activation.slope)});
      }
    }
  });
}

// Calls element(l, i, of) for all elements: those from i on, of the channel or channels `of`.
template <class S, class Element>
void each_element(const ChannelLayout& layout, const Element& element) {
  const std::int64_t channels = layout.channels, inner = layout.inner;
  if (inner > 1) {
    parallel_for(layout.outer * channels, 2 * inner, [&](std::int64_t begin, std::int64_t end) {
      on_best_target<float>([=](auto target) __attribute__((always_inline)) {
        for (std::int64_t k = begin; k < end; ++k) {
          const OfPlane of{k % channels};
          cover<decltype(target), S>(
              0, inner, [=](auto l, std::int64_t i) __attribute__((always_inline)) {
                element(l, k * inner + i, of);
              });
        }
      });
    });
    return;
  }
  parallel_for(layout.outer, 2 * channels, [&](std::int64_t begin, std::int64_t end) {
    on_best_target<float>([=](auto target) __attribute__((always_inline)) {
      for (std::int64_t r = begin; r < end; ++r) {
        cover<decltype(target), S>(
            0, channels, [=](auto l, std::int64_t c) __attribute__((always_inline)) {
              element(l, r * channels + c, OfRow{c});
            });
      }
    });
  });
}

// Adds up two numbers per element: term(l, i, of, first, second) adds to sums what elements from i
// on have. Over rows, of adjoining channels in strips whose sums stay in registers:
template <class L, int vectors, class Term, class S>
[[gnu::always_inline]] inline void sum_strip(L l, std::int64_t rows, std::int64_t step,
                                             std::int64_t c, const Term& term, S* first,
                                             S* second) {
  typename L::V a[vectors] = {}, b[vectors] = {};
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) {
      const std::int64_t at = c + k * L::width;
      term(l, r * step + at, OfRow{at}, a[k], b[k]);
    }
  }
  for (int k = 0; k < vectors; ++k) {
    L::store(a[k], first + c + k * L::width);
    L::store(b[k], second + c + k * L::width);
  }
}

template <class S, class Term>
void sum_rows(std::int64_t rows, std::int64_t step, std::int64_t width, const Term& term, S* first,
              S* second) {
  on_best_target<float>([=](auto target) __attribute__((always_inline)) {
    using L = Lanes<decltype(target), S>;
    std::int64_t c = 0;
    for (; c + 4 * L::width <= width; c += 4 * L::width) {
      sum_strip<L, 4>(L{}, rows, step, c, term, first, second);
    }
    cover<decltype(target), S>(
        c, width, [=](auto l, std::int64_t at) __attribute__((always_inline)) {
          sum_strip<decltype(l), 1>(l, rows, step, at, term, first, second);
        });
  });
}

// and over a stretch of one channel:
template <class S, class Term>
void sum_stretch(std::int64_t n, std::int64_t c, const Term& term, S& first, S& second) {
  on_best_target<float>([ =, &first, &second ](auto target) __attribute__((always_inline)) {
    using L = Lanes<decltype(target), S>;
    const OfPlane of{c};
    typename L::V a[4] = {}, b[4] = {};
    std::int64_t i = 0;
    for (; i + 4 * L::width <= n; i += 4 * L::width) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) term(L{}, i + k * L::width, of, a[k], b[k]);
    }
    for (; i + L::width <= n; i += L::width) term(L{}, i, of, a[0], b[0]);
    first = L::sum((a[0] + a[1]) + (a[2] + a[3]));
    second = L::sum((b[0] + b[1]) + (b[2] + b[3]));
    for (; i < n; ++i) term(Single<S>{}, i, of, first, second);
  });
}

// The sum of elements.
template <class T>
struct PlainSum {
  const T* x;
  template <class L, class Of>
  [[gnu::always_inline]] void operator()(L, std::int64_t i, Of, typename L::V& sum,
                                         typename L::V&) const {
    sum += L::load(x + i);
  }
};

// The sums of differences from a number of the channel's and of their squares.
template <class T, class S>
struct SquaresAround {
  const T* x;
  const S* near;
  template <class L, class Of>
  [[gnu::always_inline]] void operator()(L l, std::int64_t i, Of of, typename L::V& differences,
                                         typename L::V& squares) const {
    const typename L::V d = L::load(x + i) - of.get(l, near);
    differences += d;
    squares += d * d;
  }
};

// The sums of g and of g (x - mean).
template <class Numbers, class T>
struct GradientSums {
  Numbers of_x;
  const T* gy;
  template <class L, class Of>
  [[gnu::always_inline]] void operator()(L l, std::int64_t i, Of of, typename L::V& sum_g,
                                         typename L::V& sum_g_x) const {
    const typename L::V d = of_x.centred(l, i, of);
    const typename L::V g = of_x.gradient(l, d, of, L::load(gy + i));
    sum_g += g;
    sum_g_x += g * d;
  }
};

// Elements whose mean a block's differences are taken from.
constexpr std::int64_t kNearRows = 16, kNearElements = 256;

// The mean and the sum of squared differences from it, of n elements, from the sums of differences
// from a number nearby and of their squares.
template <class S>
void set_moments(std::int64_t n, S near, S differences, S squares, double& mean, double& rest) {
  const double shift = static_cast<double>(differences) / static_cast<double>(n);
  mean = static_cast<double>(near) + shift;
  rest = std::max(0.0, static_cast<double>(squares) - shift * static_cast<double>(differences));
}

template <class T, class S>
void row_moments(const T* x, std::int64_t step, std::int64_t rows, std::int64_t width, double* mean,
                 double* squares) {
  S near[kTile], differences[kTile], squared[kTile];
  const std::int64_t first = std::min(rows, kNearRows);
  sum_rows(first, step, width, PlainSum<T>{x}, near, squared);
  for (std::int64_t c = 0; c < width; ++c) near[c] /= static_cast<S>(first);
  sum_rows(rows, step, width, SquaresAround<T, S>{x, near}, differences, squared);
  for (std::int64_t c = 0; c < width; ++c) {
    set_moments(rows, near[c], differences[c], squared[c], mean[c], squares[c]);
  }
}

template <class T, class S>
void stretch_moments(const T* x, std::int64_t n, double& mean, double& squares) {
  S near, differences, squared;
  const std::int64_t first = std::min(n, kNearElements);
  sum_stretch(first, 0, PlainSum<T>{x}, near, squared);
  near /= static_cast<S>(first);
  sum_stretch(n, 0, SquaresAround<T, S>{x, &near}, differences, squared);
  set_moments(n, near, differences, squared, mean, squares);
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
                           double& second) { stretch_moments<T, S>(x + at, n, first, second); };
    return reduce_planes(layout, merge_moments, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         double* first, double* second) {
    row_moments<T, S>(x + row * layout.channels + at, layout.channels, rows, width, first, second);
  };
  reduce_rows(layout, merge_moments, block, finish);
}

template <class Numbers, class T, class S>
void gradient_sums(const Numbers& of, const T* gy, const ChannelLayout& layout, S* sum_g,
                   S* sum_g_x) {
  const auto finish = [&](std::int64_t c, double first, double second) {
    sum_g[c] = static_cast<S>(first);
    sum_g_x[c] = static_cast<S>(second);
  };
  if (layout.inner > 1) {
    const auto block = [&](std::int64_t at, std::int64_t n, std::int64_t c, double& first,
                           double& second) {
      S sum, product;
      sum_stretch(n, c, GradientSums<Numbers, T>{of.from(at, 0), gy + at}, sum, product);
      first = static_cast<double>(sum);
      second = static_cast<double>(product);
    };
    return reduce_planes(layout, merge_sums, block, finish);
  }
  const auto block = [&](std::int64_t row, std::int64_t rows, std::int64_t at, std::int64_t width,
                         double* first, double* second) {
    S sum[kTile], product[kTile];
    const std::int64_t top = row * layout.channels + at;
    sum_rows(rows, layout.channels, width, GradientSums<Numbers, T>{of.from(top, at), gy + top},
             sum, product);
    std::copy_n(sum, width, first);
    std::copy_n(product, width, second);
  };
  reduce_rows(layout, merge_sums, block, finish);
}

void moments_cpu(const Channels& x, const Array& mean, const Array& var) {
  const LongWork work(x.array.size());
  visit_dtype(x.array.dtype(), [&]<class T>(Type<T>) {
    using S = Compute<T>;
    if constexpr (is_floating<T>) {
      moments(x.array.as<const T>(), x.layout, mean.as<S>(), var.as<S>());
    }
  });
}

void normalize_cpu(const Normalization& given, const Array& y) {
  const LongWork work(y.size());
  visit_types(given, [&]<class T, class S, class A>(const Typed<T, S, A>& of_x) {
    T* to = y.as<T>();
    each_element<S>(
        given.x.layout, [=](auto l, std::int64_t i, auto of) __attribute__((always_inline)) {
          l.store(of_x.value(l, of_x.centred(l, i, of), of), to + i);
        });
  });
}

void gradient_sums_cpu(const Normalization& given, const Array& gy, const Array& sum_g,
                       const Array& sum_g_x) {
  const LongWork work(gy.size());
  visit_types(given, [&]<class T, class S, class A>(const Typed<T, S, A>& of_x) {
    gradient_sums(of_x, gy.as<const T>(), given.x.layout, sum_g.as<S>(), sum_g_x.as<S>());
  });
}

void input_grad_cpu(const Normalization& given, const Array& gy, const Array& shift,
                    const Array& slope, const Array& gx) {
  const LongWork work(gx.size());
  visit_types(given, [&]<class T, class S, class A>(const Typed<T, S, A>& of_x) {
    const T* from = gy.as<const T>();
    T* to = gx.as<T>();
    const S *b = shift.as<S>(), *k = slope.as<S>();
    each_element<S>(
        given.x.layout, [=](auto l, std::int64_t i, auto of) __attribute__((always_inline)) {
          const auto d = of_x.centred(l, i, of);
          const auto g = of_x.gradient(l, d, of, l.load(from + i));
          l.store((g - of.get(l, b)) * of.get(l, of_x.scale) - d * of.get(l, k), to + i);
        });
  });
}

[[maybe_unused]] const bool registered =
    normalization_kernels.add(0, {moments_cpu, normalize_cpu, gradient_sums_cpu, input_grad_cpu});

}  // namespace
}  // namespace renga
