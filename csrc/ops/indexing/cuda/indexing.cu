#include "devices/cuda/index_fault.h"
#include "ops/indexing/indexing.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

struct Ids {
  const std::int64_t* ids;
  std::int64_t count;
  bool has_ignored;
  std::int64_t ignored;
  __device__ bool is_ignored(std::int64_t id) const { return has_ignored && id == ignored; }
};

Ids ids_of(const Array& ids, std::optional<std::int64_t> ignore) {
  return {ids.as<const std::int64_t>(), ids.size(), ignore.has_value(), ignore.value_or(0)};
}

// Tables of n rows each, one after the other, of which the same rows are named.
struct Tables {
  std::int64_t count, n, width;
};

Tables tables_of(const Array& table) { return {table.shape(0), table.shape(1), table.shape(2)}; }

// T is an integer of the elements' size: they are only copied.
template <class T>
__global__ void gather_rows(Ids ids, const T* table, Tables tables, T* y) {
  const std::int64_t size = tables.count * ids.count * tables.width;
  for (std::int64_t i = cuda::thread_index(); i < size; i += cuda::thread_count()) {
    const std::int64_t row = i / tables.width;
    const std::int64_t id = ids.ids[row % ids.count];
    const std::int64_t from = row / ids.count * tables.n + id;
    y[i] = ids.is_ignored(id) ? T(0) : table[from * tables.width + i % tables.width];
  }
}

// Whether a row is the first one with its id, and the next one with it, `count` for none.
struct SameIds {
  std::int64_t* is_first;
  std::int64_t* next;
};

__global__ void find_same_ids(Ids ids, SameIds same) {
  for (std::int64_t k = cuda::thread_index(); k < ids.count; k += cuda::thread_count()) {
    const std::int64_t id = ids.ids[k];
    std::int64_t before = k - 1, next = k + 1;
    while (before >= 0 && ids.ids[before] != id) --before;
    while (next < ids.count && ids.ids[next] != id) ++next;
    same.is_first[k] = before < 0 && !ids.is_ignored(id) ? 1 : 0;
    same.next[k] = next;
  }
}

// The first of several rows with one id adds all of them, in their order.
template <class T>
__global__ void add_rows(Ids ids, SameIds same, const T* rows, Tables tables, T* table) {
  using C = Compute<T>;
  const std::int64_t width = tables.width, size = tables.count * ids.count * width;
  for (std::int64_t k = cuda::thread_index(); k < size; k += cuda::thread_count()) {
    const std::int64_t p = k / (ids.count * width), first = k / width % ids.count;
    const std::int64_t column = k % width;
    if (same.is_first[first] == 0) continue;
    T& total = table[(p * tables.n + ids.ids[first]) * width + column];
    T sum = total;
    for (std::int64_t i = first; i < ids.count; i = same.next[i]) {
      sum = T(static_cast<C>(sum) + static_cast<C>(rows[(p * ids.count + i) * width + column]));
    }
    total = sum;
  }
}

// Copies elements (i, t[i]) of x, whose strides are in bytes, to y[i], or in reverse y[i] to x.
template <class T>
__global__ void move_items(std::byte* x, std::int64_t row_step, std::int64_t column_step,
                           const std::int64_t* t, std::byte* y, std::int64_t y_step, std::int64_t n,
                           bool is_reverse) {
  for (std::int64_t i = cuda::thread_index(); i < n; i += cuda::thread_count()) {
    T& in_x = *reinterpret_cast<T*>(x + i * row_step + t[i] * column_step);
    T& in_y = *reinterpret_cast<T*>(y + i * y_step);
    (is_reverse ? in_x : in_y) = is_reverse ? in_y : in_x;
  }
}

void gather_rows_cuda(const Array& rows, const Array& ids, std::optional<std::int64_t> ignore,
                      const Array& y) {
  if (y.size() == 0) return;
  const Array table = contiguous(rows);
  visit_bits(y.itemsize(), [&]<class T>(Type<T>) {
    cuda::launch(y.device(), cuda::grid_for(y.size()), gather_rows<T>, ids_of(ids, ignore),
                 table.as<const T>(), tables_of(table), y.as<T>());
  });
}

void scatter_add_rows_cuda(const Array& gradients, const Array& ids,
                           std::optional<std::int64_t> ignore, const Array& table) {
  if (gradients.size() == 0) return;
  const Array rows = contiguous(gradients);
  const Array links = empty({2, ids.size()}, Dtype::int64, table.device());
  auto* const link = links.as<std::int64_t>();
  const SameIds same{link, link + ids.size()};
  cuda::launch(table.device(), cuda::grid_for(ids.size()), find_same_ids, ids_of(ids, ignore),
               same);
  visit_dtype(table.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(table.device(), cuda::grid_for(rows.size()), add_rows<T>, ids_of(ids, ignore),
                   same, rows.as<const T>(), tables_of(table), table.as<T>());
    }
  });
}

void move(const Array& x, const Array& t, const Array& y, bool is_reverse) {
  if (t.size() == 0) return;
  visit_bits(x.itemsize(), [&]<class T>(Type<T>) {
    cuda::launch(x.device(), cuda::grid_for(t.size()), move_items<T>, x.data(), x.strides()[0],
                 x.strides()[1], t.as<const std::int64_t>(), y.data(), y.strides()[0], t.size(),
                 is_reverse);
  });
}

__global__ void check(const std::int64_t* indices, std::int64_t count, std::int64_t n,
                      bool has_ignored, std::int64_t ignored, const char* op, const char* name,
                      cuda::IndexFault* record, std::int64_t* checked) {
  for (std::int64_t k = cuda::thread_index(); k < count; k += cuda::thread_count()) {
    const std::int64_t i = indices[k];
    const bool valid = (i >= 0 && i < n) || (has_ignored && i == ignored);
    checked[k] = valid ? i : 0;
    if (valid || atomicCAS(&record->found, 0, 1) != 0) continue;
    record->op = op;
    record->name = name;
    record->n = n;
    record->value = i;
  }
}

void check_cuda(const Array& indices, const IndexRange& range, const Array& checked) {
  if (indices.size() == 0) return;
  const int device = indices.device().index;
  cuda::throw_index_fault(device);
  cuda::launch(indices.device(), cuda::grid_for(indices.size()), check,
               indices.as<const std::int64_t>(), indices.size(), range.n, range.ignored.has_value(),
               range.ignored.value_or(0), range.op, range.name, cuda::index_fault(device),
               checked.as<std::int64_t>());
}

void gather_items_cuda(const Array& x, const Array& t, const Array& y) { move(x, t, y, false); }
void scatter_items_cuda(const Array& y, const Array& t, const Array& x) { move(x, t, y, true); }

[[maybe_unused]] const bool registered = indexing_kernels.add(
    cuda::number(),
    {gather_rows_cuda, scatter_add_rows_cuda, gather_items_cuda, scatter_items_cuda, check_cuda});

}  // namespace
}  // namespace renga
