#include "ops/convolution/cpu/winograd/winograd.h"

#include <algorithm>

#include "devices/rounding.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/winograd/passes.h"

namespace renga {
namespace {

using winograd::Images;
using winograd::KernelOffsets;
using winograd::Source;
using winograd::Weights;

using TwoByTwo = winograd::Scheme<winograd::PairOfThree, winograd::PairOfThree>;
// For each phase of a 4x4 or 3x3 kernel at stride 2.
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

// Of reading the transformed weights and of multiplying them with all tiles, for each pair of
// channels. The unit is one multiplication.
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

// Of an array (N, H, W, C), row-major.
template <class Pixel>
Images<Pixel> images(const Array& x) {
  const std::int64_t rows = x.shape(1), columns = x.shape(2), channels = x.shape(3);
  return {x.as<Pixel>(),
          x.shape(0),
          {rows, columns},
          channels,
          rows * columns * channels,
          {columns * channels, channels}};
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
  Kernel(const Array& x, const Array& W, const Array& y, const Window& window, const float* bias,
         PackedWeightCache* cache)
      : x_(images<Pixel>(x)),
        y_(images<Pixel>(y)),
        W_(W),
        window_(window),
        bias_(bias),
        cache_(cache) {}

  void convolve(Pass pass) const { pass == Pass::forward ? forward() : input_grad(); }

  void weight_grad(bool add) const {
    if (is_strided(window_)) {
      with_strided([&]<class Scheme>(Type<Scheme>) { correlate<Scheme>(phases_of_x(), add); });
    } else if (is_two_by_two(x_.extents, y_.extents, window_)) {
      correlate<TwoByTwo>({{x_, pads(window_), kAllOffsets}}, add);
    } else {
      correlate<Dense<Number>>({{x_, pads(window_), kAllOffsets}}, add);
    }
  }

 private:
  void forward() const {
    if (is_strided(window_)) {
      with_strided([&]<class Scheme>(Type<Scheme>) {
        convolve<Scheme>(phases_of_x(), weights_of(W_), {y_});
      });
    } else if (is_two_by_two(x_.extents, y_.extents, window_)) {
      convolve<TwoByTwo>({{x_, pads(window_), kAllOffsets}}, weights_of(W_), {y_});
    } else {
      convolve_dense({x_, pads(window_), kAllOffsets}, weights_of(W_), y_);
    }
  }

  void input_grad() const {
    const Weights W = transposed(weights_of(W_));
    const Pair pad{2 - window_.pad[0], 2 - window_.pad[1]};
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
    } else if (is_two_by_two(x_.extents, y_.extents, window_)) {
      convolve<TwoByTwo>({{y_, pad, reversed(kAllOffsets)}}, W, {x_});
    } else {
      convolve_dense({y_, pad, reversed(kAllOffsets)}, W, x_);
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

  void convolve_dense(const Source<Pixel>& source, const Weights& W,
                      const Images<Pixel>& to) const {
    if constexpr (std::is_same_v<Number, float>) {
      with_tiles(to.count, to.extents, W.inputs * W.outputs,
                 [&]<class Scheme>(Type<Scheme>) { convolve<Scheme>({source}, W, {to}); });
    } else {
      convolve<Dense<Number>>({source}, W, {to});
    }
  }

  template <class Scheme>
  void convolve(const std::vector<Source<Pixel>>& sources, const Weights& W,
                const std::vector<Images<Pixel>>& to) const {
    winograd::Convolution<Scheme, Number, Pixel>(sources, W, to, bias_, cache_).run();
  }
  template <class Scheme>
  void correlate(const std::vector<Source<Pixel>>& sources, bool add) const {
    winograd::WeightGrad<Scheme, Number, Pixel>(sources, weights_of(W_), y_, add).run();
  }

  const Images<Pixel> x_, y_;
  const Array& W_;
  const Window& window_;
  const float* const bias_;
  PackedWeightCache* const cache_;
};

// Calls body(kernel). x and y are (N, H, W, C), row-major, and W is row-major.
template <class Body>
void with_kernel(const Array& x, const Array& W, const Array& y, const Window& window,
                 ComputeType compute_type, const float* bias, PackedWeightCache* cache,
                 const Body& body) {
  const auto run_on = [&]<class Pixel>(Type<Pixel>) {
    if (compute_type == ComputeType::bfloat16) {
      body(Kernel<Pixel, bfloat16>(x, W, y, window, bias, cache));
    } else {
      body(Kernel<Pixel, float>(x, W, y, window, bias, cache));
    }
  };
  x.dtype() == Dtype::bfloat16 ? run_on(Type<bfloat16>{}) : run_on(Type<float>{});
}

}  // namespace

bool winograd_supports(const Shape& W, const Window& window) {
  const bool dense = window.stride == Dims{1, 1} && W[2] == 3 && W[3] == 3;
  const bool strided = window.stride == Dims{2, 2} && W[2] == W[3] && (W[2] == 3 || W[2] == 4);
  return (dense || strided) && window.dilate == Dims{1, 1} && window.groups == 1 &&
         std::max(window.pad[0], window.pad[1]) <= 2 && W[0] % kPanel == 0 && W[1] % kPanel == 0;
}

WinogradScheme winograd_scheme(const Problem& problem, ComputeType compute_type) {
  const Window& window = problem.window;
  const Shape &x = problem.x.shape(), &W = problem.W.shape();
  const auto describe = []<class S>(Type<S>) {
    return WinogradScheme{S::Down::tile, S::Across::tile, S::points};
  };
  if (is_strided(window)) {
    // Per axis a phase has 5 points, or 4 if it has one offset.
    const std::int64_t points = W[2] == 4 ? 10 : 9;
    return {winograd::FourOfTwo::tile, winograd::FourOfTwo::tile, points * points};
  }
  if (is_two_by_two({x[2], x[3]}, {x[2], x[3]}, window)) return describe(Type<TwoByTwo>{});
  if (compute_type == ComputeType::bfloat16) return describe(Type<Dense<bfloat16>>{});
  if (problem.pass == Pass::weight_grad) return describe(Type<FourByFour>{});
  const Shape& result = problem.result().shape();
  return with_tiles(result[0], {result[2], result[3]}, W[0] * W[1], describe);
}

void winograd_convolve(const Problem& problem, ComputeType compute_type, const Array& bias,
                       PackedWeightCache* cache) {
  const ChannelsLastOutput output(problem.result());
  const Array input = dense_channels_last(problem.first());
  const bool forward = problem.pass == Pass::forward;
  const Array W = contiguous(problem.W);
  const Array dense = bias.defined() ? contiguous(cast(bias, Dtype::float32)) : Array();
  with_kernel(forward ? input : output.dense(), W, forward ? output.dense() : input, problem.window,
              compute_type, dense.defined() ? dense.as<const float>() : nullptr, cache,
              [&](const auto& kernel) { kernel.convolve(problem.pass); });
  output.finish();
}

void winograd_weight_grad(const Problem& problem, ComputeType compute_type, bool add) {
  const Array x = dense_channels_last(problem.x), y = dense_channels_last(problem.y);
  with_kernel(x, problem.W, y, problem.window, compute_type, nullptr, nullptr,
              [&](const auto& kernel) { kernel.weight_grad(add); });
}

}  // namespace renga
