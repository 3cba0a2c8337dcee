#include "ops/indexing/indexing.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/indexing/index_check.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/extents.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<IndexingKernels> indexing_kernels{"indexing"};

namespace {

using Ignored = std::optional<std::int64_t>;

// Each is the other's gradient. Indices are checked.
Variable gather_rows(const Array& ids, const Variable& w, Ignored ignore);
Variable scatter_add_rows(const Array& ids, const Variable& gy, const Shape& shape, Ignored ignore);
Variable gather_items(const Variable& x, const Array& t);
Variable scatter_items(const Variable& gy, const Array& t, const Shape& shape);

// Rows that are gathered several times: one array of zeros to which all gradients are added.
class RowGradientTerms final : public GradientTerms {
 public:
  bool add(const Array& ids, const Variable& gy, const Shape& shape, Ignored ignore) {
    const Array& rows = gy.array();
    if (!sum_.defined()) sum_ = zeros(shape, rows.dtype(), rows.device());
    if (sum_.dtype() != rows.dtype()) return false;
    indexing_kernels.on(rows.device()).scatter_add_rows(rows, ids, ignore, expand_view(sum_, 0));
    return true;
  }
  Variable sum(GradientSink&) override { return Variable(sum_); }

 private:
  Array sum_;
};

Variable gather_rows(const Array& ids, const Variable& w, Ignored ignore) {
  Shape shape = ids.shape();
  shape.push_back(w.shape(1));
  const Array y = empty(shape, w.dtype(), w.device());
  indexing_kernels.on(y.device()).gather_rows(expand_view(w.array(), 0), ids, ignore, y);
  auto vjp_w = [ids, shape = w.shape(), ignore](const Variable& gy, GradientSink& to) {
    auto* const terms = to.terms<RowGradientTerms>();
    if (terms != nullptr && terms->add(ids, gy, shape, ignore)) return Variable();
    return scatter_add_rows(ids, gy, shape, ignore);
  };
  return record("EmbedIDFunction", y, {{w, vjp_w}});
}

Variable scatter_add_rows(const Array& ids, const Variable& gy, const Shape& shape,
                          Ignored ignore) {
  const Array gw = zeros(shape, gy.dtype(), gy.device());
  indexing_kernels.on(gw.device()).scatter_add_rows(gy.array(), ids, ignore, expand_view(gw, 0));
  return record("EmbedIDGrad", gw,
                {{gy, [=](const Variable& ggw) { return gather_rows(ids, ggw, ignore); }}});
}

Variable gather_items(const Variable& x, const Array& t) {
  const Array y = empty(t.shape(), x.dtype(), x.device());
  indexing_kernels.on(y.device()).gather_items(x.array(), t, y);
  auto vjp_x = [t, shape = x.shape()](const Variable& gy) { return scatter_items(gy, t, shape); };
  return record("SelectItem", y, {{x, vjp_x}});
}

Variable scatter_items(const Variable& gy, const Array& t, const Shape& shape) {
  const Array gx = zeros(shape, gy.dtype(), gy.device());
  indexing_kernels.on(gx.device()).scatter_items(gy.array(), t, gx);
  return record("SelectItemGrad", gx,
                {{gy, [t](const Variable& ggx) { return gather_items(ggx, t); }}});
}

// Elements of one axis of arrays of a shape, by integers of any shape. Axes go in the arrays' order
// of memory, `order`.
struct Taking {
  Taking(const Array& x, int axis, const Array& ids)
      : shape(x.shape()), order(memory_order(x)), ids(ids) {
    for (int a = 0; a < shape.size(); ++a) {
      if (a != axis) taken_shape.push_back(shape[a]);
      for (int k = 0; a == axis && k < ids.ndim(); ++k) taken_shape.push_back(ids.shape(k));
    }
    std::int64_t rows[] = {1, 1};
    bool is_after = false;
    for (const std::int64_t a : order) {
      const std::int64_t shift = a > axis ? ids.ndim() - 1 : 0;
      for (int k = 0; k < (a == axis ? ids.ndim() : 1); ++k) taken_order.push_back(a + shift + k);
      if (a != axis) rows[is_after ? 1 : 0] *= shape[static_cast<int>(a)];
      is_after |= a == axis;
    }
    table = {rows[0], shape[axis], rows[1]};
    taken_rows = {rows[0], ids.size(), rows[1]};
  }

