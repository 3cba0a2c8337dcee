// The largest of the points in cells of regions, channel by channel.
#include <cmath>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/sampling/cpu/kernels.h"

namespace renga::sampling_cpu {
namespace {

// The pixels around a point of one axis: the first, and the second's share, which may be 0.
template <class C>
struct Between {
  std::int64_t lower;
  C fraction;
};

template <class C>
Between<C> between(const CellPoints& points, std::int64_t i) {
  const auto k = static_cast<std::size_t>(i);
  return {points.lower[k], static_cast<C>(points.fraction[k])};
}

std::int64_t count_of(const CellPoints& points) {
  return static_cast<std::int64_t>(points.lower.size());
}

// Calls visit(element of the plane, weight) for the pixels of a point that have weights.
template <class C, class Visit>
void for_each_pixel(Between<C> row, Between<C> column, std::int64_t width, const Visit& visit) {
  for (int down = 0; down < (row.fraction == 0 ? 1 : 2); ++down) {
    const C of_row = down == 0 ? 1 - row.fraction : row.fraction;
    for (int across = 0; across < (column.fraction == 0 ? 1 : 2); ++across) {
      const C of_column = across == 0 ? 1 - column.fraction : column.fraction;
      visit((row.lower + down) * width + column.lower + across, of_row * of_column);
    }
  }
}

template <class C>
C value_of(const C* plane, Between<C> row, Between<C> column, std::int64_t width) {
  C value = 0;
  for_each_pixel(row, column, width, [&](std::int64_t at, C w) { value += w * plane[at]; });
  return value;
}

// Calls plane(region, its number, channel) for each; threads have channels of their own.
template <class Plane>
void for_each_plane(const Regions& regions, std::int64_t channels, std::int64_t cost,
                    const Plane& plane) {
  parallel_for(channels, cost * static_cast<std::int64_t>(regions.size()),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::size_t r = 0; r < regions.size(); ++r) {
                   for (std::int64_t c = begin; c < end; ++c) {
                     plane(regions[r], static_cast<std::int64_t>(r), c);
                   }
                 }
               });
}

// Calls visit(cell, row, column) for the cells with a found point of a channel of a region.
template <class C, class Visit>
void for_each_found(const Region& region, const std::int32_t* found, std::int64_t cells,
                    const Visit& visit) {
  const std::int64_t across = std::max<std::int64_t>(count_of(region.columns), 1);
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    if (found[cell] < 0) continue;
    visit(cell, between<C>(region.rows, found[cell] / across),
          between<C>(region.columns, found[cell] % across));
  }
}

// The largest value in a plane of the points of a cell; the first of NaN or of equal ones.
template <bool are_pixels, class C>
void largest_in_cell(const Region& region, const C* plane, std::int64_t width, Run rows,
                     Run columns, C& best, std::int32_t& found) {
  const std::int64_t across = count_of(region.columns);
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    const Between<C> row = between<C>(region.rows, i);
    const C* const line = plane + row.lower * width;
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      C value;
      if constexpr (are_pixels) {
        value = line[region.columns.lower[static_cast<std::size_t>(j)]];
      } else {
        value = value_of(plane, row, between<C>(region.columns, j), width);
      }
      if (found < 0 || value > best || (std::isnan(value) && !std::isnan(best))) {
        best = value;
        found = static_cast<std::int32_t>(i * across + j);
      }
    }
  }
}

bool are_pixels(const CellPoints& points) {
  return std::ranges::all_of(points.fraction, [](double f) { return f == 0; });
}

template <class C>
void largest_of(const Array& x, const Regions& regions, C outside, const Array& y,
                const Array& found) {
  const std::int64_t channels = x.shape(1), h = x.shape(2), w = x.shape(3);
  const std::int64_t cells = y.shape(2) * y.shape(3);
  for_each_plane(
      regions, channels, 16 * cells, [&](const Region& region, std::int64_t r, std::int64_t c) {
        const C* const plane = x.as<C>() + (region.image * channels + c) * h * w;
        const bool is_plain = are_pixels(region.rows) && are_pixels(region.columns);
        C* best = y.as<C>() + (r * channels + c) * cells;
        std::int32_t* at = found.as<std::int32_t>() + (r * channels + c) * cells;
        for (const Run& rows : region.rows.cells) {
          for (const Run& columns : region.columns.cells) {
            *at = -1;
            *best = outside;
            (is_plain ? largest_in_cell<true, C>
                      : largest_in_cell<false, C>)(region, plane, w, rows, columns, *best, *at);
            ++at;
            ++best;
          }
        }
      });
}

}  // namespace

void largest(const Array& x, const Regions& regions, double outside, const Array& y,
             const Array& found) {
  const GilRelease work(y.size() * 4);
  visit_wide(x.dtype(), [&]<class C>(Type<C>) {
    largest_of<C>(x, regions, static_cast<C>(outside), y, found);
  });
}

void gather(const Array& x, const Regions& regions, const Array& found, const Array& y) {
  const GilRelease work(y.size());
  const std::int64_t channels = x.shape(1), h = x.shape(2), w = x.shape(3);
  const std::int64_t cells = y.shape(2) * y.shape(3);
  fill(y, 0);
  visit_wide(x.dtype(), [&]<class C>(Type<C>) {
    for_each_plane(regions, channels, cells,
                   [&](const Region& region, std::int64_t r, std::int64_t c) {
                     const C* const plane = x.as<C>() + (region.image * channels + c) * h * w;
                     const std::int64_t first = (r * channels + c) * cells;
                     for_each_found<C>(region, found.as<std::int32_t>() + first, cells,
                                       [&](std::int64_t cell, Between<C> row, Between<C> column) {
                                         y.as<C>()[first + cell] = value_of(plane, row, column, w);
                                       });
                   });
  });
}

void spread(const Array& gy, const Regions& regions, const Array& found, const Array& gx) {
  const GilRelease work(gy.size());
  const std::int64_t channels = gx.shape(1), h = gx.shape(2), w = gx.shape(3);
  const std::int64_t cells = gy.shape(2) * gy.shape(3);
  visit_wide(gx.dtype(), [&]<class C>(Type<C>) {
    for_each_plane(
        regions, channels, cells, [&](const Region& region, std::int64_t r, std::int64_t c) {
          C* const plane = gx.as<C>() + (region.image * channels + c) * h * w;
          const std::int64_t first = (r * channels + c) * cells;
          for_each_found<C>(region, found.as<std::int32_t>() + first, cells,
                            [&](std::int64_t cell, Between<C> row, Between<C> column) {
                              const C g = gy.as<C>()[first + cell];
                              for_each_pixel(row, column, w, [&](std::int64_t at, C weight) {
                                plane[at] += weight * g;
                              });
                            });
        });
  });
}

}  // namespace renga::sampling_cpu
