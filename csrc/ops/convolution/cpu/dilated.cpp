// Dilated convolution by Winograd's algorithm: pixels whose rows and columns leave the same
// remainders by the dilation are an image of their own, in which the kernel has no gaps.
#include <array>

#include "devices/rounding.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/selection.h"
#include "tensor/views.h"

namespace renga::convolution {
namespace {

// The images of all remainders: an array for kernels, and the same memory as parts of the image.
// Where dilations do not divide the image, some of its parts have pixels beyond its edges.
struct Images {
  Array all;    // (dilation * dilation * N, C, rows, columns), channels last
  Array parts;  // (N, C, rows, dilation, columns, dilation)
};

Images images_like(const Array& image, const Dims& dilate) {
  const Shape& shape = image.shape();
  const std::int64_t rows = divide_up(shape[2], dilate[0]),
                     columns = divide_up(shape[3], dilate[1]);
  const Array memory =
      empty({dilate[0], dilate[1], shape[0], rows, columns, shape[1]}, image.dtype());
  const Array all =
      reshape_view(memory, {dilate[0] * dilate[1] * shape[0], rows, columns, shape[1]});
  return {transpose_view(all, {0, 3, 1, 2}), transpose_view(memory, {2, 5, 3, 0, 4, 1})};
}

// So many adjoining pixels along an axis with each of the first remainders.
struct Pixels {
  std::int64_t first, count, remainders;
};

// The pixels of all remainders, and those at the end of an axis, which has not all of them.
std::array<Pixels, 2> pixels_along(std::int64_t extent, std::int64_t dilation) {
  const std::int64_t whole = extent / dilation;
  return {{{0, whole, dilation}, {whole, 1, extent % dilation}}};
}

// Calls body(pixels, parts) with views of the same pixels of an image and of its parts.
template <class Body>
void for_each_view(const Array& image, const Images& images, const Dims& dilate, const Body& body) {
  const auto view = [](const Array& x, int axis, std::int64_t begin, const Pixels& pixels) {
    return slice_view(x, axis, begin, pixels.count * pixels.remainders);
  };
  const auto part = [](const Array& x, int axis, const Pixels& pixels) {
    const Array counted = slice_view(x, axis, pixels.first, pixels.count);
    return slice_view(counted, axis + 1, 0, pixels.remainders);
  };
  for (const Pixels& rows : pixels_along(image.shape(2), dilate[0])) {
    for (const Pixels& columns : pixels_along(image.shape(3), dilate[1])) {
      const Array pixels =
          view(view(image, 2, rows.first * dilate[0], rows), 3, columns.first * dilate[1], columns);
      if (pixels.size() == 0) continue;
      const Shape shape{image.shape(0),  image.shape(1), rows.count,
                        rows.remainders, columns.count,  columns.remainders};
      body(reshape_view(pixels, shape), part(part(images.parts, 2, rows), 4, columns));
    }
  }
}

// A convolution without gaps, from and to the images of all remainders.
class DenseConvolution {
 public:
  explicit DenseConvolution(const Problem& given)
      : given_(given),
        dilate_(given.window.dilate),
        x_(images_like(given.x, dilate_)),
        y_(images_like(given.y, dilate_)),
        window_{given.window.stride,
                {given.window.pad[0] / dilate_[0], given.window.pad[1] / dilate_[1]},
                {1, 1},
                given.window.groups} {}

  Problem problem() const {
    return {given_.pass, x_.all, given_.W, y_.all, window_, given_.cache, given_.arithmetic};
  }
  void run(const Epilogue& epilogue) const {
    if (given_.pass != Pass::input_grad) read(given_.x, x_);
    if (given_.pass != Pass::forward) read(given_.y, y_);
    kWinograd.run(problem(), epilogue);
    if (given_.pass == Pass::forward) write(y_, given_.y);
    if (given_.pass == Pass::input_grad) write(x_, given_.x);
  }

 private:
  void read(const Array& image, const Images& images) const {
    const bool is_covered = images.all.size() == image.size();
    if (!is_covered) fill(images.all, 0);
    for_each_view(image, images, dilate_,
                  [](const Array& pixels, const Array& parts) { copy(pixels, parts); });
  }
  void write(const Images& images, const Array& image) const {
    for_each_view(image, images, dilate_,
                  [](const Array& pixels, const Array& parts) { copy(parts, pixels); });
  }

  const Problem& given_;
  const Dims dilate_;
  const Images x_, y_;
  const Window window_;
};

// Whether dilations divide the padding.
bool supports(const Problem& problem) {
  const auto& [stride, pad, dilate, groups] = problem.window;
  if (!is_common(problem) || stride != Dims{1, 1} || dilate == Dims{1, 1}) return false;
  for (int axis = 0; axis < 2; ++axis) {
    if (pad[axis] % dilate[axis] != 0) return false;
  }
  return kWinograd.supports(DenseConvolution(problem).problem());
}

// Images are copied, at a cost of `move` per number.
double cost(const Problem& problem) {
  constexpr double move = 30;
  return kWinograd.cost(DenseConvolution(problem).problem()) +
         move * static_cast<double>(problem.x.size() + problem.y.size());
}

void run(const Problem& problem, const Epilogue& epilogue) {
  DenseConvolution(problem).run(epilogue);
}

}  // namespace

constinit const Algorithm kDilated{
    .name = "dilated", .supports = supports, .cost = cost, .run = run, .adds_bias = true};

}  // namespace renga::convolution
