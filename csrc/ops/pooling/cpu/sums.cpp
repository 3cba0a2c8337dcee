// The sums of windows, and their transpose.
#include <algorithm>

#include "ops/pooling/cpu/kernels.h"

namespace renga::pooling_cpu {
namespace {

// pixel = (sum of the sources) / divisor, for `count` vectors of channels from c on.
template <class L, int count, class T>
[[gnu::always_inline]] inline void sum_channels(const std::vector<const T*>& sources,
                                                std::int64_t c, std::int64_t divisor, T* pixel) {
  using V = typename L::Value;
  V totals[count];
  for (V& each : totals) each = V(0);
  for (const T* source : sources) {
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k) totals[k] = totals[k] + V(L::load(source + c + k * L::width));
  }
#pragma GCC unroll 8
  for (int k = 0; k < count; ++k) {
    const V total = divisor == 1 ? totals[k] : V(totals[k] / V(static_cast<Compute<T>>(divisor)));
    L::store(total, pixel + c + k * L::width);
  }
}

// to = (sum of the elements of `from` that each_source(row, column, visit) visits) / divisor, with
// vectors of channels, several at a time: lines of the cache, which sources far apart may not keep,
// are read once.
template <class T, class EachSource>
void sum_by_pixels(const Array& from, const Array& to, std::int64_t divisor,
                   const EachSource& each_source) {
  const std::int64_t channels = to.shape(1);
  for_each_pixel<const T*>(
      to, 4, [&](std::int64_t n, std::int64_t i, std::int64_t j, auto& sources) {
        const Pixels<const T> elements(from, n, 0);
        each_source(i, j, [&](std::int64_t row, std::int64_t column, std::int64_t) {
          sources.push_back(elements.at(row, column));
        });
        T* const pixel = Pixels<T>(to, n, 0).at(i, j);
        run_on_channels<T>(
            channels, [&](auto target) __attribute__((always_inline)) {
              using V = simd::Vector<decltype(target), Compute<T>>;
              std::int64_t c = 0;
              for (; c + 8 * V::width <= channels; c += 8 * V::width) {
                sum_channels<V, 8>(sources, c, divisor, pixel);
              }
              for (; c + 4 * V::width <= channels; c += 4 * V::width) {
                sum_channels<V, 4>(sources, c, divisor, pixel);
              }
              if (c == channels) return;
              simd::for_each_vector<decltype(target), Compute<T>>(
                  c, channels, [&]<class L>(L, std::int64_t last) __attribute__((always_inline)) {
                    sum_channels<L, 1>(sources, last, divisor, pixel);
                  });
            });
      });
}

// sum = 0, then sum += each row, of `width` numbers.
template <class C, class T>
void add_row(const T* row, std::vector<C>& sum) {
  const auto width = static_cast<std::int64_t>(sum.size());
  C* const to = sum.data();
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) to[j] += static_cast<C>(row[j]);
}

// The sum of n adjoining numbers.
template <class C, class T>
C sum_run(const T* x, std::int64_t n) {
  C total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t j = 0; j < n; ++j) total += static_cast<C>(x[j]);
  return total;
}

// The sums of windows of a row's numbers.
template <class C>
void sum_along_row(const C* row, const PoolingAxis& columns, std::vector<C>& sums) {
  C* const to = sums.data();
  if (columns.are_elements()) {
    std::copy_n(row, columns.positions, to);
  } else if (columns.are_pairs()) {
    for (std::int64_t p = 0; p < columns.positions; ++p) to[p] = row[2 * p] + row[2 * p + 1];
  } else {
    for (std::int64_t p = 0; p < columns.positions; ++p) {
      const Span js = columns.inside(p);
      const C* const window = row + columns.origin(p);
      C total = 0;
      for (std::int64_t j = js.begin; j < js.end; ++j) total += window[j];
      to[p] = total;
    }
  }
}

// to[i] = T(from[i] / divisor), `step` elements apart. Of adjoining ones the compiler makes
// vectors.
template <class C, class T>
void divide_row(const std::vector<C>& from, std::int64_t divisor, T* to, std::int64_t step) {
  const auto n = static_cast<std::int64_t>(from.size());
  const auto by = static_cast<C>(divisor);
  if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = T(from[i] / by);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * step] = T(from[i] / by);
  }
}

