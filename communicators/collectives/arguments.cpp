#include "collectives/arguments.h"

namespace renga {

namespace {

// (ranks, …)
Shape with_rank_axis(Shape shape, int ranks) {
  shape.insert(0, ranks);
  return shape;
}

void require_mean_of_floats(const char* name, Reduction reduction, Dtype dtype) {
  require(reduction != Reduction::mean || is_float(dtype), name,
          ": expected a floating dtype for mean, got ", dtype);
}

}  // namespace

std::optional<Dtype> floating_dtype(const std::string& name) {
  if (name.empty()) return {};
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
    if (name == name_of(dtype)) return dtype;
  }
  fail<std::invalid_argument>("all_reduce: expected a floating communication dtype, got ", name);
}

void require_same_form(const char* name, const Array& x, const Array& y) {
  require(x.shape() == y.shape() && x.dtype() == y.dtype(), name, ": expected a result of ",
          x.dtype(), " ", x.shape(), ", got ", y.dtype(), " ", y.shape());
}

Call all_reduce_call(const std::vector<Array>& xs, const std::vector<Array>& ys,
                     Reduction reduction, std::optional<Dtype> communication_dtype) {
  require(!xs.empty() && xs.size() == ys.size(),
          "all_reduce: expected as many results as arrays, got ", xs.size(), " and ", ys.size());
  const Dtype dtype = xs[0].dtype(), sent_as = communication_dtype.value_or(dtype);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    require(xs[i].dtype() == dtype, "all_reduce: expected one dtype, got ", dtype, " and ",
            xs[i].dtype());
    require_same_form("all_reduce", xs[i], ys[i]);
  }
  require(sent_as == dtype || (is_float(dtype) && is_float(sent_as)),
          "all_reduce: expected floating dtypes to convert between, got ", dtype, " and ", sent_as);
  require_mean_of_floats("all_reduce", reduction, dtype);
  return Call("all_reduce").with(xs, sent_as).with_detail(name_of(reduction));
}

Call reduce_scatter_call(const Array& x, const Array& y, Reduction reduction, int ranks) {
  const Shape shape = with_rank_axis(y.shape(), ranks);
  require(x.shape() == shape && x.dtype() == y.dtype(), "reduce_scatter: expected x of ", y.dtype(),
          " ", shape, " for a result of ", y.shape(), ", got ", x.dtype(), " ", x.shape());
  require_mean_of_floats("reduce_scatter", reduction, x.dtype());
  return Call("reduce_scatter").with(x.shape(), x.dtype()).with_detail(name_of(reduction));
}

Call all_gather_call(const Array& x, const Array& y, int ranks) {
  const Shape shape = with_rank_axis(x.shape(), ranks);
  require(y.shape() == shape && y.dtype() == x.dtype(), "all_gather: expected a result of ",
          x.dtype(), " ", shape, ", got ", y.dtype(), " ", y.shape());
  return Call("all_gather").with(x.shape(), x.dtype());
}

Call all_to_all_call(const Array& x, const Array& y, int ranks) {
  require(x.ndim() > 0 && x.shape(0) == ranks, "all_to_all: expected one row for each of ", ranks,
          " ranks, got shape ", x.shape());
  require_same_form("all_to_all", x, y);
  return Call("all_to_all").with(x.shape(), x.dtype());
}

}  // namespace renga
