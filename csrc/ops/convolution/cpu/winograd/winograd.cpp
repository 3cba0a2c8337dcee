// Winograd convolution: 3x3 kernels at stride 1 with a quarter of the multiplications, 4x4 and 3x3
// kernels at stride 2 with four and six tenths, and little more rounding error than a direct sum.
// A kernel of volumes is a sum of such kernels of images. It is fastest for channels-last images.
// Results do not depend on the number of threads.
#include <algorithm>

#include "devices/rounding.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/convolution/cpu/winograd/passes.h"

namespace renga::convolution {
namespace {

using winograd::Images;
using winograd::KernelOffsets;
using winograd::Source;
using winograd::Volumes;
using winograd::Weights;

using TwoByTwo = winograd::Scheme<winograd::PairOfThree, winograd::PairOfThree>;
// This scheme is for each phase of a 4x4 or 3x3 kernel at stride 2.
template <int extent>
using Strided = winograd::Scheme<winograd::FourOfTwo, winograd::FourOfTwo, extent>;
// bfloat16 products are so coarse that the transforms must amplify their errors less than F(4, 3)
// along both axes does.
template <class Number>
using Dense = winograd::Scheme<
    winograd::FourOfThree,
    std::conditional_t<std::is_same_v<Number, float>, winograd::FourOfThree, winograd::TwoOfThree>>;

// Tiles of dense convolutions in float32. Smaller ones take more multiplications for each pixel,
// but fewer transformed weights.
using FourByFour = Dense<float>;
using FourByTwo = Dense<bfloat16>;
using TwoByTwoTiles = winograd::Scheme<winograd::TwoOfThree, winograd::TwoOfThree>;

// Returns the cost, for each pair of channels, of reading the transformed weights and of
// multiplying them with all tiles. The unit is one multiplication.
template <class Scheme>
std::int64_t cost_of_tiles(std::int64_t images, const Pair& extents) {
  constexpr std::int64_t kReading = 30;  // a number from memory
  const std::int64_t tiles = images * divide_up(extents[0], Scheme::Down::tile) *
                             divide_up(extents[1], Scheme::Across::tile);
  const std::int64_t rows = round_up(tiles, kPanelRows);
  return Scheme::points * (rows + kReading);
}

// body(Type<Scheme>) with the fastest tiles for a result of these images.
template <class Body>
auto with_tiles(std::int64_t images, const Pair& extents, std::int64_t channel_pairs,
                const Body& body) {
  constexpr std::int64_t kCached = 2 << 20;  // transformed weights, between two passes
  if (channel_pairs * FourByFour::points > kCached) {
    const std::int64_t full = cost_of_tiles<FourByFour>(images, extents);
    const std::int64_t half = cost_of_tiles<FourByTwo>(images, extents);
    const std::int64_t quarter = cost_of_tiles<TwoByTwoTiles>(images, extents);
    if (half < full && half <= quarter) return body(Type<FourByTwo>{});
    if (quarter < full) return body(Type<TwoByTwoTiles>{});
  }
  return body(Type<FourByFour>{});
}

bool has_volumes(const Array& x) { return x.ndim() == 5; }

// How many images a sample (N, H, W, C) or (N, D, H, W, C) has.
std::int64_t depth_of(const Array& x) { return has_volumes(x) ? x.shape(1) : 1; }

// Returns the images of such a row-major array.
template <class Pixel>
Images<Pixel> images(const Array& x) {
  const int axes = x.ndim();
  const std::int64_t rows = x.shape(axes - 3), columns = x.shape(axes - 2);
  const std::int64_t channels = x.shape(axes - 1);
  return {x.as<Pixel>(), x.shape(0) * depth_of(x),  {rows, columns},
          channels,      rows * columns * channels, {columns * channels, channels}};
}

// Every second row and column of the padded images: a convolution of stride 2 is the sum of those
// of four phases at stride 1. `pad` counts pixels of this phase.
template <class Pixel>
struct Phase {
  Phase(const Images<Pixel>& x, const Window& window, int row, int column) : x(x) {
    const std::array phase{row, column};
    for (int axis : {0, 1}) {
      pad[axis] = std::max<std::int64_t>(0, (window.pad[axis] - phase[axis] + 1) / 2);
      const std::int64_t first = 2 * pad[axis] + phase[axis] - window.pad[axis];
      this->x.data += first * x.pixel_step[axis];
      this->x.extents[axis] = std::max<std::int64_t>(0, (x.extents[axis] - first + 1) / 2);
      this->x.pixel_step[axis] *= 2;
    }
  }

