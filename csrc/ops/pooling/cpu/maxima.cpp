// The largest elements of windows, and what goes to or comes from where they are.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/elementwise/maps.h"
#include "ops/pooling/cpu/kernels.h"
#include "simd/blocked_loop.h"

namespace renga::pooling_cpu {
namespace {

using maps::isnan, maps::select;

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
      : values(static_cast<std::size_t>(width)), rows(values.size()), converted(values.size()) {}

  template <class T>
  void begin(const T* x, std::int32_t row) {
    std::copy_n(numbers_of(x), values.size(), values.begin());
    std::fill(rows.begin(), rows.end(), row);
  }

  // The first of equal numbers and of NaNs stays.
  template <class T>
  void add(const T* x, std::int32_t row) {
    const auto width = static_cast<std::int64_t>(values.size());
    const C* const numbers = numbers_of(x);
    C* const best = values.data();
    std::int32_t* const at = rows.data();
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      const C v = numbers[j];
      const bool better = !(v <= best[j]) && best[j] == best[j];
      best[j] = better ? v : best[j];
      at[j] = better ? row : at[j];
    }
  }

  template <class T>
  const C* numbers_of(const T* x) {
    if constexpr (is_half<T>) {
      simd::convert(x, converted.data(), static_cast<std::int64_t>(converted.size()));
      return converted.data();
    } else {
      return x;
    }
  }

  std::vector<C> values;
  std::vector<std::int32_t> rows;
  std::vector<C> converted;  // from 16 bits
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

// Calls visit(Type<T>{}, Type<I>{}) with the types of an image and of indices.
template <class Visit>
void visit_types(const Array& x, const Array& indices, const Visit& visit) {
  visit_image(x, [&](auto type) {
    if (indices.dtype() == Dtype::uint8) return visit(type, Type<std::uint8_t>{});
    visit(type, Type<std::int32_t>{});
  });
}

}  // namespace

void max(const Array& x, const Array& y, const Array& indices, const PoolingWindow& window) {
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

void gather(const Array& x, const Array& indices, const Array& y, const PoolingWindow& window) {
  const GilRelease work(y.size());
  const PoolingGrid grid(x, y, window);
  visit_types(x, indices, [&]<class T, class I>(Type<T>, Type<I>) {
    gather_by_planes<T, I>(x, indices, y, grid);
  });
}

void scatter(const Array& gy, const Array& indices, const Array& gx, const PoolingWindow& window) {
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

}  // namespace renga::pooling_cpu
