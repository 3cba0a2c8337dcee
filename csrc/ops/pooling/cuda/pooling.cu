// A thread for each pixel of the result and each of its channels.
#include <limits>

#include "ops/pooling/pooling.h"
#include "ops/pooling/pooling_axis.h"
#include "ops/reduction/reducers.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

template <class I>
inline constexpr I kNoIndex = static_cast<I>(-1);

struct Position {
  std::int64_t n, c, row, column;
};

// Access to the pixels of an image.
template <class T>
struct Image {
  explicit Image(const Array& x) : data(x.data()) {
    std::copy(x.strides().begin(), x.strides().end(), strides);
  }
  __device__ T& at(const Position& at, std::int64_t row, std::int64_t column) const {
    return *reinterpret_cast<T*>(data + at.n * strides[0] + at.c * strides[1] + row * strides[2] +
                                 column * strides[3]);
  }
  __device__ T& at(const Position& p) const { return at(p, p.row, p.column); }
  std::byte* data;
  std::int64_t strides[4];
};

struct Grid {
  // Calls visit(row, column, index in the window) for the elements of x in a window of y.
  template <class Visit>
  __device__ void for_each_inside(const Position& at, const Visit& visit) const {
    const Span is = rows.inside(at.row), js = columns.inside(at.column);
    for (std::int64_t i = is.begin; i < is.end; ++i) {
      for (std::int64_t j = js.begin; j < js.end; ++j) {
        visit(rows.origin(at.row) + i, columns.origin(at.column) + j, i * columns.ksize + j);
      }
    }
  }
  // Calls visit(row, column, index in the window) for the windows of y that cover an element of x.
  template <class Visit>
  __device__ void for_each_covering(const Position& at, const Visit& visit) const {
    const Span os = rows.covering(at.row), ps = columns.covering(at.column);
    for (std::int64_t o = os.begin; o < os.end; ++o) {
      for (std::int64_t p = ps.begin; p < ps.end; ++p) {
        visit(o, p, (at.row - rows.origin(o)) * columns.ksize + at.column - columns.origin(p));
      }
    }
  }
  PoolingAxis rows, columns;
};

Grid grid_of(const Array& x, const Array& y, const PoolingWindow& window) {
  return {pooling_axis(x, y, window, 0), pooling_axis(x, y, window, 1)};
}

// The order in which threads go through an image: its own in memory.
struct Order {
  std::int64_t size, channels, rows, columns;
  bool channels_last;
  __device__ Position at(std::int64_t i) const {
    Position p;
    if (channels_last) {
      p.c = i % channels;
      i /= channels;
    }
    p.column = i % columns;
    i /= columns;
    p.row = i % rows;
    i /= rows;
    if (!channels_last) {
      p.c = i % channels;
      i /= channels;
    }
    p.n = i;
    return p;
  }
};

template <class Body>
__global__ void visit_pixels(Order order, Body body) {
  for (std::int64_t i = cuda::thread_index(); i < order.size; i += cuda::thread_count()) {
    body(order.at(i));
  }
}

template <class Body>
void for_each_pixel(const Array& image, const Body& body) {
  if (image.size() == 0) return;
  const Order order{image.size(), image.shape(1), image.shape(2), image.shape(3),
                    image.strides()[1] < image.strides()[3]};
  cuda::launch(image.device(), cuda::grid_for(image.size()), visit_pixels<Body>, order, body);
}

template <class T, class I>
struct Max {
  Image<const T> x;
  Image<T> y;
  Image<I> indices;
  Grid grid;
  __device__ void operator()(const Position& at) const {
    using C = Compute<T>;
    C best = -std::numeric_limits<C>::infinity();
    I best_index = kNoIndex<I>;
    grid.for_each_inside(at, [&](std::int64_t i, std::int64_t j, std::int64_t index) {
      const C v = static_cast<C>(x.at(at, i, j));
      const bool is_first_nan = reducers::is_nan(v) && !reducers::is_nan(best);
      if (v > best || is_first_nan || best_index == kNoIndex<I>) {
        best = v;
        best_index = static_cast<I>(index);
      }
    });
    y.at(at) = T(best);
    indices.at(at) = best_index;
  }
};