  Images<Pixel> x;
  Pair pad{};
};

// W is row-major.
Weights weights_of(const Array& W) {
  const std::int64_t size = W.shape(2) * W.shape(3);
  return {W.as<float>(), W.shape(1), W.shape(0), size, W.shape(1) * size};
}

// The weights of the input gradient, whose kernel offsets are reversed.
Weights transposed(const Weights& W) {
  return {W.data, W.outputs, W.inputs, W.output_step, W.input_step};
}

// A kernel of volumes has as many slices, which are kernels of images. Padding of `pad` images is
// before the first image of x. A kernel of images is a slice itself.
struct Slices {
  std::int64_t count = 1, pad = 0;
  std::int64_t x_depth = 1, y_depth = 1;
};

Slices slices_of(const Problem& problem) {
  const Array &x = problem.x, &W = problem.W, &y = problem.y;
  if (!has_volumes(x)) return {};
  return {W.shape(2), problem.window.pad[0], x.shape(2), y.shape(2)};
}

// The rows and columns of the images of x, y or W (N, C, [D,] H, W).
Pair plane_extents(const Array& image) {
  return {image.shape(image.ndim() - 2), image.shape(image.ndim() - 1)};
}

// The window of a slice.
Window plane_of(const Window& window) {
  const int axes = window.stride.size();
  const auto last_two = [=](const Dims& dims) { return Dims{dims[axes - 2], dims[axes - 1]}; };
  return {last_two(window.stride), last_two(window.pad), last_two(window.dilate), window.groups};
}

// The weights (O, C, D, 3, 3) of volumes as those of images, whose channels are those of all slices
// in turn: the inputs' (O, D C, 3, 3), or for gradients the outputs' (D O, C, 3, 3).
Array weights_by_inputs(const Array& W) {
  if (!has_volumes(W)) return contiguous(W);
  return reshape_view(contiguous(transpose_view(W, {0, 2, 1, 3, 4})),
                      {W.shape(0), W.shape(2) * W.shape(1), W.shape(3), W.shape(4)});
}
Array weights_by_outputs(const Array& W) {
  if (!has_volumes(W)) return contiguous(W);
  return reshape_view(contiguous(transpose_view(W, {2, 0, 1, 3, 4})),
                      {W.shape(2) * W.shape(0), W.shape(1), W.shape(3), W.shape(4)});
}

constexpr KernelOffsets kAllOffsets{0, 3, 1, 3, 3};

// The offsets of a kernel of `extent` by `extent` that read the pixels of a phase.
KernelOffsets offsets_of_phase(int extent, int row, int column) {
  return {extent * row + column, 2 * extent, 2, (extent - row + 1) / 2, (extent - column + 1) / 2};
}

KernelOffsets reversed(const KernelOffsets& offsets) {
  return {offsets.at(offsets.rows - 1, offsets.columns - 1), -offsets.row_step,
          -offsets.column_step, offsets.rows, offsets.columns};
}

// Calls body(row, column) for each phase.
template <class Body>
void for_each_phase(const Body& body) {
  for (int row : {0, 1}) {
    for (int column : {0, 1}) body(row, column);
  }
}

Pair pads(const Window& window) { return {window.pad[0], window.pad[1]}; }

bool is_strided(const Window& window) { return window.stride[0] == 2; }

// Whether images of 2x2 pixels are padded by 1, so that the scheme for them applies.
bool is_two_by_two(const Pair& x, const Pair& y, const Window& window) {
  return x == Pair{2, 2} && y == x && window.pad == Dims{1, 1};
}

// A problem on images of Pixel that multiplies numbers of type Number.
template <class Pixel, class Number>
class Kernel {
 public:
  Kernel(const Array& x, const Array& W, const Array& y, const Window& window, const Slices& slices,
         const float* bias, PackedWeightCache* cache)
      : x_(images<Pixel>(x)),
        y_(images<Pixel>(y)),
        W_(W),
        window_(window),
        slices_(slices),
        bias_(bias),
        cache_(cache) {}

