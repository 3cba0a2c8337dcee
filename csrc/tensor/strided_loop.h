// Iterates over several arrays of one shape. Axes are sorted into memory order and coalesced where
// every operand allows it, so that most loops become a single run over contiguous elements.
#pragma once

#include <array>
#include <cstdint>

#include "devices/parallel.h"
#include "tensor/array.h"
#include "tensor/views.h"

namespace renga {

// The merged loop over N operands: extents and byte strides from the outermost axis to the
// innermost.
template <int N>
struct StridedLoop {
  Shape extents;
  std::array<Strides, N> strides;
  std::array<std::byte*, N> data;

  std::int64_t size() const { return extents.product(); }
  std::int64_t run() const { return extents.back(); }
};

namespace detail {

template <int N>
void append_axis(StridedLoop<N>& loop, std::int64_t extent,
                 const std::array<std::int64_t, N>& step) {
  bool merge = !loop.extents.empty();
  for (int k = 0; merge && k < N; ++k) merge = loop.strides[k].back() == step[k] * extent;
  if (!merge) {
    loop.extents.push_back(extent);
    for (int k = 0; k < N; ++k) loop.strides[k].push_back(step[k]);
    return;
  }
  const int last = loop.extents.size() - 1;
  loop.extents[last] *= extent;
  for (int k = 0; k < N; ++k) loop.strides[k][last] = step[k];
}

}  // namespace detail

// Operands of the same shape; the first one's memory order decides.
template <int N>
StridedLoop<N> make_loop(const std::array<const Array*, N>& operands) {
  StridedLoop<N> loop;
  for (int k = 0; k < N; ++k) loop.data[k] = operands[k]->data();
  const Array& first = *operands[0];
  const auto append = [&](int axis) {
    const std::int64_t extent = first.shape(axis);
    if (extent == 1) return;
    std::array<std::int64_t, N> step;
    for (int k = 0; k < N; ++k) step[k] = operands[k]->strides()[axis];
    detail::append_axis<N>(loop, extent, step);
  };
  if (first.is_contiguous()) {
    for (int axis = 0; axis < first.ndim(); ++axis) append(axis);
  } else {
    for (std::int64_t axis : memory_order(first)) append(static_cast<int>(axis));
  }
  if (loop.extents.empty()) {
    loop.extents.push_back(1);
    for (int k = 0; k < N; ++k) loop.strides[k].push_back(0);
  }
  return loop;
}

// Calls body(n, pointers, strides) for runs of the innermost axis that cover elements
// [begin, end) of the loop in order.
template <int N, class Body>
void for_each_run(const StridedLoop<N>& loop, std::int64_t begin, std::int64_t end,
                  const Body& body) {
  if (begin >= end) return;
  const int inner = loop.extents.size() - 1;
  std::array<std::int64_t, N> steps;
  for (int k = 0; k < N; ++k) steps[k] = loop.strides[k][inner];
  Dims at = Dims::filled(inner + 1, 0);
  std::array<std::byte*, N> p = loop.data;
  std::int64_t rest = begin;
  for (int d = inner; d >= 0; --d) {
    at[d] = rest % loop.extents[d];
    rest /= loop.extents[d];
    for (int k = 0; k < N; ++k) p[k] += at[d] * loop.strides[k][d];
  }
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t n = std::min(end - i, loop.extents[inner] - at[inner]);
    body(n, p, steps);
    i += n;
    for (int k = 0; k < N; ++k) p[k] -= at[inner] * steps[k];
    at[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      for (int k = 0; k < N; ++k) p[k] += loop.strides[k][d];
      if (++at[d] < loop.extents[d]) break;
      for (int k = 0; k < N; ++k) p[k] -= loop.extents[d] * loop.strides[k][d];
      at[d] = 0;
    }
  }
}

// The whole loop, on several threads where it is long enough.
template <int N, class Body>
void parallel_walk(const StridedLoop<N>& loop, std::int64_t cost_per_element, const Body& body) {
  const std::int64_t size = loop.size();
  if (size == 0) return;
  if (loop.extents.size() == 1 && size * cost_per_element < kParallelWorth) {
    std::array<std::int64_t, N> steps;
    for (int k = 0; k < N; ++k) steps[k] = loop.strides[k][0];
    body(size, loop.data, steps);
    return;
  }
  parallel_for(size, cost_per_element,
               [&](std::int64_t begin, std::int64_t end) { for_each_run(loop, begin, end, body); });
}

}  // namespace renga
