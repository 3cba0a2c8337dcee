// Convolution of groups of few channels, each of which would fill a part of a vector alone, or one
// vector. Results do not depend on the number of threads.
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/grouped_kernel.h"
#include "ops/convolution/cpu/selection.h"
#include "simd/cpu_features.h"

namespace renga::convolution {
namespace {

using grouped::Geometry, grouped::Kernel;

std::int64_t group_size(const Problem& problem) { return problem.W.shape(1); }

// The input gradient at stride 1 is the convolution of gy with the kernel reversed.
Geometry geometry_of(const Problem& problem, const Array& source, const Array& result) {
  const Shape& W = problem.W.shape();
  const auto& [stride, pad, dilate, groups] = problem.window;
  Geometry geometry{source, result, {W[2], W[3]}, stride, pad, dilate};
  if (problem.pass == Pass::input_grad) {
    for (int axis = 0; axis < 2; ++axis) {
      geometry.pad[axis] = (W[2 + axis] - 1) * dilate[axis] - pad[axis];
    }
  }
  return geometry;
}

// Calls body(weight, packed weight) with the indices of each: of (O, I / groups, taps), and of
// (blocks of `width` channels, taps, input channels of a group, `width`).
template <class Body>
void for_each_weight(const Problem& problem, std::int64_t width, const Body& body) {
  const std::int64_t size = group_size(problem), channels = problem.W.shape(0);
  const std::int64_t taps = problem.W.shape(2) * problem.W.shape(3);
  const bool is_reversed = problem.pass == Pass::input_grad;
  std::int64_t packed = 0;
  for (std::int64_t block = 0; block < channels; block += width) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t input = 0; input < size; ++input) {
        for (std::int64_t c = block; c < block + width; ++c, ++packed) {
          const std::int64_t first = c / size * size;  // channel of the group
          const std::int64_t pair =
              is_reversed ? (first + input) * size + c - first : c * size + input;
          body(pair * taps + (is_reversed ? taps - 1 - tap : tap), packed);
        }
      }
    }
  }
}

// Calls body(kernel).
template <class Body>
void with_kernel(const Problem& problem, const Geometry& geometry, const Body& body) {
  const std::int64_t size = group_size(problem);
  if (problem.x.dtype() == Dtype::float64) {
    return size == 2 ? body(Kernel<double, 2>(geometry)) : body(Kernel<double, 4>(geometry));
  }
  if (size == 2) return body(Kernel<float, 2>(geometry));
  if (size == 4) return body(Kernel<float, 4>(geometry));
  body(Kernel<float, 8>(geometry));
}

void convolve(const Problem& problem, const Array& bias) {
  const ChannelsLastOutput output(problem.result());
  const Geometry geometry =
      geometry_of(problem, dense_channels_last(problem.first()), output.dense());
  const Array W = contiguous(problem.W), packed = empty({W.size()}, W.dtype());
  with_kernel(problem, geometry, [&]<class T, int size>(const Kernel<T, size>& kernel) {
    T* const to = packed.as<T>();
    for_each_weight(problem, kernel.kWidth,
                    [from = W.as<const T>(), to](auto i, auto j) { to[j] = from[i]; });
    kernel.convolve(to, bias.defined() ? bias.as<const T>() : nullptr);
  });
  output.finish();
}

void weight_grad(const Problem& problem) {
  const Geometry geometry =
      geometry_of(problem, dense_channels_last(problem.x), dense_channels_last(problem.y));
  const Array gW = empty(problem.W.shape(), problem.W.dtype());
  with_kernel(problem, geometry, [&]<class T, int size>(const Kernel<T, size>& kernel) {
    const Array sums = kernel.weight_grad();
    for_each_weight(
        problem, kernel.kWidth,
        [from = sums.as<const T>(), to = gW.as<T>()](auto i, auto j) { to[i] = from[j]; });
  });
  copy(gW, problem.W);
}

// Whether groups have 2, 4 or in float32 8 channels, and vectors have those of whole groups.
bool supports(const Problem& problem) {
  const std::int64_t size = group_size(problem), groups = problem.window.groups;
  const Dtype dtype = problem.x.dtype();
  const bool is_single =
      dtype == Dtype::float32 && is_common(problem) && problem.arithmetic == Arithmetic::float32;
  const bool is_double = dtype == Dtype::float64 && has_common_extents(problem);
  const std::int64_t width = is_double ? 4 : 8;
  const bool is_reversible = problem.window.stride == Dims{1, 1};
  return (is_single || is_double) && (size == 2 || size == 4 || size == 8) && size <= width &&
         groups > 1 && problem.W.shape(0) == groups * size && groups * size % width == 0 &&
         (problem.pass != Pass::input_grad || is_reversible);
}

// Without AVX-512, oneDNN multiplies matrices group by group, or blocks of 8 channels, which took
// 1.2 to 5 times as long. With AVX-512 it has other kernels, but none for float64.
double cost(const Problem& problem) {
  const bool has_others = problem.x.dtype() == Dtype::float32 && simd::has_avx512();
  return has_others ? highest_cost(problem) : no_cost(problem);
}

void run(const Problem& problem, const Epilogue& epilogue) {
  problem.pass == Pass::weight_grad ? weight_grad(problem) : convolve(problem, epilogue.bias);
}

}  // namespace

constinit const Algorithm kGrouped{
    .name = "grouped", .supports = supports, .cost = cost, .run = run, .adds_bias = true};

}  // namespace renga::convolution