  void convolve(Pass pass) const { pass == Pass::forward ? forward() : input_grad(); }

  void weight_grad(bool add) const {
    if (is_strided(window_)) {
      with_strided([&]<class Scheme>(Type<Scheme>) {
        correlate<Scheme>(phases_of_x(), weights_of(W_), add);
      });
      return;
    }
    Weights gW = weights_of(W_);
    gW.outputs /= slices_.count;
    for (const Source<Pixel>& slice : slices_of_x()) {
      if (is_two_by_two(x_.extents, y_.extents, window_)) {
        correlate<TwoByTwo>({slice}, gW, add);
      } else {
        correlate<Dense<Number>>({slice}, gW, add);
      }
      gW.data += gW.outputs * gW.output_step;
    }
  }

 private:
  void forward() const {
    if (is_strided(window_)) {
      with_strided([&]<class Scheme>(Type<Scheme>) {
        convolve<Scheme>(phases_of_x(), weights_of(W_), {y_});
      });
    } else {
      convolve_dense(slices_of_x(), weights_of(W_), y_);
    }
  }

  void input_grad() const {
    const Weights W = transposed(weights_of(W_));
    if (is_strided(window_)) {
      std::vector<Source<Pixel>> sources;
      std::vector<Images<Pixel>> phases;
      for_each_phase([&](int row, int column) {
        const Phase phase(x_, window_, row, column);
        const KernelOffsets offsets = offsets_of_phase(extent(), row, column);
        const Pair before{offsets.rows - 1 - phase.pad[0], offsets.columns - 1 - phase.pad[1]};
        sources.push_back({y_, before, reversed(offsets)});
        phases.push_back(phase.x);
      });
      with_strided([&]<class Scheme>(Type<Scheme>) { convolve<Scheme>(sources, W, phases); });
    } else {
      convolve_dense(slices_of_y(), W, x_);
    }
  }

  int extent() const { return static_cast<int>(W_.shape(2)); }

  template <class Body>
  void with_strided(const Body& body) const {
    extent() == 4 ? body(Type<Strided<4>>{}) : body(Type<Strided<3>>{});
  }

  std::vector<Source<Pixel>> phases_of_x() const {
    std::vector<Source<Pixel>> phases;
    for_each_phase([&](int row, int column) {
      const Phase phase(x_, window_, row, column);
      phases.push_back({phase.x, phase.pad, offsets_of_phase(extent(), row, column)});
    });
    return phases;
  }

  // What each slice of a kernel reads of x, or in reverse of the gradient of y.
  std::vector<Source<Pixel>> slices_of_x() const {
    std::vector<Source<Pixel>> sources;
    for (std::int64_t i = 0; i < slices_.count; ++i) {
      const Volumes volumes{slices_.y_depth, i - slices_.pad, slices_.x_depth};
      sources.push_back({seen(x_, y_, volumes), pads(window_), kAllOffsets});
    }
    return sources;
  }
  std::vector<Source<Pixel>> slices_of_y() const {
    const Pair pad{2 - window_.pad[0], 2 - window_.pad[1]};
    std::vector<Source<Pixel>> sources;
    for (std::int64_t i = 0; i < slices_.count; ++i) {
      const Volumes volumes{slices_.x_depth, slices_.pad - i, slices_.y_depth};
      sources.push_back({seen(y_, x_, volumes), pad, reversed(kAllOffsets)});
    }
    return sources;
  }
  // The images of volumes that go with those of a result.
  static Images<Pixel> seen(const Images<Pixel>& images, const Images<Pixel>& result,
                            const Volumes& volumes) {
    Images<Pixel> seen = images;
    seen.count = result.count;
    const bool are_all = volumes.first == 0 && volumes.numbered == volumes.depth;
    if (!are_all) seen.volumes = volumes;
    return seen;
  }