// The sums of windows divided by `divisor`: of their rows, then of what these have in columns.
template <class T>
void sum_windows_by_planes(const Array& x, const Array& y, const PoolingGrid& grid,
                           std::int64_t divisor) {
  using C = Compute<T>;
  const std::int64_t width = x.shape(3);
  const bool are_runs = y.shape(3) == 1 && grid.columns.inside(0).end == width &&
                        grid.columns.inside(0).begin == 0 && x.strides()[2] == width * x.itemsize();
  const std::int64_t step = y.strides()[3] / y.itemsize();
  struct Memory {
    std::vector<C> rows, sums;
  };
  const auto make = [&] {
    return Memory{std::vector<C>(static_cast<std::size_t>(width)),
                  std::vector<C>(static_cast<std::size_t>(y.shape(3)))};
  };
  for_each_plane(y, 4, make, [&](std::int64_t n, std::int64_t c, Memory& memory) {
    auto& [rows, sums] = memory;
    const Pixels<const T> from(x, n, c);
    const Pixels<T> to(y, n, c);
    for (std::int64_t o = 0; o < y.shape(2); ++o) {
      const Span is = grid.rows.inside(o);
      const std::int64_t top = grid.rows.origin(o);
      if (are_runs) {
        const std::int64_t size = std::max<std::int64_t>(is.end - is.begin, 0) * width;
        *to.at(o, 0) = T(sum_run<C>(from.at(top + is.begin, 0), size) / static_cast<C>(divisor));
        continue;
      }
      std::fill(rows.begin(), rows.end(), C(0));
      for (std::int64_t i = is.begin; i < is.end; ++i) add_row(from.at(top + i, 0), rows);
      sum_along_row(rows.data(), grid.columns, sums);
      divide_row(sums, divisor, to.at(o, 0), step);
    }
  });
}

// Returns, for each element of an axis, the position of the only window that covers it, or -1.
std::vector<std::int32_t> only_positions(const TabledAxis& axis) {
  std::vector<std::int32_t> positions;
  for (const Span& span : axis.covering) {
    positions.push_back(span.begin < span.end ? static_cast<std::int32_t>(span.begin) : -1);
  }
  return positions;
}

// The transpose of windows that do not overlap: a row of quotients is repeated along columns, then
// along rows.
template <class T>
void repeat_by_planes(const Array& y, const Array& x, const PoolingGrid& grid,
                      std::int64_t divisor) {
  using C = Compute<T>;
  const std::vector<std::int32_t> rows = only_positions(grid.rows),
                                  columns = only_positions(grid.columns);
  const std::int64_t width = x.shape(3), positions = y.shape(3);
  const bool are_pairs = grid.columns.are_pairs() && width == 2 * positions;
  const bool are_elements = grid.columns.are_elements() && width == positions;
  const std::int64_t step = y.strides()[3] / y.itemsize();
  // Element -1 is the 0 of what no window covers.
  const auto make = [&] { return std::vector<T>(static_cast<std::size_t>(positions + 1)); };
  for_each_plane(x, 1, make, [&](std::int64_t n, std::int64_t c, auto& memory) {
    const Pixels<const T> from(y, n, c);
    const Pixels<T> to(x, n, c);
    T* const quotients = memory.data() + 1;
    quotients[-1] = T(C(0));
    std::int64_t written = -2;
    for (std::int64_t i = 0; i < x.shape(2); ++i) {
      const std::int64_t o = rows[static_cast<std::size_t>(i)];
      T* const row = to.at(i, 0);
      if (o == written) {
        std::copy_n(to.at(i - 1, 0), width, row);
        continue;
      }
      written = o;
      if (o < 0) {
        std::fill_n(quotients, positions, T(C(0)));
      } else if (divisor == 1 && step == 1) {
        std::copy_n(from.at(o, 0), positions, quotients);
      } else {
        for (std::int64_t p = 0; p < positions; ++p) {
          quotients[p] = T(static_cast<C>(from.at(o, 0)[p * step]) / static_cast<C>(divisor));
        }
      }
      if (are_elements) {
        std::copy_n(quotients, width, row);
        continue;
      }
      if (are_pairs) {
        for (std::int64_t p = 0; p < positions; ++p) row[2 * p] = row[2 * p + 1] = quotients[p];
        continue;
      }
      for (std::int64_t j = 0; j < width; ++j)
        row[j] = quotients[columns[static_cast<std::size_t>(j)]];
    }
  });
}

