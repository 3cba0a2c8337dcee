#include "ops/indexing/indexing.h"

#include <cstring>

#include "devices/gil_release.h"
#include "devices/parallel.h"

namespace renga {
namespace {

void gather_rows_cpu(const Array& rows, const Array& ids, std::optional<std::int64_t> ignore,
                     const Array& y) {
  const GilRelease work(y.size());
  const Array table = contiguous(rows);
  const std::int64_t bytes = table.shape(1) * table.itemsize();
  parallel_for(ids.size(), bytes / 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t id = ids.as<std::int64_t>()[i];
      std::byte* to = y.data() + i * bytes;
      if (ignore && id == *ignore) {
        std::memset(to, 0, static_cast<std::size_t>(bytes));
      } else {
        std::memcpy(to, table.data() + id * bytes, static_cast<std::size_t>(bytes));
      }
    }
  });
}

template <class T>
void add_rows(const Array& rows, const Array& ids, std::optional<std::int64_t> ignore, T* table,
              std::int64_t width) {
  // Threads split the columns: several rows may be added to the same row.
  parallel_for(width, ids.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < ids.size(); ++i) {
      const std::int64_t id = ids.as<std::int64_t>()[i];
      if (ignore && id == *ignore) continue;
      const T* from = rows.as<T>() + i * width;
      T* to = table + id * width;
      for (std::int64_t j = begin; j < end; ++j) {
        to[j] = T(static_cast<Compute<T>>(to[j]) + static_cast<Compute<T>>(from[j]));
      }
    }
  });
}

void scatter_add_rows_cpu(const Array& gradients, const Array& ids,
                          std::optional<std::int64_t> ignore, const Array& table) {
  const GilRelease work(gradients.size());
  const Array rows = contiguous(gradients);
  visit_dtype(table.dtype(), [&]<class T>(Type<T>) {
    add_rows<T>(rows, ids, ignore, table.as<T>(), table.shape(1));
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

[[maybe_unused]] const bool registered = indexing_kernels.add(
    0, {gather_rows_cpu, scatter_add_rows_cpu, gather_items_cpu, scatter_items_cpu});

}  // namespace
}  // namespace renga
