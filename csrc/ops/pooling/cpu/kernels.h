// What the kernels of poolings have in common. Each has two loops: pixel by pixel with vectors of
// channels if channels are contiguous, and channel by channel otherwise, with vectors of columns
// where several rows meet.
#pragma once

#include <vector>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/pooling/cpu/pooling_grid.h"
#include "ops/pooling/pooling.h"
#include "simd/vector.h"

namespace renga::pooling_cpu {

// The entries of PoolingKernels.
void max(const Array& x, const Array& y, const Array& indices, const PoolingWindow& window);
void gather(const Array& x, const Array& indices, const Array& y, const PoolingWindow& window);
void scatter(const Array& gy, const Array& indices, const Array& gx, const PoolingWindow& window);

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

inline bool has_contiguous_channels(const Array& x) {
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

inline bool has_vectors_of_channels(const Array& x, const Array& y) {
  return has_contiguous_channels(x) && has_contiguous_channels(y);
}

// Returns the same numbers, with columns that are contiguous.
inline Array with_contiguous_columns(const Array& x) {
  return x.shape(3) == 1 || x.strides()[3] == x.itemsize() ? x : contiguous(x);
}

// Calls visit(Type<T>{}) with the float type of an image.
template <class Visit>
void visit_image(const Array& x, const Visit& visit) {
  visit_dtype(x.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (is_floating<T>) visit(type);
  });
}

}  // namespace renga::pooling_cpu
