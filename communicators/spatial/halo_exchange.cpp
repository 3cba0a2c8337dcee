#include "spatial/halo_exchange.h"

#include "autograd/node.h"
#include "tensor/views.h"

namespace renga {
namespace {

constexpr std::int64_t kTowardsFirst = 0, kTowardsLast = 1;  // tags

struct Halo {
  std::shared_ptr<Communicator> comm;
  int axis;
  std::int64_t width;

  Array first(const Array& x) const { return slice_view(x, axis, 0, width); }
  Array last(const Array& x) const { return slice_view(x, axis, x.shape(axis) - width, width); }
  Array inner(const Array& x) const {
    return slice_view(x, axis, width, x.shape(axis) - 2 * width);
  }
};

// Neighbours have sent these arrays, which are undefined where there is no neighbour.
struct Received {
  Array from_before, from_after;
};

// Sends `to_before` to the rank before this one and `to_after` to the one after it.
Received swap_with_neighbours(Communicator& comm, const Array& to_before, const Array& to_after) {
  const LaunchOptions start{.wait = false};
  std::vector<Communicator::Result> pending;
  Received received;
  if (comm.rank() > 0) {
    received.from_before = empty(to_before.shape(), to_before.dtype(), to_before.device());
    pending.push_back(comm.receive({received.from_before}, comm.rank() - 1, kTowardsLast, start));
    pending.push_back(comm.send({contiguous(to_before)}, comm.rank() - 1, kTowardsFirst, start));
  }
  if (comm.rank() + 1 < comm.size()) {
    received.from_after = empty(to_after.shape(), to_after.dtype(), to_after.device());
    pending.push_back(comm.receive({received.from_after}, comm.rank() + 1, kTowardsFirst, start));
    pending.push_back(comm.send({contiguous(to_after)}, comm.rank() + 1, kTowardsLast, start));
  }
  for (const auto& work : pending) {
    if (work != nullptr) work->wait(0);
  }
  return received;
}

Variable add_halos(const Variable& x, const Halo& halo);

// The transpose of add_halos: what was copied to a neighbour is added there.
Variable fold_halos(const Variable& y, const Halo& halo) {
  const Array &all = y.array(), x = copy_of(halo.inner(all));
  const Received got = swap_with_neighbours(*halo.comm, halo.first(all), halo.last(all));
  if (got.from_before.defined()) arithmetic.add_to(halo.first(x), got.from_before);
  if (got.from_after.defined()) arithmetic.add_to(halo.last(x), got.from_after);
  return record("fold_halos", x, {{y, [halo](const Variable& gx) { return add_halos(gx, halo); }}});
}

Variable add_halos(const Variable& x, const Halo& halo) {
  Shape shape = x.shape();
  shape[halo.axis] += 2 * halo.width;
  const Array &own = x.array(), y = zeros(shape, x.dtype(), x.device());
  copy(own, halo.inner(y));
  const Received got = swap_with_neighbours(*halo.comm, halo.first(own), halo.last(own));
  if (got.from_before.defined()) copy(got.from_before, halo.first(y));
  if (got.from_after.defined()) copy(got.from_after, halo.last(y));
  return record("halo_exchange", y,
                {{x, [halo](const Variable& gy) { return fold_halos(gy, halo); }}});
}

}  // namespace

Variable halo_exchange(const Variable& x, const std::shared_ptr<Communicator>& comm, int axis,
                       std::int64_t width) {
  require<std::invalid_argument>(comm != nullptr,
                                 "halo_exchange: expected a communicator, got none");
  axis = normalize_axis("halo_exchange", axis, x.ndim());
  require(0 < width && width <= x.shape(axis), "halo_exchange: expected a width from 1 to ",
          x.shape(axis), ", the elements of this rank, got ", width);
  return add_halos(x, {comm, axis, width});
}

}  // namespace renga
