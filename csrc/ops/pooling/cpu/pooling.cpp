// Each kernel goes through images in one of two ways: pixel by pixel with vectors of channels,
// where channels adjoin in memory, or channel by channel otherwise.
#include "ops/pooling/pooling.h"

#include <limits>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/pooling/cpu/pooling_grid.h"
#include "simd/batch.h"

namespace renga {
namespace {

using simd::blend, simd::for_each_batch, simd::is_nan;
using simd::load, simd::load_integers, simd::store, simd::store_integers;

bool channels_adjoin(const Array& x) { return x.shape(1) > 1 && x.strides()[1] == x.itemsize(); }

// Calls pixel(n, row, column, list) for all pixels of `out`; the list is scratch of the thread.
template <class Source, class Pixel>
void each_pixel(const Array& out, std::int64_t cost, const Pixel& pixel) {
  const std::int64_t rows = out.shape(2), columns = out.shape(3);
  parallel_for(out.shape(0) * rows, cost * columns * out.shape(1),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<Source> list;
                 for (std::int64_t i = begin; i < end; ++i) {
                   for (std::int64_t j = 0; j < columns; ++j) {
                     list.clear();
                     pixel(i / rows, i % rows, j, list);
                   }
                 }
               });
}

// Calls plane(n, c) for all channels of all images.
template <class Plane>
void each_plane(const Array& out, std::int64_t cost, const Plane& plane) {
  const std::int64_t channels = out.shape(1);
  parallel_for(out.shape(0) * channels, cost * out.shape(2) * out.shape(3),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t k = begin; k < end; ++k) plane(k / channels, k % channels);
               });
}

template <class Visit>
void each_position(const Array& image, const Visit& visit) {
  for (std::int64_t i = 0; i < image.shape(2); ++i) {
    for (std::int64_t j = 0; j < image.shape(3); ++j) visit(i, j);
  }
}

template <class I>
inline constexpr I kNone = static_cast<I>(-1);

// Lanes of floats hold the numbers of a window's elements exactly up to here.
inline constexpr std::int64_t kExactNumbers = 1 << 24;

template <class T, class I>
void max_by_pixels(const Array& x, const Array& y, const Array& at, const PoolingGrid& grid,
                   std::int64_t area) {
  using C = Compute<T>;
  struct Source {
    const T* element;
    C number;
  };
  each_pixel<Source>(y, area, [&](std::int64_t n, std::int64_t o, std::int64_t p, auto& sources) {
    const Pixels<const T> from(x, n, 0);
    grid.each_inside(o, p, [&](std::int64_t i, std::int64_t j, std::int64_t number) {
      sources.push_back({from.at(i, j), static_cast<C>(number)});
    });
    T* to = Pixels<T>(y, n, 0).at(o, p);
    I* number_to = Pixels<I>(at, n, 0).at(o, p);
    for_each_batch<T>(y.shape(1), [&]<class V>(Type<V>, std::int64_t c) {
      V best(-std::numeric_limits<C>::infinity());
      V number(static_cast<C>(kNone<I>));
      // From the last to the first: of equal elements, and of NaNs, the first one is taken.
      for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
        const V v = load<V>(source->element + c);
        const auto better = (v >= best) || is_nan(v);
        best = blend(better, v, best);
        number = blend(better, V(source->number), number);
      }
      store(best, to + c);
      store_integers(number, number_to + c);
    });
  });
}

template <class T, class I>
void max_by_planes(const Array& x, const Array& y, const Array& at, const PoolingGrid& grid,
                   std::int64_t area) {
  using C = Compute<T>;
  each_plane(y, area, [&](std::int64_t n, std::int64_t c) {
    const Pixels<const T> from(x, n, c);
    const Pixels<T> to(y, n, c);
    const Pixels<I> number_to(at, n, c);
    each_position(y, [&](std::int64_t o, std::int64_t p) {
      C best = -std::numeric_limits<C>::infinity();
      I best_number = kNone<I>;
      grid.each_inside(o, p, [&](std::int64_t i, std::int64_t j, std::int64_t number) {
        const C v = static_cast<C>(*from.at(i, j));
        if (v > best || (is_nan(v) && !is_nan(best)) || best_number == kNone<I>) {
          best = v;
          best_number = static_cast<I>(number);
        }
      });
      *to.at(o, p) = T(best);
      *number_to.at(o, p) = best_number;
    });
  });
}

