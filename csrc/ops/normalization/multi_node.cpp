#include "ops/normalization/multi_node.h"

#include "autograd/node.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {
namespace {

constexpr const char* kOp = "multi_node_batch_normalization";

// (ranks, ...) of float64, in the memory of the host, where messages are.
Array gathered(const Ranks& ranks, const Array& own) {
  const Array all = ranks.gather(own);
  require(all.ndim() == own.ndim() + 1 && all.dtype() == own.dtype() &&
              all.size() == all.shape(0) * own.size(),
          kOp, ": expected an array of shape ", own.shape(), " of each rank, gathered ",
          all.shape());
  return all;
}

Array sum_of_rows(const Array& x) {
  Shape shape = x.shape();
  shape.erase(0);
  return reshape_view(reduce(Reduction::sum, x, {0}), shape);
}

// The sum of the ranks' variables where `here`, else this rank's own; `there` says the same of the
// backward pass.
Variable over_ranks(const Ranks& ranks, const Variable& x, bool here, bool there) {
  auto to_x = [=](const Variable& gy) { return over_ranks(ranks, gy, there, here); };
  return record("OverRanks", here ? sum_over(ranks, x.array()) : x.array(), {{x, to_x}});
}

}  // namespace

BatchStatistics merge(const Ranks& ranks, const BatchStatistics& own) {
  const Array told = zeros({ranks.first ? 5 : 3, own.mean.size()}, Dtype::float64);
  fill(select_view(told, 0, 0), own.count);
  copy(own.mean, select_view(told, 0, 1));
  copy(own.var, select_view(told, 0, 2));
  if (ranks.first) {
    const std::int64_t last = own.mean.size() - own.gamma.size();
    require<std::invalid_argument>(0 <= *ranks.first && *ranks.first <= last, kOp,
                                   ": expected a first channel from 0 to ", last, ", got ",
                                   *ranks.first);
    const Array part = slice_view(told, 1, *ranks.first, own.gamma.size());
    copy(own.gamma, select_view(part, 0, 3));
    copy(own.beta, select_view(part, 0, 4));
  }
  const Array all = gathered(ranks, told);
  const auto row = [&](int i) { return select_view(all, 1, i); };

  // Variances are merged by the distance of their means from the common one (Chan, Golub and
  // LeVeque 1983): nothing cancels. All ranks do the same in the same order and get the same bits.
  const Array counts = row(0), count = sum_of_rows(counts);
  const Array weights = apply(kOp, Binary::divide, counts,
                              apply(kOp, Binary::maximum, count, full({}, 1, Dtype::float64)));
  const auto average = [&](const Array& x) {
    return sum_of_rows(apply(kOp, Binary::multiply, weights, x));
  };
  const Array mean = average(row(1));
  const Array distance = apply(kOp, Binary::subtract, row(1), mean);
  const Array var = average(apply(kOp, Binary::add, row(2), apply(Unary::square, distance)));

  const auto as_own = [&](const Array& x) {
    return to_device(cast(x, own.mean.dtype()), own.mean.device());
  };
  const bool parts = ranks.first.has_value();
  return {count.size() == 0 ? 0 : count.as<double>()[0], as_own(mean), as_own(var),
          parts ? as_own(sum_of_rows(row(3))) : own.gamma,
          parts ? as_own(sum_of_rows(row(4))) : own.beta};
}

Array sum_over(const Ranks& ranks, const Array& x) {
  const Array own = contiguous(to_device(cast(x, Dtype::float64), Device{}));
  return to_device(cast(sum_of_rows(gathered(ranks, own)), x.dtype()), x.device());
}

Variable sum_over(const Ranks& ranks, const Variable& x) {
  return over_ranks(ranks, x, true, true);
}

Variable whole_parameter(const Ranks& ranks, const Variable& gamma, std::int64_t channels) {
  if (!ranks.common) return gamma;
  if (!ranks.first) return over_ranks(ranks, gamma, false, true);
  const std::int64_t after = channels - *ranks.first - gamma.size();
  return sum_over(ranks, pad(gamma, {*ranks.first}, {after}, 0));
}

Variable parameter_gradient(const Ranks& ranks, const Variable& own, const Variable& sum,
                            const Shape& shape) {
  if (!ranks.common) return reshape(own, shape);
  if (!ranks.first) return reshape(over_ranks(ranks, own, true, false), shape);
  return slice(reshape(sum, {sum.size()}), {{*ranks.first, shape.product(), 1}});
}

}  // namespace renga
