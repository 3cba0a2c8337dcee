#include "ops/normalization/multi_node.h"

#include "autograd/node.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {
namespace {

constexpr const char* kOp = "multi_node_batch_normalization";

// (ranks, ...) of float64, in host memory.
Array gather(const StatisticsGroup& ranks, const Array& local) {
  const Array all = ranks.all_gather(local);
  require(all.ndim() == local.ndim() + 1 && all.dtype() == local.dtype() &&
              all.size() == all.shape(0) * local.size(),
          kOp, ": expected an array of shape ", local.shape(), " of each rank, gathered ",
          all.shape());
  return all;
}

Array sum_of_rows(const Array& x) {
  Shape shape = x.shape();
  shape.erase(0);
  return reshape_view(reduce(Reduction::sum, x, {0}), shape);
}

// The sum over the ranks if `sum_forward`, else x; `sum_backward` says the same of the gradient.
Variable over_ranks(const StatisticsGroup& ranks, const Variable& x, bool sum_forward,
                    bool sum_backward) {
  auto vjp_x = [=](const Variable& gy) { return over_ranks(ranks, gy, sum_backward, sum_forward); };
  return record("OverRanks", sum_forward ? sum_over(ranks, x.array()) : x.array(), {{x, vjp_x}});
}

}  // namespace

BatchStatistics merge(const StatisticsGroup& ranks, const BatchStatistics& local) {
  if (local.mean.device().is_meta()) {
    const bool sharded = ranks.channel_offset.has_value();
    return {0, local.mean, local.var, sharded ? local.mean : local.gamma,
            sharded ? local.mean : local.beta};
  }
  const Array message = zeros({ranks.channel_offset ? 5 : 3, local.mean.size()}, Dtype::float64);
  fill(select_view(message, 0, 0), local.count);
  copy(local.mean, select_view(message, 0, 1));
  copy(local.var, select_view(message, 0, 2));
  if (ranks.channel_offset) {
    const std::int64_t last = local.mean.size() - local.gamma.size();
    require<std::invalid_argument>(0 <= *ranks.channel_offset && *ranks.channel_offset <= last, kOp,
                                   ": expected a first channel from 0 to ", last, ", got ",
                                   *ranks.channel_offset);
    const Array shard = slice_view(message, 1, *ranks.channel_offset, local.gamma.size());
    copy(local.gamma, select_view(shard, 0, 3));
    copy(local.beta, select_view(shard, 0, 4));
  }
  const Array all = gather(ranks, message);
  const auto row = [&](int i) { return select_view(all, 1, i); };

  // Variances are merged with the distances of their means from the common mean, so that nothing
  // cancels (Chan, Golub and LeVeque 1983). All ranks compute the same bits in the same order.
  const Array counts = row(0), count = sum_of_rows(counts);
  const Array weights = apply(kOp, Binary::divide, counts,
                              apply(kOp, Binary::maximum, count, full({}, 1, Dtype::float64)));
  const auto average = [&](const Array& x) {
    return sum_of_rows(apply(kOp, Binary::multiply, weights, x));
  };
  const Array mean = average(row(1));
  const Array distance = apply(kOp, Binary::subtract, row(1), mean);
  const Array var = average(apply(kOp, Binary::add, row(2), apply(Unary::square, distance)));

  const auto as_local = [&](const Array& x) {
    return to_device(cast(x, local.mean.dtype()), local.mean.device());
  };
  const bool sharded = ranks.channel_offset.has_value();
  return {count.size() == 0 ? 0 : count.as<double>()[0], as_local(mean), as_local(var),
          sharded ? as_local(sum_of_rows(row(3))) : local.gamma,
          sharded ? as_local(sum_of_rows(row(4))) : local.beta};
}

Array sum_over(const StatisticsGroup& ranks, const Array& x) {
  if (x.device().is_meta()) return x;
  const Array local = contiguous(to_device(cast(x, Dtype::float64), Device{}));
  return to_device(cast(sum_of_rows(gather(ranks, local)), x.dtype()), x.device());
}

Variable sum_over(const StatisticsGroup& ranks, const Variable& x) {
  return over_ranks(ranks, x, true, true);
}

Variable gather_parameter(const StatisticsGroup& ranks, const Variable& gamma,
                          std::int64_t channels) {
  if (!ranks.shared_parameters) return gamma;
  if (!ranks.channel_offset) return over_ranks(ranks, gamma, false, true);
  const std::int64_t after = channels - *ranks.channel_offset - gamma.size();
  return sum_over(ranks, pad(gamma, {*ranks.channel_offset}, {after}, 0));
}

Variable parameter_gradient(const StatisticsGroup& ranks, const Variable& local,
                            const Variable& sum, const Shape& shape) {
  if (!ranks.shared_parameters) return reshape(local, shape);
  if (!ranks.channel_offset) return reshape(over_ranks(ranks, local, true, false), shape);
  return slice(reshape(sum, {sum.size()}), {{*ranks.channel_offset, shape.product(), 1}});
}

}  // namespace renga
