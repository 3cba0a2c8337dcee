#include "ops/indexing/indexing.h"

#include <optional>

#include "autograd/node.h"
#include "ops/indexing/index_check.h"
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

}  // namespace renga
