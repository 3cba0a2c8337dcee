// Values at points and their transposes: for some points at once, their corners and weights, then
// channel by channel, or all channels of a point where these are contiguous.
#include "ops/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/sampling/cpu/kernels.h"
#include "ops/sampling/image_layout.h"

namespace renga::sampling_cpu {
namespace {

constexpr int kBlock = 64;

// Some points of one image: for each the elements of the pixels above and below, left and right,
// with their weights, or -1 and 0 for those outside of the image.
template <class C>
struct Corners {
  static constexpr int kCount = 4;

  // `pixel_step` and `row_step` are elements from pixel to pixel and from row to row.
  void find(const C* rows, const C* columns, int n, Derivative order, std::int64_t h,
            std::int64_t w, std::int64_t row_step, std::int64_t pixel_step) {
    count = n;
    all_inside = true;
    for (int i = 0; i < n; ++i) {
      // Points more than a pixel outside have no corner inside, also those at infinity.
      const C row = std::clamp(rows[i], C(-2), static_cast<C>(h + 1));
      const C column = std::clamp(columns[i], C(-2), static_cast<C>(w + 1));
      const bool is_number = row == row && column == column;
      const C top = std::floor(row), left = std::floor(column);
      down[i] = row - top;
      across[i] = column - left;
      const auto r = is_number ? static_cast<std::int64_t>(top) : -2;
      const auto c = is_number ? static_cast<std::int64_t>(left) : -2;
      for (int k = 0; k < kCount; ++k) {
        const std::int64_t y = r + k / 2, x = c + k % 2;
        const bool is_inside = y >= 0 && y < h && x >= 0 && x < w;
        at[k][i] = is_inside ? y * row_step + x * pixel_step : -1;
        all_inside &= is_inside;
        weight[i][k] = factor(order.rows, k / 2, down[i]) * factor(order.columns, k % 2, across[i]);
      }
    }
  }

  // The value of a pixel, which is 0 outside.
  template <bool inside>
  [[gnu::always_inline]] static C value(const C* image, std::int64_t at) {
    return inside || at >= 0 ? image[at] : C(0);
  }

  // Whether the corners of `n` points from point i on are all inside.
  [[gnu::always_inline]] bool are_inside(int i, int n) const {
    std::int64_t least = 0;
    for (int k = i; k < i + n; ++k) least |= at[0][k] | at[kCount - 1][k];
    return least >= 0;
  }

  std::int64_t at[kCount][kBlock];
  C weight[kBlock][kCount];
  C down[kBlock], across[kBlock];  // the fractions of a pixel
  int count;
  bool all_inside;

