#include "ops/convolution/cpu/algorithm_selection.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <sstream>
#include <string>

#include "devices/rounding.h"
#include "ops/convolution/algorithm_cache.h"
#include "ops/convolution/cpu/depthwise.h"
#include "ops/convolution/cpu/gemm.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "ops/convolution/cpu/winograd/winograd.h"
#include "ops/matmul/cpu/packed_gemm.h"
#include "ops/matmul/cpu/selection.h"
#include "simd/tile_unit.h"

namespace renga {
namespace {

using Algorithm = ConvolutionAlgorithm;

std::atomic<Algorithm> requested{Algorithm::automatic};

constexpr std::array kAlgorithms{"auto", "direct", "winograd", "gemm", "depthwise", "tiles"};
constexpr std::array kPasses{"forward", "input gradient", "weight gradient"};

const char* name_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)];
}

// The time of a multiplication, in those of float32: AVX-512 multiplies twice as many bfloat16
// numbers at a time.
double multiplication_cost(Algorithm algorithm, ComputeType compute_type) {
  return compute_type == ComputeType::float32 || algorithm == Algorithm::gemm ? 1 : 0.5;
}

// The number of (output position, kernel offset) pairs along an axis that read inside of the image.
std::int64_t reads_inside(const Problem& problem, int axis) {
  const auto& [pass, x, W, y, window] = problem;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < y.shape(2 + axis); ++i) {
    const std::int64_t first = i * window.stride[axis] - window.pad[axis];
    count += std::max<std::int64_t>(0, std::min(first + W.shape(2 + axis), x.shape(2 + axis)) -
                                           std::max<std::int64_t>(first, 0));
  }
  return count;
}

// Estimates the time of each algorithm from the shapes. The unit is one float32 multiplication; all
// algorithms multiply at the machine's speed (docs/performance.md has the measurements).
struct CostModel {
  const Problem& problem;
  ComputeType compute_type;

  // Kernel offsets on the padding are skipped. The output channels are computed in vectors of 16.
  // Before that, the weights are reordered, at a cost of `reorder` per element.
  double direct_cost() const {
    constexpr double reorder = 24;
    constexpr std::int64_t vector = 16;
    const std::int64_t channels = output_channels();
    const std::int64_t computed =
        problem.pass == Pass::weight_grad ? channels : round_up(channels, vector);
    const auto positions = static_cast<double>(problem.y.shape(0) * reads_inside(problem, 0) *
                                               reads_inside(problem, 1));
    const std::int64_t input_channels = channel_pairs() / channels;
    return static_cast<double>(computed * input_channels) *
               multiplication_cost(Algorithm::direct, compute_type) * positions +
           reorder * static_cast<double>(problem.W.size());
  }

  // Computes whole groups of tiles. Transforms cost `image` per transformed element of an image and
  // `weight` per transformed element of a filter.
  double winograd_cost() const {
    constexpr double image = 14, weight = 5;
    const Array &y = problem.y, &W = problem.W;
    const WinogradScheme scheme = winograd_scheme(problem, compute_type);
    const std::int64_t covering =
        y.shape(0) * divide_up(y.shape(2), scheme.rows) * divide_up(y.shape(3), scheme.columns);
    const std::int64_t groups = divide_up(covering, kPanelRows);
    const auto tiles = static_cast<double>(groups * kPanelRows);
    const auto channels = static_cast<double>(W.shape(0) + W.shape(1));
    const auto pairs = static_cast<double>(channel_pairs());
    const double multiplication = multiplication_cost(Algorithm::winograd, compute_type);
    return static_cast<double>(scheme.points) *
           (tiles * (multiplication * pairs + image * channels) + weight * pairs);
  }

  // Computes all kernel offsets for every row, in whole panels. Adding up (col2im) costs `add` per
  // product that reaches the result.
  double gemm_cost() const {
    constexpr double add = 20;
    const bool forward = problem.pass == Pass::forward;
    const Array &input = forward ? problem.x : problem.y, &result = forward ? problem.y : problem.x;
    const std::int64_t columns = round_up(input.shape(3), kPanelRows);
    const std::int64_t depth = round_up(channel_pairs() / output_channels(), kPanel);
    const std::int64_t width =
        gemm_width(output_channels(), problem.W.shape(2) * problem.W.shape(3));
    const auto rows = static_cast<double>(input.shape(0) * input.shape(2));
    const std::int64_t added =
        result.shape(0) * reads_inside(problem, 0) * reads_inside(problem, 1);
    return rows * static_cast<double>(columns * depth * width) + add * static_cast<double>(added);
  }

