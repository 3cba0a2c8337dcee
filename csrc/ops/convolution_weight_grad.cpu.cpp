#include "ops/convolution_weight_grad.cpu.h"

#include <algorithm>
#include <functional>

#include "devices/single_thread.h"
#include "devices/parallel.h"
#include "ops/convolution_onednn.cpu.h"
#include "ops/matmul.h"
#include "ops/matmul_blocks.cpu.h"
#include "tensor/views.h"

namespace renga {
namespace {

// What a piece reads, and the window that it is read with.
struct Piece {
  Array gy, x;
  Window window;
};

std::int64_t largest_power_of_two(std::int64_t most) {
  std::int64_t power = 1;
  while (2 * power <= most) power *= 2;
  return power;
}

// How many parts the positions are cut into, whose gradients are added up: not so many that adding
// takes long.
std::int64_t parts_of(const Array& gy, const Array& gW, int axis) {
  constexpr std::int64_t kSmall = 1 << 16, kFew = 1024, kWorth = 8192;
  const std::int64_t positions = gy.size() / gy.shape(1);
  const std::int64_t each = gW.size() <= kSmall ? kFew : kWorth;
  const std::int64_t wanted = wanted_blocks(gy.size() * (gW.size() / gW.shape(0)));
  return largest_power_of_two(std::min({wanted, gy.shape(axis), positions / each}));
}

Piece samples(const Array& gy, const Array& x, const Window& window, std::int64_t begin,
              std::int64_t count) {
  return {slice_view(gy, 0, begin, count), slice_view(x, 0, begin, count), window};
}

// Rows of a single image, of which neighbours share those that windows of both see. None of them
// lies in the padding as a whole.
Piece rows(const Array& gy, const Array& x, const Array& gW, const Window& window,
           std::int64_t begin, std::int64_t count) {
  Window part = window;
  const std::int64_t first = begin * window.stride[0] - window.pad[0];
  const std::int64_t reach = window.reach(gW.shape(2), 0);
  const std::int64_t last = (begin + count - 1) * window.stride[0] - window.pad[0] + reach;
  const std::int64_t from = std::clamp<std::int64_t>(first, 0, x.shape(2) - 1);
  const std::int64_t to = std::clamp<std::int64_t>(last, from + 1, x.shape(2));
  part.pad[0] = from - first;
  return {slice_view(gy, 2, begin, count), slice_view(x, 2, from, to - from), part};
}

void add_parts(const Array& parts, const Array& gW) {
  const std::int64_t size = gW.size(), count = parts.shape(0);
  const float* const from = parts.as<float>();
  float* const to = gW.as<float>();
  parallel_for(size, count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float sum = from[i];
      for (std::int64_t part = 1; part < count; ++part) sum += from[part * size + i];
      to[i] = sum;
    }
  });
}

// Whether each pixel of gy meets one pixel of x, and there are channels enough for a product to
// take no longer than oneDNN's convolution.
bool is_product(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  constexpr std::int64_t kNarrow = 24;
  if (window.groups != 1 || std::min(gW.shape(0), gW.shape(1)) < kNarrow) return false;
  for (int axis = 2; axis < gW.ndim(); ++axis) {
    const std::int64_t last = (gy.shape(axis) - 1) * window.stride[axis - 2];
    if (gW.shape(axis) != 1 || window.pad[axis - 2] != 0 || last >= x.shape(axis)) return false;
  }
  return true;
}

// The pixels as rows of a matrix, their channels as columns.
Array as_rows(const Array& image) {
  Axes order{0};
  for (int axis = 2; axis < image.ndim(); ++axis) order.push_back(axis);
  order.push_back(1);
  const Array dense = contiguous(transpose_view(image, order));
  return reshape_view(dense, {image.size() / image.shape(1), image.shape(1)});
}

void multiply(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  Array met = x;
  for (int axis = 2; axis < gW.ndim(); ++axis) {
    met = slice_view(met, axis, 0, gy.shape(axis), window.stride[axis - 2]);
  }
  matmul_kernels.on(gy.device())
      .matmul(transpose_view(as_rows(gy), {1, 0}), as_rows(met),
              reshape_view(gW, {gW.shape(0), gW.shape(1)}), false);
}

// Pieces whose gradients are parts of the sum, along an axis of gy.
void add_up(const Array& gy, const Array& x, const Array& gW, const Window& window, Factors factors,
            int axis, std::int64_t count) {
  Shape shape = gW.shape();
  shape.insert(0, count);
  const Array parts = empty(shape, gW.dtype());
  const std::int64_t extent = gy.shape(axis);
  parallel_for(count, gy.size() / count * (gW.size() / gW.shape(0)) / 8,
               [&](std::int64_t first, std::int64_t last) {
                 const SingleThread alone;
                 for (std::int64_t i = first; i < last; ++i) {
                   const std::int64_t begin = i * extent / count;
                   const std::int64_t length = (i + 1) * extent / count - begin;
                   const Piece piece = axis == 0 ? samples(gy, x, window, begin, length)
                                                 : rows(gy, x, gW, window, begin, length);
                   onednn_weight_grad(piece.gy, piece.x, select_view(parts, 0, i), piece.window,
                                      factors);
                 }
               });
  add_parts(parts, gW);
}

// Pieces with so many of the output channels.
void side_by_side(const Array& gy, const Array& x, const Array& gW, const Window& window,
                  Factors factors) {
  constexpr std::int64_t kEach = 64, kMost = 8;
  const std::int64_t outputs = gW.shape(0);
  const std::int64_t count =
      window.groups == 1 ? largest_power_of_two(std::clamp<std::int64_t>(outputs / kEach, 1, kMost))
                         : 1;
  parallel_for(count, gy.size() / count * (gW.size() / outputs) / 8,
               [&](std::int64_t first, std::int64_t last) {
                 const SingleThread alone;
                 for (std::int64_t i = first; i < last; ++i) {
                   const std::int64_t begin = i * outputs / count;
                   const std::int64_t length = (i + 1) * outputs / count - begin;
                   onednn_weight_grad(slice_view(gy, 1, begin, length), x,
                                      slice_view(gW, 0, begin, length), window, factors);
                 }
               });
}

}  // namespace

void direct_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                        Factors factors) {
  const bool float32 = x.dtype() == Dtype::float32 && factors == Factors::float32;
  if (float32 && is_product(gy, x, gW, window)) return multiply(gy, x, gW, window);
  const bool single = gy.shape(0) == 1 && window.pad[0] < x.shape(2);
  const int axis = single ? 2 : 0;
  const std::int64_t count = gW.dtype() == Dtype::float32 ? parts_of(gy, gW, axis) : 1;
  if (count > 1) {
    return add_up(gy, x, gW, window, factors, axis, count);
  }
  side_by_side(gy, x, gW, window, factors);
}

}  // namespace renga