// The transpose of windows that do not overlap, where channels are contiguous: pixels are repeated.
template <class T>
void repeat_by_pixels(const Array& y, const Array& x, const PoolingGrid& grid,
                      std::int64_t divisor) {
  using C = Compute<T>;
  const std::vector<std::int32_t> rows = only_positions(grid.rows),
                                  columns = only_positions(grid.columns);
  const std::int64_t height = x.shape(2), width = x.shape(3), channels = x.shape(1);
  const auto write_pixel = [&](const T* from, T* to) {
    if (divisor == 1) {
      std::copy_n(from, channels, to);
      return;
    }
    for_each_channel<T>(
        channels, [=]<class L>(L, std::int64_t c) __attribute__((always_inline)) {
          using V = typename L::Value;
          L::store(V(V(L::load(from + c)) / V(static_cast<C>(divisor))), to + c);
        });
  };
  parallel_for(x.shape(0) * height, width * channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t n = k / height, i = k % height;
      const Pixels<const T> from(y, n, 0);
      const Pixels<T> to(x, n, 0);
      const std::int64_t o = rows[static_cast<std::size_t>(i)];
      const bool is_repeated = k > begin && i > 0 && o == rows[static_cast<std::size_t>(i - 1)];
      std::int64_t written = -2;
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t p = o < 0 ? -1 : columns[static_cast<std::size_t>(j)];
        if (is_repeated) {
          std::copy_n(to.at(i - 1, j), channels, to.at(i, j));
        } else if (p == written) {
          std::copy_n(to.at(i, j - 1), channels, to.at(i, j));
        } else if (p < 0) {
          std::fill_n(to.at(i, j), channels, T(C(0)));
        } else {
          write_pixel(from.at(o, p), to.at(i, j));
        }
        written = p;
      }
    }
  });
}

// The transpose of sum_windows_by_planes: each number of y goes to all of its window.
template <class T>
void spread_by_planes(const Array& y, const Array& x, const PoolingGrid& grid,
                      std::int64_t divisor) {
  using C = Compute<T>;
  const std::int64_t width = x.shape(3), positions = y.shape(2);
  if (grid.are_apart() && (width == 1 || x.strides()[3] == x.itemsize())) {
    return repeat_by_planes<T>(y, x, grid, divisor);
  }
  for_each_plane(x, 4, [&](std::int64_t n, std::int64_t c) {
    const Pixels<const T> from(y, n, c);
    const Pixels<T> to(x, n, c);
    std::vector<C> wide(static_cast<std::size_t>(positions * width));
    for (std::int64_t o = 0; o < positions; ++o) {
      C* const row = wide.data() + o * width;
      for (std::int64_t j = 0; j < width; ++j) {
        const Span ps = grid.columns.covering[static_cast<std::size_t>(j)];
        for (std::int64_t p = ps.begin; p < ps.end; ++p) row[j] += static_cast<C>(*from.at(o, p));
      }
    }
    std::vector<C> sum(static_cast<std::size_t>(width));
    for (std::int64_t i = 0; i < x.shape(2); ++i) {
      const Span os = grid.rows.covering[static_cast<std::size_t>(i)];
      std::fill(sum.begin(), sum.end(), C(0));
      for (std::int64_t o = os.begin; o < os.end; ++o) add_row(wide.data() + o * width, sum);
      for (std::int64_t j = 0; j < width; ++j) {
        *to.at(i, j) = T(sum[static_cast<std::size_t>(j)] / static_cast<C>(divisor));
      }
    }
  });
}

void sum(const Array& x, const Array& y, const PoolingWindow& window, std::int64_t divisor) {
  const GilRelease work(y.size() * window.area());
  const PoolingGrid grid(x, y, window);
  visit_image(x, [&]<class T>(Type<T>) {
    if (!has_vectors_of_channels(x, y)) {
      return sum_windows_by_planes<T>(with_contiguous_columns(x), y, grid, divisor);
    }
    sum_by_pixels<T>(x, y, divisor, [&](std::int64_t o, std::int64_t p, const auto& visit) {
      grid.for_each_inside(o, p, visit);
    });
  });
}

void spread(const Array& y, const Array& x, const PoolingWindow& window, std::int64_t divisor) {
  const GilRelease work(x.size());
  const PoolingGrid grid(x, y, window);
  visit_image(x, [&]<class T>(Type<T>) {
    if (!has_contiguous_channels(x)) return spread_by_planes<T>(y, x, grid, divisor);
    Array from = y;
    if (!has_contiguous_channels(y)) {
      from = empty_in_order(y.shape(), memory_order(x), y.dtype());
      copy(y, from);
    }
    if (grid.are_apart()) return repeat_by_pixels<T>(from, x, grid, divisor);
    sum_by_pixels<T>(from, x, divisor, [&](std::int64_t i, std::int64_t j, const auto& visit) {
      grid.for_each_covering(i, j, visit);
    });
  });
}

[[maybe_unused]] const bool registered =
    pooling_kernels.add(0, {max, gather, scatter, sum, spread});

}  // namespace
}  // namespace renga::pooling_cpu
