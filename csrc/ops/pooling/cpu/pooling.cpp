// Each kernel has two loops: pixel by pixel with vectors of channels if channels are contiguous,
// and channel by channel otherwise, with vectors of columns where several rows meet.
#include "ops/pooling/pooling.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/elementwise/maps.h"
#include "ops/pooling/cpu/pooling_grid.h"
#include "simd/vector.h"

namespace renga {
namespace {

using maps::isnan, maps::select;

// Calls run(target), which is always inlined, with the best target for n channels.
template <class T, class Run>
void run_on_channels(std::int64_t n, const Run& run) {
  if (n < simd::Avx512::width) return simd::run_on<simd::Avx2>(run);
  simd::dispatch_for<T>(run);
}

// Calls body(L, c), which is always inlined, with vectors, or single numbers, that cover n
// channels.
template <class T, class Body>
void for_each_channel(std::int64_t n, const Body& body) {
  run_on_channels<T>(
      n, [&](auto target) __attribute__((always_inline)) {
        simd::for_each_vector<decltype(target), Compute<T>>(0, n, body);
      });
}

bool has_contiguous_channels(const Array& x) {
  return x.shape(1) > 1 && x.strides()[1] == x.itemsize();
}

// Calls pixel(n, row, column, sources) for all pixels of `out`. The empty list of sources is
// reused.
template <class Source, class Pixel>
void for_each_pixel(const Array& out, std::int64_t cost, const Pixel& pixel) {
  const std::int64_t rows = out.shape(2), columns = out.shape(3);
  parallel_for(out.shape(0) * rows, cost * columns * out.shape(1),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<Source> sources;
                 for (std::int64_t i = begin; i < end; ++i) {
                   for (std::int64_t j = 0; j < columns; ++j) {
                     sources.clear();
                     pixel(i / rows, i % rows, j, sources);
                   }
                 }
               });
}

// Calls plane(n, c) for all channels of all images; with the memory that make() returns for each
// thread, plane(n, c, memory).
template <class Make, class Plane>
void for_each_plane(const Array& out, std::int64_t cost, const Make& make, const Plane& plane) {
  const std::int64_t channels = out.shape(1);
  parallel_for(out.shape(0) * channels, cost * out.shape(2) * out.shape(3),
               [&](std::int64_t begin, std::int64_t end) {
                 auto memory = make();
                 for (std::int64_t k = begin; k < end; ++k) {
                   plane(k / channels, k % channels, memory);
                 }
               });
}
template <class Plane>
void for_each_plane(const Array& out, std::int64_t cost, const Plane& plane) {
  for_each_plane(
      out, cost, [] { return 0; }, [&](std::int64_t n, std::int64_t c, int) { plane(n, c); });
}

template <class I>
inline constexpr I kNoIndex = static_cast<I>(-1);

// The largest window whose indices are exact as floats.
inline constexpr std::int64_t kMostExactIndices = 1 << 24;

template <class T, class I>
void max_by_pixels(const Array& x, const Array& y, const Array& indices, const PoolingGrid& grid,
                   std::int64_t area) {
  using C = Compute<T>;
  struct Source {
    const T* element;
    C index;
  };
  for_each_pixel<Source>(
      y, area, [&](std::int64_t n, std::int64_t o, std::int64_t p, auto& sources) {
        const Pixels<const T> from(x, n, 0);
        grid.for_each_inside(o, p, [&](std::int64_t i, std::int64_t j, std::int64_t index) {
          sources.push_back({from.at(i, j), static_cast<C>(index)});
        });
        T* to = Pixels<T>(y, n, 0).at(o, p);
        I* index_to = Pixels<I>(indices, n, 0).at(o, p);
        for_each_channel<T>(
            y.shape(1), [&]<class L>(L, std::int64_t c) __attribute__((always_inline)) {
              using V = typename L::Value;
              V best(-std::numeric_limits<C>::infinity());
              V index(static_cast<C>(kNoIndex<I>));
              // The loop goes from last to first, so that the first of equal elements and of NaNs
              // wins.
              for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
                const V v(L::load(source->element + c));
                const auto is_nan = isnan(v), is_best = v >= best;
                const V number(source->index);
                best = select(is_best, v, select(is_nan, v, best));
                index = select(is_best, number, select(is_nan, number, index));
              }
              L::store(best, to + c);
              L::store(index, index_to + c);
            });
      });
}

// The largest numbers of some rows of x by columns, and in which of the rows they are.
template <class C>
struct LargestOfColumns {
  explicit LargestOfColumns(std::int64_t width)
      : values(static_cast<std::size_t>(width)), rows(static_cast<std::size_t>(width)) {}

  template <class T>
  void begin(const T* x, std::int32_t row) {
    std::transform(x, x + values.size(), values.begin(), [](T v) { return static_cast<C>(v); });
    std::fill(rows.begin(), rows.end(), row);
  }

