#include "ops/indexing/indexing.h"

#include <algorithm>
#include <cstring>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "simd/vector.h"

namespace renga {
namespace {

// An id that is ignored, or one that no row has.
std::int64_t ignored_id(std::optional<std::int64_t> ignore) { return ignore.value_or(-1); }

// Copies the rows of one p with numbers from `begin` to `end`. T is an integer of the elements'
// size.
template <class T>
void gather_elements(const T* table, const std::int64_t* ids, std::int64_t ignored, T* y,
                     std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = ids[i] == ignored ? T(0) : table[ids[i]];
}

void gather_long_rows(const std::byte* table, const std::int64_t* ids, std::int64_t ignored,
                      std::size_t bytes, std::byte* y, std::int64_t begin, std::int64_t end) {
  const auto step = static_cast<std::int64_t>(bytes);
  for (std::int64_t i = begin; i < end; ++i) {
    if (ids[i] == ignored) {
      std::memset(y + i * step, 0, bytes);
    } else {
      std::memcpy(y + i * step, table + ids[i] * step, bytes);
    }
  }
}

void gather_rows_cpu(const Array& rows, const Array& ids, std::optional<std::int64_t> ignore,
                     const Array& y) {
  if (y.size() == 0) return;
  const GilRelease work(y.size());
  const Array table = contiguous(rows);
  const std::int64_t n = table.shape(1), width = table.shape(2), count = ids.size();
  const std::int64_t bytes = width * table.itemsize(), ignored = ignored_id(ignore);
  const auto* const id = ids.as<std::int64_t>();
  visit_bits(table.itemsize(), [&]<class T>(Type<T>) {
    parallel_for(
        table.shape(0) * count, divide_up(bytes, 4), [&](std::int64_t at, std::int64_t end) {
          while (at < end) {
            const std::int64_t p = at / count, begin = at % count;
            const std::int64_t stop = std::min(count, begin + end - at);
            std::byte* const to = y.data() + p * count * bytes;
            const std::byte* const from = table.data() + p * n * bytes;
            if (width == 1) {
              gather_elements(reinterpret_cast<const T*>(from), id, ignored,
                              reinterpret_cast<T*>(to), begin, stop);
            } else {
              gather_long_rows(from, id, ignored, static_cast<std::size_t>(bytes), to, begin, stop);
            }
            at += stop - begin;
          }
        });
  });
}

template <class T>
void add(const T& from, T& to) {
  to = T(static_cast<Compute<T>>(to) + static_cast<Compute<T>>(from));
}

// Adds n adjoining 16-bit floats, all in vectors, so that a sum does not depend on its position.
template <class Target, class T>
[[gnu::always_inline]] inline void add_halves(const T* from, T* to, std::int64_t n) {
  using V = simd::Vector<Target, float>;
  const auto add_vector = [](const T* x, T* y) __attribute__((always_inline)) {
    V::store(V(V::load(y)) + V(V::load(x)), y);
  };
  std::int64_t i = 0;
  for (; i + V::width <= n; i += V::width) add_vector(from + i, to + i);
  if (i == n) return;
  T x[V::width] = {}, y[V::width] = {};
  std::copy_n(from + i, n - i, x);
  std::copy_n(to + i, n - i, y);
  add_vector(x, y);
  std::copy_n(y, n - i, to + i);
}

// Adds elements from `begin` to `end` of each of `count` rows.
template <class T>
void add_rows(const T* __restrict rows, const std::int64_t* ids, std::int64_t count,
              std::int64_t ignored, T* __restrict table, std::int64_t width, std::int64_t begin,
              std::int64_t end) {
  if (width == 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (ids[i] != ignored) add(rows[i], table[ids[i]]);
    }
    return;
  }
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (ids[i] == ignored) continue;
      const T* const __restrict from = rows + i * width + begin;
      T* const __restrict to = table + ids[i] * width + begin;
      if constexpr (is_half<T>) {
        add_halves<decltype(target)>(from, to, end - begin);
      } else {
        for (std::int64_t j = 0; j < end - begin; ++j) add(from[j], to[j]);
      }
    }
  });
}