template <class T, class I>
void give_by_pixels(const Array& gy, const Array& at, const Array& gx, const PoolingGrid& grid) {
  using C = Compute<T>;
  struct Source {
    const T* gradient;
    const I* number;
    C here;
  };
  each_pixel<Source>(gx, 2, [&](std::int64_t n, std::int64_t i, std::int64_t j, auto& sources) {
    const Pixels<const T> from(gy, n, 0);
    const Pixels<const I> number_from(at, n, 0);
    grid.each_covering(i, j, [&](std::int64_t o, std::int64_t p, std::int64_t number) {
      sources.push_back({from.at(o, p), number_from.at(o, p), static_cast<C>(number)});
    });
    T* to = Pixels<T>(gx, n, 0).at(i, j);
    for_each_batch<T>(gx.shape(1), [&]<class V>(Type<V>, std::int64_t c) {
      V total(C(0));
      for (const Source& source : sources) {
        const auto chosen = load_integers<V>(source.number + c) == V(source.here);
        total = total + blend(chosen, load<V>(source.gradient + c), V(C(0)));
      }
      store(total, to + c);
    });
  });
}

template <class T, class I>
void give_by_planes(const Array& gy, const Array& at, const Array& gx, const PoolingGrid& grid) {
  using C = Compute<T>;
  each_plane(gx, 1, [&](std::int64_t n, std::int64_t c) {
    const Pixels<const T> from(gy, n, c);
    const Pixels<const I> number_from(at, n, c);
    const Pixels<T> to(gx, n, c);
    each_position(gx, [&](std::int64_t i, std::int64_t j) { *to.at(i, j) = T(C(0)); });
    each_position(gy, [&](std::int64_t o, std::int64_t p) {
      const I number = *number_from.at(o, p);
      if (number == kNone<I>) return;
      const auto [i, j] = grid.element(o, p, number);
      T& total = *to.at(i, j);
      total = T(static_cast<C>(total) + static_cast<C>(*from.at(o, p)));
    });
  });
}

template <class T, class I>
void take_by_planes(const Array& x, const Array& at, const Array& y, const PoolingGrid& grid) {
  each_plane(y, 1, [&](std::int64_t n, std::int64_t c) {
    const Pixels<const T> from(x, n, c);
    const Pixels<const I> number_from(at, n, c);
    const Pixels<T> to(y, n, c);
    each_position(y, [&](std::int64_t o, std::int64_t p) {
      const I number = *number_from.at(o, p);
      *to.at(o, p) = T(Compute<T>(0));
      if (number == kNone<I>) return;
      const auto [i, j] = grid.element(o, p, number);
      *to.at(o, p) = *from.at(i, j);
    });
  });
}

// to = (sum of the elements of `from` that each_source(row, column, visit) names) / area.
template <class T, class EachSource>
void mean_of(const Array& from, const Array& to, std::int64_t area, const EachSource& each_source) {
  using C = Compute<T>;
  if (channels_adjoin(from) && channels_adjoin(to)) {
    each_pixel<const T*>(to, 4, [&](std::int64_t n, std::int64_t i, std::int64_t j, auto& sources) {
      const Pixels<const T> elements(from, n, 0);
      each_source(i, j, [&](std::int64_t row, std::int64_t column, std::int64_t) {
        sources.push_back(elements.at(row, column));
      });
      T* target = Pixels<T>(to, n, 0).at(i, j);
      for_each_batch<T>(to.shape(1), [&]<class V>(Type<V>, std::int64_t c) {
        V total(C(0));
        for (const T* source : sources) total = total + load<V>(source + c);
        store(V(total / V(static_cast<C>(area))), target + c);
      });
    });
    return;
  }
  each_plane(to, 4, [&](std::int64_t n, std::int64_t c) {
    const Pixels<const T> elements(from, n, c);
    const Pixels<T> target(to, n, c);
    each_position(to, [&](std::int64_t i, std::int64_t j) {
      C total = 0;
      each_source(i, j, [&](std::int64_t row, std::int64_t column, std::int64_t) {
        total += static_cast<C>(*elements.at(row, column));
      });
      *target.at(i, j) = T(total / static_cast<C>(area));
    });
  });
}