  // The first of equal numbers and of NaNs stays.
  template <class T>
  void add(const T* x, std::int32_t row) {
    const auto width = static_cast<std::int64_t>(values.size());
    C* const best = values.data();
    std::int32_t* const at = rows.data();
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      const C v = static_cast<C>(x[j]);
      const bool better = !(v <= best[j]) && best[j] == best[j];
      best[j] = better ? v : best[j];
      at[j] = better ? row : at[j];
    }
  }

  std::vector<C> values;
  std::vector<std::int32_t> rows;
};

template <class T, class I>
void max_by_planes(const Array& x, const Array& y, const Array& indices, const PoolingGrid& grid,
                   std::int64_t area) {
  using C = Compute<T>;
  const auto make = [&] { return LargestOfColumns<C>(x.shape(3)); };
  for_each_plane(y, area, make, [&](std::int64_t n, std::int64_t c, auto& largest) {
    const Pixels<const T> from(x, n, c);
    const Pixels<T> to(y, n, c);
    const Pixels<I> index_to(indices, n, c);
    for (std::int64_t o = 0; o < y.shape(2); ++o) {
      const Span is = grid.rows.inside(o);
      const std::int64_t top = grid.rows.origin(o);
      for (std::int64_t i = is.begin; i < is.end; ++i) {
        const T* const row = from.at(top + i, 0);
        i == is.begin ? largest.begin(row, static_cast<std::int32_t>(i))
                      : largest.add(row, static_cast<std::int32_t>(i));
      }
      for (std::int64_t p = 0; p < y.shape(3); ++p) {
        const Span js = grid.columns.inside(p);
        const std::int64_t left = grid.columns.origin(p);
        const C* const values = largest.values.data() + left;
        const std::int32_t* const rows = largest.rows.data() + left;
        C best = -std::numeric_limits<C>::infinity();
        std::int64_t best_index = -1;
        if (is.begin < is.end && js.begin < js.end) {
          best = values[js.begin];
          best_index = rows[js.begin] * grid.columns.ksize + js.begin;
        }
        for (std::int64_t j = js.begin + 1; is.begin < is.end && j < js.end; ++j) {
          const C v = values[j];
          const std::int64_t index = rows[j] * grid.columns.ksize + j;
          // This has no branches, which could not be predicted.
          const bool is_nan = isnan(v), was_nan = isnan(best);
          const bool is_equal = (v == best) | (is_nan & was_nan);
          const bool is_better =
              (v > best) | (is_nan & !was_nan) | (is_equal & (index < best_index));
          best = is_better ? v : best;
          best_index = is_better ? index : best_index;
        }
        *to.at(o, p) = T(best);
        *index_to.at(o, p) = static_cast<I>(best_index);
      }
    }
  });
}

template <class T, class I>
void scatter_by_pixels(const Array& gy, const Array& indices, const Array& gx,
                       const PoolingGrid& grid) {
  using C = Compute<T>;
  struct Source {
    const T* gradient;
    const I* index;
    C expected;
  };
  for_each_pixel<Source>(gx, 2, [&](std::int64_t n, std::int64_t i, std::int64_t j, auto& sources) {
    const Pixels<const T> from(gy, n, 0);
    const Pixels<const I> index_from(indices, n, 0);
    grid.for_each_covering(i, j, [&](std::int64_t o, std::int64_t p, std::int64_t index) {
      sources.push_back({from.at(o, p), index_from.at(o, p), static_cast<C>(index)});
    });
    T* to = Pixels<T>(gx, n, 0).at(i, j);
    for_each_channel<T>(
        gx.shape(1), [&]<class L>(L, std::int64_t c) __attribute__((always_inline)) {
          using V = typename L::Value;
          V total(C(0));
          for (const Source& source : sources) {
            const auto selected = V(L::load(source.index + c)) == V(source.expected);
            total = total + select(selected, V(L::load(source.gradient + c)), V(C(0)));
          }
          L::store(total, to + c);
        });
  });
}

// Sets the pixels of a channel to 0.
template <class T>
void fill_plane(const Array& x, const Pixels<T>& to) {
  const bool adjoin = x.shape(3) == 1 || x.strides()[3] == x.itemsize();
  for (std::int64_t i = 0; i < x.shape(2); ++i) {
    if (adjoin) {
      std::memset(static_cast<void*>(to.at(i, 0)), 0,
                  static_cast<std::size_t>(x.shape(3)) * sizeof(T));
      continue;
    }
    for (std::int64_t j = 0; j < x.shape(3); ++j) *to.at(i, j) = T(Compute<T>(0));
  }
}

// Calls visit(number, element) for the numbers of a channel of `pooled` and the elements of `image`
// that their indices name, or nullptr where they name none.
template <class I, class Number, class Element, class Visit>
void for_each_named(const Array& pooled, const Array& indices, const Array& image,
                    const PoolingGrid& grid, const WindowOffsets& offsets, std::int64_t n,
                    std::int64_t c, const Visit& visit) {
  const Pixels<Number> numbers(pooled, n, c);
  const Pixels<const I> index_from(indices, n, c);
  const auto plane = reinterpret_cast<std::uintptr_t>(Pixels<Element>(image, n, c).at(0, 0));
  const std::int64_t step = pooled.strides()[3] / pooled.itemsize();
  const std::int64_t index_step = indices.strides()[3] / indices.itemsize();
  for (std::int64_t o = 0; o < pooled.shape(2); ++o) {
    Number* number = numbers.at(o, 0);
    const I* index = index_from.at(o, 0);
    std::int64_t window =
        grid.rows.origin(o) * image.strides()[2] + grid.columns.origin(0) * image.strides()[3];
    for (std::int64_t p = 0; p < pooled.shape(3); ++p) {
      const auto at = plane + static_cast<std::uintptr_t>(window + offsets.of(*index));
      visit(*number, *index == kNoIndex<I> ? nullptr : reinterpret_cast<Element*>(at));
      number += step;
      index += index_step;
      window += grid.columns.stride * image.strides()[3];
    }
  }
}