void scatter_add_rows_cpu(const Array& gradients, const Array& ids,
                          std::optional<std::int64_t> ignore, const Array& table) {
  if (gradients.size() == 0) return;
  const GilRelease work(gradients.size());
  const Array rows = contiguous(gradients);
  const std::int64_t n = table.shape(1), width = table.shape(2), count = ids.size();
  const std::int64_t ignored = ignored_id(ignore);
  visit_dtype(table.dtype(), [&]<class T>(Type<T>) {
    const auto add_part = [&](std::int64_t p, std::int64_t begin, std::int64_t end) {
      add_rows<T>(rows.as<T>() + p * count * width, ids.as<std::int64_t>(), count, ignored,
                  table.as<T>() + p * n * width, width, begin, end);
    };
    // Threads split tables, or the columns of one: several rows may be added to the same row.
    if (table.shape(0) == 1) {
      parallel_for(width, count,
                   [&](std::int64_t begin, std::int64_t end) { add_part(0, begin, end); });
    } else {
      parallel_for(table.shape(0), count * width, [&](std::int64_t p, std::int64_t end) {
        for (; p < end; ++p) add_part(p, 0, width);
      });
    }
  });
}

template <class Move>
void for_each_item(const Array& x, const Array& t, const Array& y, const Move& move) {
  for (std::int64_t i = 0; i < x.shape(0); ++i) {
    std::byte* in_x = x.data() + i * x.strides()[0] + t.as<std::int64_t>()[i] * x.strides()[1];
    move(in_x, y.data() + i * y.strides()[0], static_cast<std::size_t>(x.itemsize()));
  }
}

void gather_items_cpu(const Array& x, const Array& t, const Array& y) {
  for_each_item(x, t, y, [](const std::byte* in_x, std::byte* in_y, std::size_t n) {
    std::memcpy(in_y, in_x, n);
  });
}

void scatter_items_cpu(const Array& y, const Array& t, const Array& x) {
  for_each_item(x, t, y, [](std::byte* in_x, const std::byte* in_y, std::size_t n) {
    std::memcpy(in_x, in_y, n);
  });
}

void add_products_cpu(const Array& data, const Array& x, const Array& sources, const Array& targets,
                      const Array& y) {
  const GilRelease work(data.size() * y.shape(1));
  const std::int64_t width = x.shape(1), count = data.size();
  const auto *from = sources.as<std::int64_t>(), *to = targets.as<std::int64_t>();
  visit_wide(y.dtype(), [&]<class T>(Type<T>) {
    // Threads split columns: several entries may be added to the same row.
    parallel_for(width, 2 * count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (from[i] < 0 || to[i] < 0) continue;
        const T factor = data.as<T>()[i];
        const T* const __restrict row = x.as<T>() + from[i] * width;
        T* const __restrict sum = y.as<T>() + to[i] * width;
        for (std::int64_t j = begin; j < end; ++j) sum[j] += factor * row[j];
      }
    });
  });
}

void dot_rows_cpu(const Array& a, const Array& b, const Array& sources, const Array& targets,
                  const Array& g) {
  const GilRelease work(g.size() * a.shape(1));
  const std::int64_t width = a.shape(1);
  const auto *of_a = sources.as<std::int64_t>(), *of_b = targets.as<std::int64_t>();
  visit_wide(g.dtype(), [&]<class T>(Type<T>) {
    parallel_for(g.size(), 2 * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        T sum = 0;
        if (of_a[i] >= 0 && of_b[i] >= 0) {
          const T* const x = a.as<T>() + of_a[i] * width;
          const T* const y = b.as<T>() + of_b[i] * width;
#pragma omp simd reduction(+ : sum)
          for (std::int64_t j = 0; j < width; ++j) sum += x[j] * y[j];
        }
        g.as<T>()[i] = sum;
      }
    });
  });
}

[[maybe_unused]] const bool registered =
    indexing_kernels.add(0, {gather_rows_cpu, scatter_add_rows_cpu, gather_items_cpu,
                             scatter_items_cpu, nullptr, add_products_cpu, dot_rows_cpu});

}  // namespace
}  // namespace renga