  bool supports(Algorithm algorithm) const {
    if (algorithm == Algorithm::winograd) {
      return winograd_supports(problem.W.shape(), problem.window);
    }
    if (algorithm == Algorithm::gemm) {
      return problem.pass != Pass::weight_grad && gemm_supports(output_channels(), problem.window);
    }
    return algorithm == Algorithm::direct;
  }

  Algorithm cheapest() const {
    if (supports(Algorithm::winograd)) {
      return winograd_cost() < direct_cost() ? Algorithm::winograd : Algorithm::direct;
    }
    return gemm_cost() < direct_cost() ? Algorithm::gemm : Algorithm::direct;
  }

 private:
  std::int64_t channel_pairs() const { return problem.W.shape(0) * problem.W.shape(1); }
  // Of the image that is written, if the pass writes one.
  std::int64_t output_channels() const {
    return problem.W.shape(problem.pass == Pass::input_grad ? 1 : 0);
  }
};

// What the selection depends on, as the algorithm cache's key. The extents of y do not follow from
// the rest (cover_all). Dilation and groups are left out: such problems have no selection.
std::string cache_key(const Problem& problem, ComputeType compute_type) {
  const auto& [pass, x, W, y, window] = problem;
  std::ostringstream text;
  text << "convolution " << kPasses[static_cast<std::size_t>(pass)] << ", x " << x.shape() << ", W "
       << W.shape() << ", y " << y.shape() << ", stride " << window.stride << ", pad " << window.pad
       << ", products of " << (compute_type == ComputeType::bfloat16 ? "bfloat16" : "float32");
  return text.str();
}

bool may_use_tiles(const Problem& problem) { return simd::has_tiles() && tiles_support(problem); }

ComputeType compute_type_for(const Problem& problem) {
  const Dtype dtype = problem.x.dtype();
  const bool coarse = dtype == Dtype::bfloat16 || compute_precision() == Precision::medium;
  const bool is_faster = may_use_tiles(problem) ? bfloat16_is_faster() : dot_products_are_faster();
  return coarse && is_faster ? ComputeType::bfloat16 : ComputeType::float32;
}

// oneDNN keeps pixels that several kernel offsets read in registers, which pays for large kernels;
// its depthwise weight gradient takes five times as long as renga's.
Algorithm select_depthwise(const Problem& problem) {
  const bool small = problem.W.shape(3) <= 3;
  return problem.pass == Pass::weight_grad || small ? Algorithm::depthwise : Algorithm::direct;
}

}  // namespace

void use_convolution_algorithm(const std::string& name) {
  const auto found = std::find(kAlgorithms.begin(), kAlgorithms.end(), name);
  require<std::invalid_argument>(found != kAlgorithms.end(),
                                 "use_convolution_kernel: expected auto, direct, winograd, gemm or "
                                 "depthwise, got ",
                                 name);
  requested = static_cast<Algorithm>(found - kAlgorithms.begin());
}

SelectedAlgorithm select_algorithm(const Problem& problem) {
  const Algorithm wanted = requested;
  const Array& x = problem.x;
  const ComputeType compute_type = compute_type_for(problem);
  if (x.dtype() == Dtype::float32 && compute_precision() == Precision::high && bf16x3_is_faster()) {
    return {Algorithm::direct, ComputeType::bfloat16, true};
  }
  if (x.ndim() == 4 && depthwise_supports(problem.W.shape(), problem.window)) {
    const Algorithm algorithm = wanted == Algorithm::automatic ? select_depthwise(problem) : wanted;
    return {algorithm == Algorithm::depthwise ? algorithm : Algorithm::direct, compute_type};
  }
  const bool wants_tiles = wanted == Algorithm::automatic || wanted == Algorithm::tiles;
  if (wants_tiles && compute_type == ComputeType::bfloat16 && may_use_tiles(problem)) {
    return {Algorithm::tiles, compute_type};
  }
  const CostModel model{problem, compute_type};
  const bool has_alternatives =
      x.ndim() == 4 && (model.supports(Algorithm::winograd) || model.supports(Algorithm::gemm));
  if (!has_alternatives) return {Algorithm::direct, compute_type};
  if (wanted != Algorithm::automatic) {
    return {model.supports(wanted) ? wanted : Algorithm::direct, compute_type};
  }
  const std::string name =
      cached_algorithm(cache_key(problem, compute_type), [&] { return name_of(model.cheapest()); });
  // A loaded name may be one that this problem does not support, or none at all.
  for (Algorithm algorithm : {Algorithm::winograd, Algorithm::gemm}) {
    if (name == name_of(algorithm) && model.supports(algorithm)) return {algorithm, compute_type};
  }
  return {Algorithm::direct, compute_type};
}

}  // namespace renga