template <class T, class I>
void scatter_by_planes(const Array& gy, const Array& indices, const Array& gx,
                       const PoolingGrid& grid) {
  using C = Compute<T>;
  const WindowOffsets offsets(gx, grid);
  for_each_plane(gx, 1, [&](std::int64_t n, std::int64_t c) {
    fill_plane(gx, Pixels<T>(gx, n, c));
    for_each_named<I, const T, T>(
        gy, indices, gx, grid, offsets, n, c, [](const T& number, T* element) {
          if (element != nullptr) *element = T(static_cast<C>(*element) + static_cast<C>(number));
        });
  });
}

template <class T, class I>
void gather_by_planes(const Array& x, const Array& indices, const Array& y,
                      const PoolingGrid& grid) {
  const WindowOffsets offsets(x, grid);
  for_each_plane(y, 1, [&](std::int64_t n, std::int64_t c) {
    for_each_named<I, T, const T>(y, indices, x, grid, offsets, n, c,
                                  [](T& number, const T* element) {
                                    number = element != nullptr ? *element : T(Compute<T>(0));
                                  });
  });
}

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

// to[i] = T(from[i] / divisor), `step` elements apart.
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

// The same with contiguous channels: pixels are repeated.
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

// The transpose of it: each number of y goes to all of its window.
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

bool has_vectors_of_channels(const Array& x, const Array& y) {
  return has_contiguous_channels(x) && has_contiguous_channels(y);
}

// Returns the same numbers, with columns that are contiguous.
Array with_contiguous_columns(const Array& x) {
  return x.shape(3) == 1 || x.strides()[3] == x.itemsize() ? x : contiguous(x);
}

// Calls visit(Type<T>{}) with the float type of an image.
template <class Visit>
void visit_image(const Array& x, const Visit& visit) {
  visit_dtype(x.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (is_floating<T>) visit(type);
  });
}

// Calls visit(Type<T>{}, Type<I>{}) with the types of an image and of indices.
template <class Visit>
void visit_types(const Array& x, const Array& indices, const Visit& visit) {
  visit_image(x, [&](auto type) {
    if (indices.dtype() == Dtype::uint8) return visit(type, Type<std::uint8_t>{});
    visit(type, Type<std::int32_t>{});
  });
}

void max_cpu(const Array& x, const Array& y, const Array& indices, const PoolingWindow& window) {
  const GilRelease work(y.size() * window.area());
  const PoolingGrid grid(x, y, window);
  visit_types(x, indices, [&]<class T, class I>(Type<T>, Type<I>) {
    if (has_vectors_of_channels(x, y) && window.area() <= kMostExactIndices) {
      max_by_pixels<T, I>(x, y, indices, grid, window.area());
    } else {
      max_by_planes<T, I>(with_contiguous_columns(x), y, indices, grid, window.area());
    }
  });
}

void gather_cpu(const Array& x, const Array& indices, const Array& y, const PoolingWindow& window) {
  const GilRelease work(y.size());
  const PoolingGrid grid(x, y, window);
  visit_types(x, indices, [&]<class T, class I>(Type<T>, Type<I>) {
    gather_by_planes<T, I>(x, indices, y, grid);
  });
}

void scatter_cpu(const Array& gy, const Array& indices, const Array& gx,
                 const PoolingWindow& window) {
  const GilRelease work(gx.size());
  const PoolingGrid grid(gx, gy, window);
  visit_types(gx, indices, [&]<class T, class I>(Type<T>, Type<I>) {
    // Channels of a single pixel are contiguous in any layout, so the larger image decides, too.
    if (!has_contiguous_channels(indices) || !has_contiguous_channels(gx) ||
        window.area() > kMostExactIndices) {
      return scatter_by_planes<T, I>(gy, indices, gx, grid);
    }
    if (has_contiguous_channels(gy)) return scatter_by_pixels<T, I>(gy, indices, gx, grid);
    const Array reordered = empty_like(indices, gy.dtype());
    copy(gy, reordered);
    scatter_by_pixels<T, I>(reordered, indices, gx, grid);
  });
}

void sum_cpu(const Array& x, const Array& y, const PoolingWindow& window, std::int64_t divisor) {
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

void spread_cpu(const Array& y, const Array& x, const PoolingWindow& window, std::int64_t divisor) {
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
    pooling_kernels.add(0, {max_cpu, gather_cpu, scatter_cpu, sum_cpu, spread_cpu});

}  // namespace
}  // namespace renga