// Calls visit(Type<T>{}) with the float type of an image.
template <class Visit>
void visit_image(const Array& x, const Visit& visit) {
  visit_dtype(x.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (is_floating<T>) visit(type);
  });
}

// Calls visit(Type<T>{}, Type<I>{}) with the types of an image and of the numbers kept with it.
template <class Visit>
void visit_both(const Array& x, const Array& at, const Visit& visit) {
  visit_image(x, [&](auto type) {
    if (at.dtype() == Dtype::uint8) return visit(type, Type<std::uint8_t>{});
    visit(type, Type<std::int32_t>{});
  });
}

void max_cpu(const Array& x, const Array& y, const Array& at, const PoolingWindow& window) {
  const GilRelease work(y.size() * window.area());
  const PoolingGrid grid(x, y, window);
  visit_both(x, at, [&]<class T, class I>(Type<T>, Type<I>) {
    if (channels_adjoin(x) && channels_adjoin(y) && window.area() <= kExactNumbers) {
      max_by_pixels<T, I>(x, y, at, grid, window.area());
    } else {
      max_by_planes<T, I>(x, y, at, grid, window.area());
    }
  });
}

void take_cpu(const Array& x, const Array& at, const Array& y, const PoolingWindow& window) {
  const GilRelease work(y.size());
  const PoolingGrid grid(x, y, window);
  visit_both(x, at,
             [&]<class T, class I>(Type<T>, Type<I>) { take_by_planes<T, I>(x, at, y, grid); });
}

void give_cpu(const Array& gy, const Array& at, const Array& gx, const PoolingWindow& window) {
  const GilRelease work(gx.size());
  const PoolingGrid grid(gx, gy, window);
  visit_both(gx, at, [&]<class T, class I>(Type<T>, Type<I>) {
    // Of one pixel the channels adjoin in any layout: the larger image must be asked, too.
    if (!channels_adjoin(at) || !channels_adjoin(gx) || window.area() > kExactNumbers) {
      return give_by_planes<T, I>(gy, at, gx, grid);
    }
    if (channels_adjoin(gy)) return give_by_pixels<T, I>(gy, at, gx, grid);
    const Array reordered = empty_like(at, gy.dtype());
    copy(gy, reordered);
    give_by_pixels<T, I>(reordered, at, gx, grid);
  });
}

void average_cpu(const Array& x, const Array& y, const PoolingWindow& window) {
  const GilRelease work(y.size() * window.area());
  const PoolingGrid grid(x, y, window);
  visit_image(x, [&]<class T>(Type<T>) {
    mean_of<T>(x, y, window.area(), [&](std::int64_t o, std::int64_t p, const auto& visit) {
      grid.each_inside(o, p, visit);
    });
  });
}

void average_grad_cpu(const Array& gy, const Array& gx, const PoolingWindow& window) {
  const GilRelease work(gx.size());
  const PoolingGrid grid(gx, gy, window);
  visit_image(gx, [&]<class T>(Type<T>) {
    mean_of<T>(gy, gx, window.area(), [&](std::int64_t i, std::int64_t j, const auto& visit) {
      grid.each_covering(i, j, visit);
    });
  });
}

[[maybe_unused]] const bool registered =
    pooling_kernels.add(0, {max_cpu, take_cpu, give_cpu, average_cpu, average_grad_cpu});

}  // namespace
}  // namespace renga