  Shape shape, taken_shape;
  Axes order, taken_order;
  Shape table, taken_rows;  // the arrays as (P, n, Q)
  Array ids;                // contiguous and checked
};

Array as_rows(const Array& x, const Axes& order, const Shape& rows) {
  return reshape_view(contiguous(transpose_view(x, order)), rows);
}

// Each is the other's gradient.
Variable taken(const Variable& x, const Taking& taking);

Variable put(const Variable& gy, const Taking& taking) {
  const Array gx = empty_in_order(taking.shape, taking.order, gy.dtype(), gy.device());
  fill(gx, 0);
  indexing_kernels.on(gx.device())
      .scatter_add_rows(as_rows(gy.array(), taking.taken_order, taking.taken_rows), taking.ids, {},
                        as_rows(gx, taking.order, taking.table));
  return record("GetItemGrad", gx,
                {{gy, [taking](const Variable& ggx) { return taken(ggx, taking); }}});
}

Variable taken(const Variable& x, const Taking& taking) {
  const Array y = empty_in_order(taking.taken_shape, taking.taken_order, x.dtype(), x.device());
  indexing_kernels.on(y.device())
      .gather_rows(as_rows(x.array(), taking.order, taking.table), taking.ids, {},
                   as_rows(y, taking.taken_order, taking.taken_rows));
  return record("GetItem", y, {{x, [taking](const Variable& gy) { return put(gy, taking); }}});
}

// Rows of two matrices by entry; checked, -1 for none.
struct Entries {
  Array sources, targets;
  Entries transposed() const { return {targets, sources}; }
};

// Each one's gradients are of both kinds.
Variable add_products(const Variable& data, const Variable& x, const Entries& entries,
                      std::int64_t rows);

Variable dot_rows(const Variable& a, const Variable& b, const Entries& entries) {
  const Array g = empty(entries.sources.shape(), a.dtype(), a.device());
  indexing_kernels.on(g.device())
      .dot_rows(contiguous(a.array()), contiguous(b.array()), entries.sources, entries.targets, g);
  auto vjp_a = [=](const Variable& gg) {
    return add_products(gg, b, entries.transposed(), a.shape(0));
  };
  auto vjp_b = [=](const Variable& gg) { return add_products(gg, a, entries, b.shape(0)); };
  return record("SparseProductGrad", g, {{a, vjp_a}, {b, vjp_b}});
}

Variable add_products(const Variable& data, const Variable& x, const Entries& entries,
                      std::int64_t rows) {
  const Array y = zeros({rows, x.shape(1)}, x.dtype(), x.device());
  indexing_kernels.on(y.device())
      .add_products(contiguous(data.array()), contiguous(x.array()), entries.sources,
                    entries.targets, y);
  auto vjp_data = [=](const Variable& gy) { return dot_rows(x, gy, entries); };
  auto vjp_x = [=](const Variable& gy) {
    return add_products(data, gy, entries.transposed(), x.shape(0));
  };
  return record("SparseProduct", y, {{data, vjp_data}, {x, vjp_x}});
}

// This product is for devices without kernels of their own.
Variable composed_product(const Variable& data, const Variable& x, const Entries& entries,
                          std::int64_t rows) {
  const Variable picked = gather_rows(entries.sources, x, -1);
  const Variable weights = broadcast_to(reshape(data, {data.size(), 1}), picked.shape());
  return scatter_add_rows(entries.targets, multiply(weights, picked), {rows, x.shape(1)}, -1);
}

// Views of contiguous arrays of n elements.
struct StridedView {
  std::int64_t n;
  Shape shape;
  Dims strides;
  std::int64_t first;

