#include "channel/channel_parallel.h"

#include <vector>

#include "autograd/node.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

namespace {

void require_communicator(const char* name, const std::shared_ptr<Communicator>& comm) {
  require<std::invalid_argument>(comm != nullptr, name, ": expected a communicator, got none");
}

}  // namespace

Variable all_gather(const Variable& x, const std::shared_ptr<Communicator>& comm, int axis) {
  require_communicator("all_gather", comm);
  axis = normalize_axis("all_gather", axis, x.ndim());
  const std::int64_t length = x.shape(axis), first = comm->rank() * length;
  Shape shape = x.shape();
  shape[axis] *= comm->size();
  const Array y = empty(shape, x.dtype(), x.device());
  Arguments arguments{{x.array()}, {}};
  for (int r = 0; r < comm->size(); ++r) {
    arguments.ys.push_back(slice_view(y, axis, r * length, length));
  }
  comm->call(collective_named("all_gatherv"), "all_gather", std::move(arguments), {});
  return record("all_gather", y, {{x, [axis, first, length](const Variable& gy) {
                                     std::vector<Range> own;
                                     for (const std::int64_t n : gy.shape())
                                       own.push_back({0, n, 1});
                                     own[static_cast<std::size_t>(axis)] = {first, length, 1};
                                     return slice(gy, own);
                                   }}});
}

Variable sum_over_ranks(const Variable& x, const std::shared_ptr<Communicator>& comm) {
  require_communicator("sum_over_ranks", comm);
  const Array y = empty(x.shape(), x.dtype(), x.device());
  comm->call(collective_named("all_reduce"), "sum_over_ranks", {{x.array()}, {y}}, {});
  return record("sum_over_ranks", y,
                {{x, [comm](const Variable& gy) { return sum_gradients(gy, comm); }}});
}

Variable sum_gradients(const Variable& x, const std::shared_ptr<Communicator>& comm) {
  require_communicator("sum_gradients", comm);
  return record("sum_gradients", x.array(),
                {{x, [comm](const Variable& gy) { return sum_over_ranks(gy, comm); }}});
}

namespace nn {

Initializer own_rows(const Initializer& of_all, const Communicator& comm) {
  return [of_all, rank = comm.rank(), ranks = comm.size()](const Array& x) {
    Shape shape = x.shape();
    shape[0] *= ranks;
    const Array all = empty(shape, x.dtype(), x.device());
    of_all(all);
    copy(slice_view(all, 0, rank * x.shape(0), x.shape(0)), x);
  };
}

}  // namespace nn
}  // namespace renga
