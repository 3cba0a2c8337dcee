#include "ops/shape/window.h"

namespace renga {
namespace {

constexpr std::int64_t kEnd = std::int64_t{1} << 31;

bool all_within(const Dims& options, std::int64_t least) {
  return std::all_of(options.begin(), options.end(),
                     [least](std::int64_t n) { return n >= least && n < kEnd; });
}

}  // namespace

void check_window(const char* op, int axes, const Dims& stride, const Dims& pad,
                  const Dims& dilate) {
  require<std::invalid_argument>(
      stride.size() == axes && pad.size() == axes && dilate.size() == axes, op,
      ": expected stride, pad and dilate of ", axes, " axes, got ", stride, ", ", pad, " and ",
      dilate);
  require<std::invalid_argument>(
      all_within(stride, 1) && all_within(dilate, 1) && all_within(pad, 0), op,
      ": expected stride > 0, dilate > 0 and pad >= 0, all below 2^31, got ", stride, ", ", dilate,
      " and ", pad);
}

void check_padded(const char* op, const Shape& shape, const Dims& pad, Dtype dtype, Device device) {
  Shape padded = shape;
  for (int axis = 0; axis < pad.size(); ++axis) {
    padded[2 + axis] = saturated_sum(shape[2 + axis], 2 * pad[axis]);
  }
  require_memory(op, padded, dtype, device);
}

}  // namespace renga