template <class T, class I>
struct Gather {
  Image<const T> x;
  Image<const I> indices;
  Image<T> y;
  Grid grid;
  __device__ void operator()(const Position& at) const {
    const I index = indices.at(at);
    if (index == kNoIndex<I>) {
      y.at(at) = T(Compute<T>(0));
    } else {
      y.at(at) = x.at(at, grid.rows.origin(at.row) + index / grid.columns.ksize,
                      grid.columns.origin(at.column) + index % grid.columns.ksize);
    }
  }
};

template <class T, class I>
struct Scatter {
  Image<const T> gy;
  Image<const I> indices;
  Image<T> gx;
  Grid grid;
  __device__ void operator()(const Position& at) const {
    using C = Compute<T>;
    C total = 0;
    grid.for_each_covering(at, [&](std::int64_t o, std::int64_t p, std::int64_t index) {
      const I taken = indices.at(at, o, p);
      if (taken != kNoIndex<I> && taken == index) total += static_cast<C>(gy.at(at, o, p));
    });
    gx.at(at) = T(total);
  }
};

// The sum over a window divided by `divisor`, or its transpose.
template <class T, bool transposed>
struct Sum {
  Image<const T> from;
  Image<T> to;
  Grid grid;
  Compute<T> divisor;
  __device__ void operator()(const Position& at) const {
    using C = Compute<T>;
    C total = 0;
    const auto add = [&](std::int64_t i, std::int64_t j, std::int64_t) {
      total += static_cast<C>(from.at(at, i, j));
    };
    if constexpr (transposed) {
      grid.for_each_covering(at, add);
    } else {
      grid.for_each_inside(at, add);
    }
    to.at(at) = T(total / divisor);
  }
};

template <class Visit>
void visit_image(const Array& image, const Visit& visit) {
  visit_dtype(image.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) visit(Type<T>{});
  });
}

// Calls visit with the types of elements and indices.
template <class Visit>
void visit_types(const Array& image, const Array& indices, const Visit& visit) {
  visit_image(image, [&]<class T>(Type<T> type) {
    if (indices.dtype() == Dtype::uint8) return visit(type, Type<std::uint8_t>{});
    visit(type, Type<std::int32_t>{});
  });
}

void max_cuda(const Array& x, const Array& y, const Array& indices, const PoolingWindow& window) {
  visit_types(x, indices, [&]<class T, class I>(Type<T>, Type<I>) {
    for_each_pixel(
        y, Max<T, I>{Image<const T>(x), Image<T>(y), Image<I>(indices), grid_of(x, y, window)});
  });
}

void gather_cuda(const Array& x, const Array& indices, const Array& y,
                 const PoolingWindow& window) {
  visit_types(x, indices, [&]<class T, class I>(Type<T>, Type<I>) {
    for_each_pixel(y, Gather<T, I>{Image<const T>(x), Image<const I>(indices), Image<T>(y),
                                   grid_of(x, y, window)});
  });
}

void scatter_cuda(const Array& gy, const Array& indices, const Array& gx,
                  const PoolingWindow& window) {
  visit_types(gx, indices, [&]<class T, class I>(Type<T>, Type<I>) {
    for_each_pixel(gx, Scatter<T, I>{Image<const T>(gy), Image<const I>(indices), Image<T>(gx),
                                     grid_of(gx, gy, window)});
  });
}

void sum_cuda(const Array& x, const Array& y, const PoolingWindow& window, std::int64_t divisor) {
  visit_image(x, [&]<class T>(Type<T>) {
    for_each_pixel(y, Sum<T, false>{Image<const T>(x), Image<T>(y), grid_of(x, y, window),
                                    static_cast<Compute<T>>(divisor)});
  });
}

void spread_cuda(const Array& y, const Array& x, const PoolingWindow& window,
                 std::int64_t divisor) {
  visit_image(x, [&]<class T>(Type<T>) {
    for_each_pixel(x, Sum<T, true>{Image<const T>(y), Image<T>(x), grid_of(x, y, window),
                                   static_cast<Compute<T>>(divisor)});
  });
}

[[maybe_unused]] const bool registered = pooling_kernels.add(
    cuda::number(), {max_cuda, gather_cuda, scatter_cuda, sum_cuda, spread_cuda});

}  // namespace
}  // namespace renga