  Array of(const Array& x) const {
    Strides bytes = strides;
    for (std::int64_t& stride : bytes) stride *= x.itemsize();
    std::byte* const data = x.data() + (shape.product() > 0 ? first * x.itemsize() : 0);
    return Array(x.storage(), data, shape, bytes, x.dtype());
  }
  // The element of the array that each element of the view is.
  Array indices(Device device) const {
    const Array numbers = empty({n}, Dtype::int64);
    std::iota(numbers.as<std::int64_t>(), numbers.as<std::int64_t>() + n, std::int64_t{0});
    return to_device(contiguous(of(numbers)), device);
  }
};

Variable strided(const Variable& x, const StridedView& view);

// The transpose: what the view has twice gets the sum, in row-major order of the view.
Variable put_strided(const Variable& gy, const StridedView& view, const Shape& shape) {
  const Array gx = zeros(shape, gy.dtype(), gy.device());
  const Array in_gx = view.of(gx);
  if (has_distinct_elements(in_gx)) {
    copy(gy.array(), in_gx);
  } else {
    indexing_kernels.on(gx.device())
        .scatter_add_rows(gy.array(), view.indices(gx.device()), {},
                          reshape_view(gx, {1, view.n, 1}));
  }
  return record("AsStridedGrad", gx,
                {{gy, [view](const Variable& ggx) { return strided(ggx, view); }}});
}

Variable strided(const Variable& x, const StridedView& view) {
  auto vjp_x = [view, shape = x.shape()](const Variable& gy) {
    return put_strided(gy, view, shape);
  };
  return record("AsStrided", view.of(contiguous(x.array())), {{x, vjp_x}});
}

}  // namespace

Array gather(const Array& table, const Array& ids) {
  require(table.ndim() == 3 && ids.ndim() == 1,
          "gather: expected a table of 3 axes and indices of 1, got ", table.shape(), " and ",
          ids.shape());
  const Array rows = checked_indices("gather", "indices", ids, table.shape(1), table.device());
  const Array y =
      empty({table.shape(0), ids.shape(0), table.shape(2)}, table.dtype(), table.device());
  indexing_kernels.on(y.device()).gather_rows(table, rows, {}, y);
  return y;
}

Array scatter_add(const Array& rows, const Array& ids, std::int64_t n) {
  require(rows.ndim() == 3 && ids.ndim() == 1 && rows.shape(1) == ids.shape(0),
          "scatter_add: expected rows of 3 axes and an index for each, got ", rows.shape(), " and ",
          ids.shape());
  const Array into = checked_indices("scatter_add", "indices", ids, n, rows.device());
  const Array table = zeros({rows.shape(0), n, rows.shape(2)}, rows.dtype(), rows.device());
  indexing_kernels.on(table.device()).scatter_add_rows(rows, into, {}, table);
  return table;
}

Variable embed_id(const Array& ids, const Variable& w, std::optional<std::int64_t> ignore) {
  require(w.ndim() == 2 && is_float(w.dtype()),
          "embed_id: expected W of shape (n, D) and a float dtype, got ", w.shape(), " and ",
          w.dtype());
  return gather_rows(checked_indices("embed_id", "x", ids, w.shape(0), w.device(), ignore), w,
                     ignore);
}

Variable select_item(const Variable& x, const Array& t) {
  require(x.ndim() == 2 && t.ndim() == 1 && t.shape(0) == x.shape(0),
          "select_item: expected x of shape (N, C) and t of shape (N,), got ", x.shape(), " and ",
          t.shape());
  return gather_items(x, checked_indices("select_item", "t", t, x.shape(1), x.device()));
}

Variable take(const Variable& x, const Array& indices, std::int64_t axis) {
  const int at = normalize_axis("take", axis, x.ndim());
  return taken(
      x, {x.array(), at, wrapped_indices("get_item", "indices", indices, x.shape(at), x.device())});
}

