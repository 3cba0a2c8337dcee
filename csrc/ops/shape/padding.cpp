// Padding by copies of elements.
#include <algorithm>
#include <string>
#include <vector>

#include "autograd/node.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/extents.h"
#include "tensor/parts.h"
#include "tensor/views.h"

namespace renga {
namespace {

// Elements next to each other that copy elements a step of -1, 0 or 1 apart, of the same axis.
struct Copied {
  std::int64_t to, from, length, step;
};

struct PaddedAxis {
  std::int64_t before, size;
  std::vector<Copied> copied;

  // An axis without copies may be a part of it.
  Array middle(const Array& y, int axis) const {
    return copied.empty() ? y : slice_view(y, axis, before, size);
  }
};

// Elements at which ends of an axis of n elements are copied, by their position beyond them.
std::int64_t source_of(const std::string& mode, std::int64_t i, std::int64_t n) {
  const auto repeated = [i](std::int64_t period) { return (i % period + period) % period; };
  if (mode == "edge" || n == 1) return std::clamp<std::int64_t>(i, 0, n - 1);
  if (mode == "wrap") return repeated(n);
  const std::int64_t twice = mode == "symmetric" ? 1 : 0;
  const std::int64_t at = repeated(2 * (n - 1 + twice));
  return at < n ? at : 2 * (n - 1) + twice - at;
}

PaddedAxis padded_axis(const std::string& mode, std::int64_t before, std::int64_t n,
                       std::int64_t after) {
  PaddedAxis axis{before, n, {}};
  const auto add_side = [&](std::int64_t begin, std::int64_t end) {
    const auto step_at = [&](std::int64_t i) {
      return source_of(mode, i + 1, n) - source_of(mode, i, n);
    };
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t first = i,
                         step = i + 1 < end ? std::clamp<std::int64_t>(step_at(i), -1, 1) : 1;
      for (++i; i < end && step_at(i - 1) == step;) ++i;
      axis.copied.push_back({first + before, source_of(mode, first, n) + before, i - first, step});
    }
  };
  add_side(-before, 0);
  add_side(n, n + after);
  return axis;
}

std::vector<PaddedAxis> padded_axes(const Shape& shape, const Dims& before, const Dims& after,
                                    const std::string& mode) {
  std::vector<PaddedAxis> axes;
  for (int i = 0; i < shape.size(); ++i) {
    axes.push_back(padded_axis(mode, before[i], shape[i], after[i]));
  }
  return axes;
}

Array source_view(const Array& y, int axis, const Copied& part) {
  return slice_view(y, axis, part.from, part.length, part.step);
}

Array middle_of(Array y, const std::vector<PaddedAxis>& axes, int first) {
  for (int i = first; i < y.ndim(); ++i) y = axes[static_cast<std::size_t>(i)].middle(y, i);
  return y;
}

// Each is the other's gradient.
Variable extended(const Variable& x, const std::vector<PaddedAxis>& axes, const Shape& shape);

// Adds to elements what their copies have, from the last axis to the first.
Variable folded(const Variable& gy, const std::vector<PaddedAxis>& axes) {
  const Array sum = copy_of(gy.array());
  for (int i = gy.ndim() - 1; i >= 0; --i) {
    const Array part = middle_of(sum, axes, i + 1);
    for (const Copied& copied : axes[static_cast<std::size_t>(i)].copied) {
      Array added = slice_view(part, i, copied.to, copied.length);
      Array target = source_view(part, i, copied);
      if (copied.step == 0) {
        added = reduce(Reduction::sum, added, Axes{i});
        target = slice_view(target, i, 0, 1);
      }
      copy(apply("pad", Binary::add, target, cast(added, target.dtype())), target);
    }
  }
  const Array gx = copy_of(middle_of(sum, axes, 0));
  return record("PadGrad", gx, {{gy, [axes, shape = gy.shape()](const Variable& ggx) {
                                   return extended(ggx, axes, shape);
                                 }}});
}

Variable extended(const Variable& x, const std::vector<PaddedAxis>& axes, const Shape& shape) {
  const Array y = empty_in_order(shape, memory_order(x.array()), x.dtype(), x.device());
  Axes outer;
  for (const std::int64_t axis : memory_order(y)) {
    if (!axes[static_cast<std::size_t>(axis)].copied.empty()) break;
    outer.push_back(axis);
  }
  for_each_part(y, outer, [&](const Part& part) {
    const Array to = part.of(y);
    copy(part.of(x.array()), middle_of(to, axes, 0));
    for (int i = 0; i < y.ndim(); ++i) {
      const Array rows = middle_of(to, axes, i + 1);
      for (const Copied& copied : axes[static_cast<std::size_t>(i)].copied) {
        copy(source_view(rows, i, copied), slice_view(rows, i, copied.to, copied.length));
      }
    }
  });
  return record("Pad", y, {{x, [axes](const Variable& gy) { return folded(gy, axes); }}});
}

}  // namespace

Variable pad_by_copy(const Variable& x, const Dims& before, const Dims& after,
                     const std::string& mode) {
  const Shape shape = padded_shape(x, before, after);
  const std::string modes[] = {"edge", "reflect", "symmetric", "wrap"};
  require<std::invalid_argument>(std::ranges::find(modes, mode) != std::end(modes),
                                 "pad: expected edge, reflect, symmetric or wrap, got ", mode);
  for (int i = 0; i < x.ndim(); ++i) {
    require<std::invalid_argument>(x.shape(i) > 0 || shape[i] == 0,
                                   "pad: expected elements to copy, got ", x.shape());
  }
  require_memory("pad", shape, x.dtype(), x.device());
  return extended(x, padded_axes(x.shape(), before, after, mode), shape);
}

}  // namespace renga