  void convolve_dense(const std::vector<Source<Pixel>>& sources, const Weights& W,
                      const Images<Pixel>& to) const {
    if (is_two_by_two(x_.extents, y_.extents, window_)) {
      convolve<TwoByTwo>(sources, W, {to});
    } else if constexpr (std::is_same_v<Number, float>) {
      with_tiles(to.count, to.extents, W.inputs * W.outputs,
                 [&]<class Scheme>(Type<Scheme>) { convolve<Scheme>(sources, W, {to}); });
    } else {
      convolve<Dense<Number>>(sources, W, {to});
    }
  }

  template <class Scheme>
  void convolve(const std::vector<Source<Pixel>>& sources, const Weights& W,
                const std::vector<Images<Pixel>>& to) const {
    winograd::Convolution<Scheme, Number, Pixel>(sources, W, to, bias_, cache_).run();
  }
  template <class Scheme>
  void correlate(const std::vector<Source<Pixel>>& sources, const Weights& gW, bool add) const {
    winograd::WeightGrad<Scheme, Number, Pixel>(sources, gW, y_, add).run();
  }

  const Images<Pixel> x_, y_;
  const Array& W_;
  const Window& window_;
  const Slices slices_;
  const float* const bias_;
  PackedWeightCache* const cache_;
};

// Calls body(kernel). x and y are (N, H, W, C) or (N, D, H, W, C), row-major, and W are the weights
// of images, row-major.
template <class Body>
void with_kernel(const Problem& problem, const Array& x, const Array& W, const Array& y,
                 const float* bias, const Body& body) {
  const Window window = plane_of(problem.window);
  const Slices slices = slices_of(problem);
  const auto run_on = [&]<class Pixel>(Type<Pixel>) {
    if (problem.multiplies_bfloat16()) {
      body(Kernel<Pixel, bfloat16>(x, W, y, window, slices, bias, problem.cache));
    } else {
      body(Kernel<Pixel, float>(x, W, y, window, slices, bias, problem.cache));
    }
  };
  x.dtype() == Dtype::bfloat16 ? run_on(Type<bfloat16>{}) : run_on(Type<float>{});
}

void convolve(const Problem& problem, const Array& bias) {
  const ChannelsLastOutput output(problem.result());
  const Array input = dense_channels_last(problem.first());
  const bool forward = problem.pass == Pass::forward;
  const Array W = forward ? weights_by_inputs(problem.W) : weights_by_outputs(problem.W);
  with_kernel(problem, forward ? input : output.dense(), W, forward ? output.dense() : input,
              bias.defined() ? bias.as<const float>() : nullptr,
              [&](const auto& kernel) { kernel.convolve(problem.pass); });
  output.finish();
}

void weight_grad(const Problem& problem, bool add) {
  const Array x = dense_channels_last(problem.x), y = dense_channels_last(problem.y);
  const Array& gW = problem.W;
  const auto compute = [&](const Array& to) {
    with_kernel(problem, x, to, y, nullptr, [&](const auto& kernel) { kernel.weight_grad(add); });
  };
  if (!has_volumes(gW)) return compute(gW);
  const std::int64_t outputs = gW.shape(0), inputs = gW.shape(1), count = gW.shape(2);
  const Array by_outputs =
      add ? weights_by_outputs(gW)
          : empty({count * outputs, inputs, gW.shape(3), gW.shape(4)}, gW.dtype());
  compute(by_outputs);
  const Array slices = reshape_view(by_outputs, {count, outputs, inputs, gW.shape(3), gW.shape(4)});
  copy(transpose_view(slices, {1, 2, 0, 3, 4}), gW);
}

// Whether there are no dilation and groups, padding of images of at most 2, and channels in
// multiples of kPanel.
bool supports(const Problem& problem) {
  if (!is_common(problem, 3)) return false;
  const Shape& W = problem.W.shape();
  const auto [rows, columns] = plane_extents(problem.W);
  const Dims &stride = problem.window.stride, &dilate = problem.window.dilate;
  const Window window = plane_of(problem.window);
  const bool dense = stride == Dims::filled(stride.size(), 1) && rows == 3 && columns == 3;
  const bool strided = stride == Dims{2, 2} && rows == columns && (rows == 3 || rows == 4);
  return (dense || strided) && dilate == Dims::filled(dilate.size(), 1) && window.groups == 1 &&
         std::max(window.pad[0], window.pad[1]) <= 2 && W[0] % kPanel == 0 && W[1] % kPanel == 0;
}

// Outputs are computed in tiles of `rows` by `columns`. Each tile takes `points` multiplications
// per pair of an input and an output channel.
struct TileCost {
  std::int64_t rows, columns, points;
};

TileCost tile_cost(const Problem& problem) {
  const Window window = plane_of(problem.window);
  const Pair x = plane_extents(problem.x);
  const auto describe = []<class S>(Type<S>) {
    return TileCost{S::Down::tile, S::Across::tile, S::points};
  };
  if (is_strided(window)) {
    // Per axis a phase has 5 points, or 4 if it has one offset.
    const std::int64_t points = plane_extents(problem.W)[0] == 4 ? 10 : 9;
    return {winograd::FourOfTwo::tile, winograd::FourOfTwo::tile, points * points};
  }
  if (is_two_by_two(x, x, window)) return describe(Type<TwoByTwo>{});
  if (problem.multiplies_bfloat16()) return describe(Type<Dense<bfloat16>>{});
  if (problem.pass == Pass::weight_grad) return describe(Type<FourByFour>{});
  const Slices slices = slices_of(problem);
  const Array& result = problem.result();
  const std::int64_t depth = problem.pass == Pass::forward ? slices.y_depth : slices.x_depth;
  return with_tiles(result.shape(0) * depth, plane_extents(result),
                    slices.count * channel_pairs(problem), describe);
}

// Computes whole groups of tiles. Transforms cost `image` per transformed element of an image and
// `weight` per transformed element of a filter. In forward passes and input gradients of 3x3
// kernels at stride 2, images cost twice as much (measured, as in docs/performance.md). Before
// images are written, the weights of volumes are copied slice by slice, at a cost of `copied` for
// each; other algorithms copy gradients of weights, too.
double cost(const Problem& problem) {
  constexpr double weight = 5, copied = 25;
  const bool is_in_phases = is_strided(problem.window) && plane_extents(problem.W)[0] == 3;
  const double image = is_in_phases && problem.pass != Pass::weight_grad ? 28 : 14;
  const Array &y = problem.y, &W = problem.W;
  const TileCost tile = tile_cost(problem);
  const Slices slices = slices_of(problem);
  const Pair extents = plane_extents(y);
  const std::int64_t covering = y.shape(0) * slices.y_depth * divide_up(extents[0], tile.rows) *
                                divide_up(extents[1], tile.columns);
  const auto tiles = static_cast<double>(round_up(covering, kPanelRows));
  // Each slice transforms the images that it reads.
  const bool reads_y = problem.pass != Pass::forward, reads_x = problem.pass != Pass::input_grad;
  const auto channels = static_cast<double>((reads_y ? slices.count : 1) * W.shape(0) +
                                            (reads_x ? slices.count : 1) * W.shape(1));
  const auto pairs = static_cast<double>(slices.count * channel_pairs(problem));
  const bool copies = has_volumes(W) && problem.pass != Pass::weight_grad;
  return static_cast<double>(tile.points) *
             (tiles * (multiplication_cost(problem) * pairs + image * channels) + weight * pairs) +
         (copies ? copied * static_cast<double>(W.size()) : 0);
}

void run(const Problem& problem, const Epilogue& epilogue) {
  if (problem.pass == Pass::weight_grad) return weight_grad(problem, epilogue.accumulates);
  convolve(problem, epilogue.bias);
}

}  // namespace

constinit const Algorithm kWinograd{.name = "winograd",
                                    .supports = supports,
                                    .cost = cost,
                                    .run = run,
                                    .adds_bias = true,
                                    .adds_weight_grad = true};

}  // namespace renga::convolution
