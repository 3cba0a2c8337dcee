#include "ops/loss/paths.h"

#include <algorithm>

#include "autograd/backward.h"
#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/indexing/index_check.h"
#include "ops/matmul/matmul.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<PathKernels> path_kernels{"paths"};

namespace {

Array to_kernel(const Array& x, Dtype dtype, Device device) {
  return to_device(contiguous(cast(x, dtype)), device);
}

// The logarithm of probability 0, finite so that sums with it do not overflow.
constexpr double kNever = -1e10;

// An (N, S) constant: 0 where is_possible(n, s), else kNever.
template <class IsPossible>
Variable possible(const Alignment& x, Device device, const IsPossible& is_possible) {
  const std::int64_t samples = x.path.shape(0), positions = x.path.shape(1);
  const Array mask = empty(x.path.shape(), Dtype::float64);
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t s = 0; s < positions; ++s) {
      mask.as<double>()[n * positions + s] = is_possible(n, s) ? 0 : kNever;
    }
  }
  return Variable(to_device(cast(mask, x.scores.dtype()), device));
}

// The numbers of the positions before, with probability 0 at the start.
Variable shifted(const Variable& alpha, std::int64_t shift) {
  const std::int64_t samples = alpha.shape(0), positions = alpha.shape(1);
  shift = std::min(shift, positions);
  return pad(slice(alpha, {{0, samples, 1}, {0, positions - shift, 1}}), {0, shift}, {0, 0},
             kNever);
}

// The loss, written with operations.
Variable compose(const Variable& given, const Alignment& x) {
  const Variable scores = cast(given, x.scores.dtype());
  const Device device = scores.device();
  const std::int64_t steps = scores.shape(0), samples = scores.shape(1), labels = scores.shape(2);
  const std::int64_t positions = x.path.shape(1);
  const auto* const path = x.path.as<const std::int64_t>();
  const auto* const lengths = x.lengths.as<const std::int64_t>();
  const Array chosen = zeros({samples, labels, positions}, Dtype::float64);
  for (std::int64_t i = 0; i < samples * positions; ++i) {
    const std::int64_t n = i / positions;
    chosen.as<double>()[(n * labels + path[i]) * positions + i % positions] = 1;
  }
  const Variable at_path =
      matmul(swapaxes(scores, 0, 1), Variable(to_device(cast(chosen, scores.dtype()), device)));
  const Variable start = possible(x, device, [](std::int64_t, std::int64_t s) { return s < 2; });
  const Variable skip = possible(x, device, [&](std::int64_t n, std::int64_t s) {
    const auto* const label = path + n * positions + s;
    return s >= 2 && *label != x.blank && *label != label[-2];
  });
  const Variable end = possible(x, device, [&](std::int64_t n, std::int64_t s) {
    const std::int64_t used = x.path_lengths.as<const std::int64_t>()[n];
    return s < used && s >= used - 2;
  });
  Variable alpha;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Variable step =
        squeeze(slice(at_path, {{0, samples, 1}, {t, 1, 1}, {0, positions, 1}}), Axes{1});
    if (t == 0) {
      alpha = add(step, start);
      continue;
    }
    const std::vector<Variable> ways{alpha, shifted(alpha, 1), add(shifted(alpha, 2), skip)};
    const Array going = empty({samples, 1}, Dtype::bool_);
    for (std::int64_t n = 0; n < samples; ++n) going.as<bool>()[n] = t < lengths[n];
    alpha = where(to_device(going, device), add(logsumexp(stack(ways, 0), Axes{0}), step), alpha);
  }
  return cast(negative(logsumexp(add(alpha, end), Axes{1})), given.dtype());
}

}  // namespace

Variable alignment_loss(const Variable& scores, const Array& path, const Array& lengths,
                        const Array& path_lengths, std::int64_t blank) {
  const char* op = "alignment_loss";
  require_floats(op, scores.array());
  const bool fits = scores.ndim() == 3 && path.ndim() == 2 && path.shape(0) == scores.shape(1) &&
                    lengths.shape() == Shape{scores.shape(1)} &&
                    path_lengths.shape() == lengths.shape();
  require(fits, op, ": expected shapes (T, N, K), (N, S), (N,) and (N,), got ", scores.shape(),
          ", ", path.shape(), ", ", lengths.shape(), " and ", path_lengths.shape());
  const Device device = path_kernels.computing(scores.device());
  const Dtype dtype = wide_dtype(scores.dtype());
  const Alignment x{to_kernel(scores.array(), dtype, device),
                    checked_indices(op, "path", path, scores.shape(2), device),
                    checked_indices(op, "lengths", lengths, scores.shape(0) + 1, device),
                    checked_indices(op, "path_lengths", path_lengths, path.shape(1) + 1, device),
                    blank};
  const Array alpha = empty({scores.shape(1), scores.shape(0), path.shape(1)}, dtype, device);
  const Array loss = empty({scores.shape(1)}, dtype, device);
  path_kernels.on(device).align(x, alpha, loss);
  auto vjp_scores = [=](const Variable& gy) {
    if (backprop_enabled()) {
      const Compose recompute = [&](std::span<const Variable> given) {
        return std::vector{compose(given[0], x)};
      };
      return recorded_gradients(recompute, {{scores}}, {{gy}})[0];
    }
    const Array gx = zeros(x.scores.shape(), dtype, device);
    path_kernels.on(device).align_grad(x, alpha, to_kernel(gy.array(), dtype, device), gx);
    return Variable(cast(to_device(gx, scores.device()), scores.dtype()));
  };
  const Array y = cast(to_device(loss, scores.device()), scores.dtype());
  return record("alignment_loss", y, {{scores, vjp_scores}});
}

std::vector<Variable> best_paths(const Variable& cost, const std::vector<Variable>& xs) {
  const char* op = "best_paths";
  require_floats(op, cost.array());
  require(!xs.empty() && cost.ndim() == 2 && cost.shape(0) == cost.shape(1), op,
          ": expected costs (K, K) and a step, got ", cost.shape(), " and ", xs.size(), " steps");
  const Device device = path_kernels.computing(cost.device());
  // Sums in float16 are rounded so much that a path below the best one may win.
  const Dtype dtype = wide_dtype(cost.dtype());
  std::vector<Array> steps, labels;
  for (const Variable& x : xs) {
    require(x.ndim() == 2 && x.shape(1) == cost.shape(0) &&
                (labels.empty() || x.shape(0) <= labels.back().shape(0)),
            op, ": expected steps (B, K) of sequences sorted by length, got ", x.shape());
    steps.push_back(to_kernel(x.array(), dtype, device));
    labels.push_back(empty({x.shape(0)}, Dtype::int32, device));
  }
  path_kernels.on(device).best_paths(to_kernel(cost.array(), dtype, device), steps, labels);
  std::vector<Variable> results;
  for (const Array& step : labels) results.emplace_back(to_device(step, cost.device()), false);
  return results;
}

}  // namespace renga