 private:
  // Returns the factor of interpolation, or of its derivative.
  static C factor(int order, int is_second, C fraction) {
    if (order == 1) return is_second ? C(1) : C(-1);
    return is_second ? fraction : 1 - fraction;
  }
};

// Calls body(n, first channel, last channel, first point, corners) for blocks of the points of all
// images. Threads have channels of their own.
template <class C, class Body>
void for_each_block(const Array& x, const Array& rows, const Array& columns, Derivative order,
                    const Body& body) {
  const std::int64_t channels = x.shape(1), points = rows.shape(1);
  const Image<C> image(x);
  parallel_for(x.shape(0) * channels, 8 * points, [&](std::int64_t begin, std::int64_t end) {
    Corners<C> corners;
    while (begin < end) {
      const std::int64_t n = begin / channels, c = begin % channels;
      const std::int64_t stop = std::min(channels, c + end - begin);
      for (std::int64_t p = 0; p < points; p += kBlock) {
        const auto count = static_cast<int>(std::min<std::int64_t>(kBlock, points - p));
        corners.find(rows.as<C>() + n * points + p, columns.as<C>() + n * points + p, count, order,
                     x.shape(2), x.shape(3), image.row_step, image.pixel_step);
        body(n, c, stop, p, corners);
      }
      begin += stop - c;
    }
  });
}

// Vectors of a point's corners, and of its corners above or below.
template <class C>
using Four [[gnu::vector_size(4 * sizeof(C))]] = C;
template <class C>
using Two [[gnu::vector_size(2 * sizeof(C))]] = C;

template <class V, class C>
[[gnu::always_inline]] inline V load(const C* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// The sums of neighbours in a and in b.
template <class V>
[[gnu::always_inline]] inline V add_neighbours(const V& a, const V& b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

// Sums weights times pixels, for the points of a block in one channel of adjoining pixels.
template <class C>
void sample_plane(const Corners<C>& corners, const C* image, C* y) {
  const auto terms = [&](int i) __attribute__((always_inline)) {
    const auto above = load<Two<C>>(image + corners.at[0][i]);
    const auto below = load<Two<C>>(image + corners.at[2][i]);
    return __builtin_shufflevector(above, below, 0, 1, 2, 3) * load<Four<C>>(corners.weight[i]);
  };
  int i = 0;
  while (i < corners.count) {
    if (i + 4 <= corners.count && corners.are_inside(i, 4)) {
      const Four<C> sums = add_neighbours(add_neighbours(terms(i), terms(i + 1)),
                                          add_neighbours(terms(i + 2), terms(i + 3)));
      std::memcpy(y + i, &sums, sizeof sums);
      i += 4;
      continue;
    }
    const auto term = [&](int k) {
      return corners.weight[i][k] * Corners<C>::template value<false>(image, corners.at[k][i]);
    };
    y[i] = (term(0) + term(1)) + (term(2) + term(3));
    ++i;
  }
}

// Sums weights times pixels for all channels of each point.
template <class C>
void sample_pixels(const Corners<C>& corners, const C* image, std::int64_t channels,
                   std::int64_t step, C* y) {
  for (int i = 0; i < corners.count; ++i, y += step) {
    const C zero = 0;
    const C* from[4];
    std::int64_t stride[4];
    for (int k = 0; k < 4; ++k) {
      const bool is_inside = corners.at[k][i] >= 0;
      from[k] = is_inside ? image + corners.at[k][i] : &zero;
      stride[k] = is_inside;
    }
    const auto [w0, w1, w2, w3] = corners.weight[i];
    if (stride[0] & stride[1] & stride[2] & stride[3]) {
      const C *a = from[0], *b = from[1], *c = from[2], *d = from[3];
#pragma omp simd
      for (std::int64_t j = 0; j < channels; ++j) {
        y[j] = (w0 * a[j] + w1 * b[j]) + (w2 * c[j] + w3 * d[j]);
      }
    } else {
      for (std::int64_t j = 0; j < channels; ++j) {
        y[j] = (w0 * from[0][j * stride[0]] + w1 * from[1][j * stride[1]]) +
               (w2 * from[2][j * stride[2]] + w3 * from[3][j * stride[3]]);
      }
    }
  }
}

template <class C>
void sample(const Array& x, const Array& rows, const Array& columns, Derivative order,
            const Array& y) {
  const Image<C> from(x), to(y);
  const bool is_last = has_channels_last(x);
  for_each_block<C>(x, rows, columns, order,
                    [&](std::int64_t n, std::int64_t first, std::int64_t last, std::int64_t p,
                        const Corners<C>& corners) {
                      if (is_last) {
                        return sample_pixels(corners, from.plane(n, first), last - first,
                                             to.pixel_step, to.plane(n, first) + p * to.pixel_step);
                      }
                      for (std::int64_t c = first; c < last; ++c) {
                        sample_plane(corners, from.plane(n, c), to.plane(n, c) + p);
                      }
                    });
}

// The transpose of sample_plane; points in their order, so that sums do not depend on threads.
template <bool inside, class C>
void scatter_plane(const Corners<C>& corners, const C* gy, std::int64_t step, C* image) {
  for (int i = 0; i < corners.count; ++i) {
    for (int k = 0; k < 4; ++k) {
      const std::int64_t at = corners.at[k][i];
      if (inside || at >= 0) image[at] += corners.weight[i][k] * gy[i * step];
    }
  }
}

// The transpose of sample_pixels.
template <class C>
void scatter_pixels(const Corners<C>& corners, const C* gy, std::int64_t step,
                    std::int64_t channels, C* image) {
  for (int i = 0; i < corners.count; ++i, gy += step) {
    for (int k = 0; k < 4; ++k) {
      if (corners.at[k][i] < 0) continue;
      C* const __restrict pixel = image + corners.at[k][i];
      const C* const __restrict g = gy;
      const C weight = corners.weight[i][k];
      for (std::int64_t j = 0; j < channels; ++j) pixel[j] += weight * g[j];
    }
  }
}

template <class C>
void scatter(const Array& gy, const Array& rows, const Array& columns, Derivative order,
             const Array& gx) {
  const Image<C> from(gy), to(gx);
  const bool is_last = has_channels_last(gx);
  for_each_block<C>(gx, rows, columns, order,
                    [&](std::int64_t n, std::int64_t first, std::int64_t last, std::int64_t p,
                        const Corners<C>& corners) {
                      const std::int64_t offset = p * from.pixel_step;
                      if (is_last) {
                        return scatter_pixels(corners, from.plane(n, first) + offset,
                                              from.pixel_step, last - first, to.plane(n, first));
                      }
                      for (std::int64_t c = first; c < last; ++c) {
                        (corners.all_inside
                             ? scatter_plane<true, C>
                             : scatter_plane<false, C>)(corners, from.plane(n, c) + offset,
                                                        from.pixel_step, to.plane(n, c));
                      }
                    });
}

// Adds gy times the derivatives of a block's values in one channel; `step` is from point to point
// of gy.
template <bool inside, class C>
void move_plane(const Corners<C>& corners, const C* image, const C* gy, std::int64_t step,
                C* g_rows, C* g_columns) {
  for (int i = 0; i < corners.count; ++i) {
    const auto value = [&](int k) {
      return Corners<C>::template value<inside>(image, corners.at[k][i]);
    };
    const C down = corners.down[i], across = corners.across[i], g = gy[i * step];
    const C a = value(0), b = value(1), c = value(2), d = value(3);
    g_rows[i] += g * ((1 - across) * (c - a) + across * (d - b));
    g_columns[i] += g * ((1 - down) * (b - a) + down * (d - c));
  }
}

template <class C>
void move_points(const Array& x, const Array& rows, const Array& columns, const Array& gy,
                 const Array& g_rows, const Array& g_columns) {
  const std::int64_t channels = x.shape(1), points = rows.shape(1);
  const std::int64_t blocks = divide_up(points, std::int64_t{kBlock});
  const Image<C> image(x), from(gy);
  parallel_for(
      x.shape(0) * blocks, 8 * kBlock * channels, [&](std::int64_t begin, std::int64_t end) {
        Corners<C> corners;
        for (std::int64_t k = begin; k < end; ++k) {
          const std::int64_t n = k / blocks, p = k % blocks * kBlock, first = n * points + p;
          corners.find(rows.as<C>() + first, columns.as<C>() + first,
                       static_cast<int>(std::min<std::int64_t>(kBlock, points - p)), {}, x.shape(2),
                       x.shape(3), image.row_step, image.pixel_step);
          C down[kBlock] = {}, across[kBlock] = {};
          for (std::int64_t c = 0; c < channels; ++c) {
            (corners.all_inside ? move_plane<true, C>
                                : move_plane<false, C>)(corners, image.plane(n, c),
                                                        from.plane(n, c) + p * from.pixel_step,
                                                        from.pixel_step, down, across);
          }
          std::copy_n(down, corners.count, g_rows.as<C>() + first);
          std::copy_n(across, corners.count, g_columns.as<C>() + first);
        }
      });
}

[[maybe_unused]] const bool registered = sampling_kernels.add(
    0,
    {resample,
     [](const Array& x, const Array& rows, const Array& columns, Derivative order, const Array& y) {
       const GilRelease work(y.size());
       visit_wide(x.dtype(), [&]<class C>(Type<C>) { sample<C>(x, rows, columns, order, y); });
     },
     [](const Array& gy, const Array& rows, const Array& columns, Derivative order,
        const Array& gx) {
       const GilRelease work(gy.size());
       visit_wide(gx.dtype(), [&]<class C>(Type<C>) { scatter<C>(gy, rows, columns, order, gx); });
     },
     [](const Array& x, const Array& rows, const Array& columns, const Array& gy,
        const Array& g_rows, const Array& g_columns) {
       const GilRelease work(gy.size());
       visit_wide(x.dtype(), [&]<class C>(Type<C>) {
         move_points<C>(x, rows, columns, gy, g_rows, g_columns);
       });
     },
     largest, gather, spread});

}  // namespace
}  // namespace renga::sampling_cpu