Variable index_add(const Variable& base, const Array& indices, const Variable& terms,
                   std::int64_t axis) {
  const auto [x, y] = in_one_dtype("index_add", base, terms);
  const int at = normalize_axis("index_add", axis, x.ndim());
  const Taking taking(x.array(), at,
                      wrapped_indices("index_add", "indices", indices, x.shape(at), x.device()));
  require(y.shape() == taking.taken_shape && y.dtype() == x.dtype(),
          "index_add: expected y of shape ", taking.taken_shape, " and of x's dtype, got ",
          y.shape(), " and ", x.dtype(), " and ", y.dtype());
  require_one_device("index_add", x.device(), y.device());
  require(is_float(x.dtype()) || x.device() == Device{},
          "index_add: expected a float dtype on a device, got ", x.dtype());
  const Array sum = empty_in_order(taking.shape, taking.order, x.dtype(), x.device());
  copy(x.array(), sum);
  indexing_kernels.on(sum.device())
      .scatter_add_rows(as_rows(y.array(), taking.taken_order, taking.taken_rows), taking.ids, {},
                        as_rows(sum, taking.order, taking.table));
  return record("IndexAdd", sum,
                {{x, [](const Variable& g) { return g; }},
                 {y, [taking](const Variable& g) { return taken(g, taking); }}});
}

Variable sparse_product(const Variable& values, const Array& sources, const Array& targets,
                        const Variable& dense, std::int64_t rows) {
  const char* const op = "sparse_product";
  const auto [data, x] = in_one_dtype(op, values, dense);
  require(data.ndim() == 1 && sources.shape() == data.shape() && targets.shape() == data.shape() &&
              x.ndim() == 2 && is_float(x.dtype()) && data.dtype() == x.dtype(),
          op, ": expected data and indices (k,) and x (n, D) of the data's float dtype, got ",
          data.shape(), ", ", sources.shape(), ", ", targets.shape(), " and ", x.shape(), " of ",
          data.dtype(), " and ", x.dtype());
  require_one_device(op, data.device(), x.device());
  require_memory(op, {rows, x.shape(1)}, x.dtype(), x.device());
  const Entries entries{checked_indices(op, "sources", sources, x.shape(0), x.device(), -1),
                        checked_indices(op, "targets", targets, rows, x.device(), -1)};
  if (indexing_kernels.on(x.device()).add_products == nullptr) {
    return composed_product(data, x, entries, rows);
  }
  const Dtype wide = std::max(x.dtype(), Dtype::float32);  // as sums of many would be rounded
  return cast(add_products(cast(data, wide), cast(x, wide), entries, rows), x.dtype());
}

Variable as_strided(const Variable& x, const Shape& shape, const Dims& strides,
                    std::int64_t first) {
  require<std::invalid_argument>(strides.size() == shape.size(),
                                 "as_strided: expected strides for ", shape, ", got ", strides);
  std::int64_t lowest = first, highest = first;
  bool is_inside = true;
  for (int i = 0; i < shape.size(); ++i) {
    require<std::invalid_argument>(shape[i] >= 0,
                                   "as_strided: expected extents of at least 0, got ", shape);
    std::int64_t reach = 0;
    std::int64_t& end = strides[i] < 0 ? lowest : highest;
    is_inside &= !__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) &&
                 !__builtin_add_overflow(end, reach, &end);
  }
  require_memory("as_strided", shape, x.dtype(), x.device());
  const bool is_empty = shape.contains(0);
  is_inside &= lowest >= 0 && highest < x.size();
  require<std::invalid_argument>(is_empty || is_inside, "as_strided: expected elements 0 to ",
                                 x.size() - 1, ", got ", shape, " in steps of ", strides, " from ",
                                 first);
  StridedView view{x.size(), shape, strides, first};
  for (int i = 0; i < shape.size(); ++i) {
    if (is_empty || shape[i] == 1) view.strides[i] = 0;  // it may be too large for bytes
  }
  return strided(x, view);
}

}  // namespace renga
