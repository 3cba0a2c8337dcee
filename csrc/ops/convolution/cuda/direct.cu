#include "ops/convolution/cuda/direct.h"
#include "tensor/elements.cu.h"

namespace renga::convolution {
namespace {

constexpr int kMostAxes = Dims::capacity - 2;

// An array's strides as a kernel's argument: of axes 0 and 1, and of pixels.
template <class T>
struct Operand {
  explicit Operand(const Array& x) : data(x.data()), first(x.strides()[0]), second(x.strides()[1]) {
    std::copy(x.strides().begin() + 2, x.strides().end(), pixels);
  }
  // The elements at an index of axes 0 and 1.
  __device__ std::byte* at(std::int64_t i, std::int64_t j) const {
    return data + i * first + j * second;
  }
  std::byte* data;
  std::int64_t first, second, pixels[kMostAxes] = {};
};

// Extents and options along the axes of pixels.
struct Geometry {
  explicit Geometry(const Problem& p)
      : axes(p.x.ndim() - 2),
        samples(p.x.shape(0)),
        in(p.W.shape(1)),
        out(p.W.shape(0) / p.window.groups) {
    for (int axis = 0; axis < axes; ++axis) {
      x[axis] = p.x.shape(2 + axis);
      y[axis] = p.y.shape(2 + axis);
      kernel[axis] = p.W.shape(2 + axis);
      stride[axis] = p.window.stride[axis];
      pad[axis] = p.window.pad[axis];
      dilate[axis] = p.window.dilate[axis];
    }
  }
  int axes;
  std::int64_t samples, in, out;  // channels of a group
  std::int64_t x[kMostAxes] = {}, y[kMostAxes] = {}, kernel[kMostAxes] = {};
  std::int64_t stride[kMostAxes] = {}, pad[kMostAxes] = {}, dilate[kMostAxes] = {};
};

__device__ std::int64_t product(const std::int64_t* extents, int axes) {
  std::int64_t n = 1;
  for (int axis = 0; axis < axes; ++axis) n *= extents[axis];
  return n;
}

__device__ void indices_of(std::int64_t i, const std::int64_t* extents, int axes, int* indices) {
  for (int axis = axes - 1; axis >= 0; --axis) {
    indices[axis] = static_cast<int>(i % extents[axis]);
    i /= extents[axis];
  }
}

// A pass is a sum over two indices, channels or samples, and over one kind of positions. Each has
// the other two kinds of pixels from one of its result and one of its sum.
template <Pass pass>
struct Pixels {
  const Geometry& g;
  // The pixel of the third array along an axis for `a` of the result and `b` of the sum; -1 for
  // none.
  __device__ std::int64_t third(int axis, std::int64_t a, std::int64_t b) const {
    if constexpr (pass == Pass::input_grad) {
      const std::int64_t start = a + g.pad[axis] - b * g.dilate[axis];
      const std::int64_t position = start / g.stride[axis];
      const bool fits = start >= 0 && start % g.stride[axis] == 0 && position < g.y[axis];
      return fits ? position : -1;
    } else {
      const std::int64_t position = pass == Pass::forward ? a : b;
      const std::int64_t offset = pass == Pass::forward ? b : a;
      const std::int64_t pixel = position * g.stride[axis] - g.pad[axis] + offset * g.dilate[axis];
      return pixel >= 0 && pixel < g.x[axis] ? pixel : -1;
    }
  }
};

// result[i, j, a] = sum over k, b of second[.., b] third[.., third(a, b)]
template <Pass pass, class T>
__global__ void convolve(Geometry g, std::int64_t size, std::int64_t columns, Operand<T> result,
                         Operand<T> summed, Operand<T> third) {
  const bool is_forward = pass == Pass::forward;
  const bool is_weight_grad = pass == Pass::weight_grad;
  const std::int64_t* of_result = is_forward ? g.y : is_weight_grad ? g.kernel : g.x;
  const std::int64_t* of_sum = is_weight_grad ? g.y : g.kernel;
  const std::int64_t depth = is_forward ? g.in : is_weight_grad ? g.samples : g.out;
  const std::int64_t pixels = product(of_result, g.axes), offsets = product(of_sum, g.axes);
  const Pixels<pass> geometry{g};
  for (std::int64_t n = cuda::thread_index(); n < size; n += cuda::thread_count()) {
    const std::int64_t i = n / pixels / columns, j = n / pixels % columns;
    int a[kMostAxes], b[kMostAxes];
    indices_of(n % pixels, of_result, g.axes, a);
    T total = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::byte *from_sum, *from_third;
      if (is_forward) {  // (n, o): channels of W[o] and of x[n]
        from_sum = summed.at(j, k);
        from_third = third.at(i, j / g.out * g.in + k);
      } else if (is_weight_grad) {  // (o, c): samples of gy[:, o] and of x[:, c]
        from_sum = summed.at(k, i);
        from_third = third.at(k, i / g.out * g.in + j);
      } else {  // (n, c): outputs of W[:, c] and of gy[n]
        const std::int64_t o = j / g.in * g.out + k;
        from_sum = summed.at(o, j % g.in);
        from_third = third.at(i, o);
      }
      for (std::int64_t offset = 0; offset < offsets; ++offset) {
        indices_of(offset, of_sum, g.axes, b);
        std::int64_t sum_offset = 0, third_offset = 0;
        bool inside = true;
        for (int axis = 0; axis < g.axes; ++axis) {
          const std::int64_t pixel = geometry.third(axis, a[axis], b[axis]);
          inside = inside && pixel >= 0;
          sum_offset += b[axis] * summed.pixels[axis];
          third_offset += pixel * third.pixels[axis];
        }
        if (inside) {
          total += cuda::load<T>(from_sum + sum_offset) * cuda::load<T>(from_third + third_offset);
        }
      }
    }
    std::byte* to = result.at(i, j);
    for (int axis = 0; axis < g.axes; ++axis) to += a[axis] * result.pixels[axis];
    cuda::store<T>(to, total);
  }
}

template <Pass pass>
void launch(const Problem& p, const Array& result, const Array& summed, const Array& third) {
  const auto with = [&]<class T>(Type<T>) {
    cuda::launch(result.device(), cuda::grid_for(result.size()), convolve<pass, T>, Geometry(p),
                 result.size(), result.shape(1), Operand<T>(result), Operand<T>(summed),
                 Operand<T>(third));
  };
  if (result.dtype() == Dtype::float64) return with(Type<double>{});
  with(Type<float>{});
}

}  // namespace

void run_direct(const Problem& p) {
  switch (p.pass) {
    case Pass::forward:
      return launch<Pass::forward>(p, p.y, p.W, p.x);
    case Pass::input_grad:
      return launch<Pass::input_grad>(p, p.x, p.W, p.y);
    case Pass::weight_grad:
      return launch<Pass::weight_grad>(p, p.W, p.y, p.x);
  }
}

}  // namespace renga::convolution
