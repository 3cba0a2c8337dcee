// Dilated convolution by Winograd's algorithm: pixels whose rows and columns leave the same
// remainders by the dilation are an image of their own, in which the kernel has no gaps.
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/selection.h"
#include "simd/cpu_features.h"
#include "tensor/views.h"

namespace renga::convolution {
namespace {

// The images of all remainders: an array for kernels, and the same memory as `split` shows others.
struct Images {
  Array all;    // (dilation * dilation * N, C, H / dilation, W / dilation), channels last
  Array parts;  // (N, C, H / dilation, dilation, W / dilation, dilation)
};

Array split(const Array& image, const Dims& dilate) {
  const Shape& shape = image.shape();
  return reshape_view(image, {shape[0], shape[1], shape[2] / dilate[0], dilate[0],
                              shape[3] / dilate[1], dilate[1]});
}

Images images_like(const Array& image, const Dims& dilate) {
  const Shape& shape = image.shape();
  const std::int64_t height = shape[2] / dilate[0], width = shape[3] / dilate[1];
  const Array memory =
      empty({dilate[0], dilate[1], shape[0], height, width, shape[1]}, image.dtype());
  const Array rows =
      reshape_view(memory, {dilate[0] * dilate[1] * shape[0], height, width, shape[1]});
  return {transpose_view(rows, {0, 3, 1, 2}), transpose_view(memory, {2, 5, 3, 0, 4, 1})};
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
    if (given_.pass != Pass::input_grad) copy(split(given_.x, dilate_), x_.parts);
    if (given_.pass != Pass::forward) copy(split(given_.y, dilate_), y_.parts);
    kWinograd.run(problem(), epilogue);
    if (given_.pass == Pass::forward) copy(y_.parts, split(given_.y, dilate_));
    if (given_.pass == Pass::input_grad) copy(x_.parts, split(given_.x, dilate_));
  }

 private:
  const Problem& given_;
  const Dims dilate_;
  const Images x_, y_;
  const Window window_;
};

// Whether dilations divide images and their padding.
bool supports(const Problem& problem) {
  const auto& [stride, pad, dilate, groups] = problem.window;
  if (!is_common(problem) || stride != Dims{1, 1} || dilate == Dims{1, 1}) return false;
  for (int axis = 0; axis < 2; ++axis) {
    for (std::int64_t n : {problem.x.shape(2 + axis), problem.y.shape(2 + axis), pad[axis]}) {
      if (n % dilate[axis] != 0) return false;
    }
  }
  return kWinograd.supports(DenseConvolution(problem).problem());
}

// Images are copied, at a cost of `move` per number. With AVX-512, oneDNN's kernels for dilated
// convolutions have not been compared with these.
double cost(const Problem& problem) {
  constexpr double move = 30;
  if (simd::has_avx512()) return highest_cost(problem);
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
