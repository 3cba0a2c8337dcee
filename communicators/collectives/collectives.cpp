#include "collectives/collectives.h"

#include <algorithm>

#include "collectives/buffers.h"
#include "tensor/overlap.h"

namespace renga {

const DeviceLibrary* device_library = nullptr;

namespace {

// (ranks, …)
Shape with_rank_axis(Shape shape, int ranks) {
  shape.insert(0, ranks);
  return shape;
}

// x, or a copy if y would overwrite it.
Array copied_if_overlapping(const Array& x, const Array& y) {
  return MemoryRanges({x, y}).overlap() ? copy_of(x) : x;
}

// The array of a list of one.
const Array& only(const char* name, const std::vector<Array>& xs) {
  require(xs.size() == 1 && xs[0].defined(), name, ": expected an array, got none");
  return xs[0];
}

void require_same_form(const char* name, const Array& x, const Array& y) {
  require(x.shape() == y.shape() && x.dtype() == y.dtype(), name, ": expected a result of ",
          x.dtype(), " ", x.shape(), ", got ", y.dtype(), " ", y.shape());
}

void require_mean_of_floats(const char* name, ReduceOp reduction, Dtype dtype) {
  require(reduction != ReduceOp::mean || is_float(dtype), name,
          ": expected a floating dtype for mean, got ", dtype);
}

Call check_all_reduce(const char* name, Arguments& a, const Topology& /*topology*/) {
  require(!a.xs.empty() && a.xs.size() == a.ys.size(), name,
          ": expected as many results as arrays, got ", a.xs.size(), " and ", a.ys.size());
  const Dtype dtype = a.dtype(), sent_as = a.communication_dtype();
  // In windows, an array is written before the next is read.
  a.in_place = sent_as == dtype && !MemoryRanges(a.ys).overlap();
  for (std::size_t i = 0; i < a.xs.size(); ++i) {
    require(a.xs[i].defined(), name, ": expected an array, got none");
    require(a.xs[i].dtype() == dtype, name, ": expected one dtype, got ", dtype, " and ",
            a.xs[i].dtype());
    require_same_form(name, a.xs[i], a.ys[i]);
    a.in_place = a.in_place && a.xs[i].data() == a.ys[i].data();
  }
  require(sent_as == dtype || (is_float(dtype) && is_float(sent_as)), name,
          ": expected floating dtypes to convert between, got ", dtype, " and ", sent_as);
  require_mean_of_floats(name, a.reduction, dtype);
  const Call call = Call(name).with(a.xs, sent_as).with_detail(name_of(a.reduction));
  a.xs = safe_inputs(a.xs, a.ys);
  return call;
}

Call check_reduce_scatter(const char* name, Arguments& a, const Topology& topology) {
  const Array x = only(name, a.xs), y = only(name, a.ys);
  const Shape shape = with_rank_axis(y.shape(), topology.size);
  require(x.shape() == shape && x.dtype() == y.dtype(), name, ": expected x of ", y.dtype(), " ",
          shape, " for a result of ", y.shape(), ", got ", x.dtype(), " ", x.shape());
  require_mean_of_floats(name, a.reduction, x.dtype());
  a.xs[0] = copied_if_overlapping(x, y);
  return Call(name).with(x.shape(), x.dtype()).with_detail(name_of(a.reduction));
}

Call check_all_gather(const char* name, Arguments& a, const Topology& topology) {
  const Array x = only(name, a.xs), y = only(name, a.ys);
  const Shape shape = with_rank_axis(x.shape(), topology.size);
  require(y.shape() == shape && y.dtype() == x.dtype(), name, ": expected a result of ", x.dtype(),
          " ", shape, ", got ", y.dtype(), " ", y.shape());
  a.ys = rows_of(y);
  a.xs = safe_inputs(a.xs, a.ys, topology.rank);
  return Call(name).with(x.shape(), x.dtype());
}

Call check_all_gatherv(const char* name, Arguments& a, const Topology& topology) {
  require(std::ssize(a.ys) == topology.size, name, ": expected one result per rank, got ",
          a.ys.size());
  require_same_form(name, only(name, a.xs), a.ys[static_cast<std::size_t>(topology.rank)]);
  return Call(name);
}

Call check_all_to_all(const char* name, Arguments& a, const Topology& topology) {
  const Array x = only(name, a.xs), y = only(name, a.ys);
  require(x.ndim() > 0 && x.shape(0) == topology.size, name, ": expected one row for each of ",
          topology.size, " ranks, got shape ", x.shape());
  require_same_form(name, x, y);
  a.xs = rows_of(copied_if_overlapping(x, y));
  a.ys = rows_of(y);
  return Call(name).with(x.shape(), x.dtype());
}

Call check_all_to_allv(const char* name, Arguments& a, const Topology& topology) {
  require(std::ssize(a.xs) == topology.size && std::ssize(a.ys) == topology.size, name,
          ": expected one array per rank, got ", a.xs.size(), " and ", a.ys.size());
  Call call(name);
  if (a.root) call.with_peer(checked_rank(name, *a.root, topology.size));
  return call;
}

Call check_broadcast(const char* name, Arguments& a, const Topology& topology) {
  const int root = checked_rank(name, a.root.value_or(-1), topology.size);
  const Array& x = only(name, a.xs.empty() ? a.ys : a.xs);
  return Call(name).with(x.shape(), x.dtype()).with_peer(root);
}

constexpr Collective kCollectives[] = {
    {"all_reduce", check_all_reduce, &Collectives::all_reduce},
    {"reduce_scatter", check_reduce_scatter, &Collectives::reduce_scatter},
    {"all_gather", check_all_gather, &Collectives::all_gather},
    {"all_gatherv", check_all_gatherv, &Collectives::all_gather},
    {"all_to_all", check_all_to_all, &Collectives::all_to_all},
    {"all_to_allv", check_all_to_allv, &Collectives::all_to_all},
    {"broadcast", check_broadcast, &Collectives::broadcast},
};

}  // namespace

std::vector<Array> rows_of(const Array& x) {
  std::vector<Array> rows;
  rows.reserve(static_cast<std::size_t>(x.shape(0)));
  const Shape shape(std::span(x.shape().begin() + 1, x.shape().end()));
  const Strides strides(std::span(x.strides().begin() + 1, x.strides().end()));
  for (std::int64_t r = 0; r < x.shape(0); ++r) {
    rows.emplace_back(x.storage(), x.data() + r * x.strides()[0], shape, strides, x.dtype());
  }
  return rows;
}

std::span<const Collective> all_collectives() { return kCollectives; }

const Collective& collective_named(std::string_view name) {
  const auto* const found = std::ranges::find(kCollectives, name, &Collective::name);
  require<std::invalid_argument>(found != std::end(kCollectives), "expected a collective, got ",
                                 name);
  return *found;
}

std::optional<Dtype> floating_dtype(const std::string& name) {
  if (name.empty()) return {};
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
    if (name == name_of(dtype)) return dtype;
  }
  fail<std::invalid_argument>("all_reduce: expected a floating communication dtype, got ", name);
}

int checked_rank(const char* name, std::int64_t rank, int ranks) {
  require<std::invalid_argument>(rank >= 0 && rank < ranks, name, ": expected a rank in [0, ",
                                 ranks, "), got ", rank);
  return static_cast<int>(rank);
}

}  // namespace renga
