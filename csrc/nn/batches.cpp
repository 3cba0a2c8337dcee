#include "nn/batches.h"

#include <algorithm>

#include "nn/numpy_random.h"
#include "ops/indexing/indexing.h"
#include "tensor/views.h"

namespace renga {
namespace {

// The rows of x, of any number of axes, with these indices.
Array rows(const Array& x, const Array& ids) {
  const Array all = contiguous(x);
  Shape shape = x.shape();
  shape[0] = ids.size();
  const Array table =
      reshape_view(all, {1, x.shape(0), x.size() / std::max<std::int64_t>(x.shape(0), 1)});
  return reshape_view(gather(table, to_device(ids, x.device())), shape);
}

}  // namespace

Batches::Batches(Array xs, Array ts, std::int64_t size, int rank, int ranks)
    : xs_(std::move(xs)),
      ts_(std::move(ts)),
      size_(static_cast<std::size_t>(size)),
      rank_(static_cast<std::size_t>(rank)),
      ranks_(static_cast<std::size_t>(ranks)) {
  require<std::invalid_argument>(xs_.ndim() > 0 && ts_.ndim() > 0 && xs_.shape(0) == ts_.shape(0),
                                 "Batches: expected a label for each sample, got ", xs_.shape(),
                                 " and ", ts_.shape());
  require<std::invalid_argument>(0 <= rank && rank < ranks, "Batches: expected a rank below ",
                                 ranks, ", got ", rank);
  require<std::invalid_argument>(size > 0 && size % ranks == 0, "Batches: expected a size that ",
                                 ranks, " ranks divide, got ", size);
  order_ = numpy_random().permutation(xs_.shape(0));
}

std::pair<Variable, Array> Batches::operator[](std::size_t index) const {
  require<std::out_of_range>(index < count(), "Batches: expected a batch below ", count(), ", got ",
                             index);
  const std::size_t part = size_ / ranks_;
  const Array ids = empty({static_cast<std::int64_t>(part)}, Dtype::int64);
  std::copy_n(order_.begin() + static_cast<std::ptrdiff_t>(index * size_ + rank_ * part), part,
              ids.as<std::int64_t>());
  return {Variable(rows(xs_, ids)), rows(ts_, ids)};
}

}  // namespace renga
