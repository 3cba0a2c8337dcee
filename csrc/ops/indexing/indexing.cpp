#include "ops/indexing/indexing.h"

#include "autograd/node.h"
#include "ops/indexing/index_check.h"

namespace renga {

constinit KernelTable<IndexingKernels> indexing_kernels{"indexing"};

namespace {

using Ignored = std::optional<std::int64_t>;

// Each other's gradients; their ids are checked.
Variable take(const Array& ids, const Variable& w, Ignored ignore);
Variable put(const Array& ids, const Variable& gy, const Shape& shape, Ignored ignore);
Variable select(const Variable& x, const Array& t);
Variable place(const Variable& gy, const Array& t, const Shape& shape);

Variable take(const Array& ids, const Variable& w, Ignored ignore) {
  Shape shape = ids.shape();
  shape.push_back(w.shape(1));
  const Array y = empty(shape, w.dtype(), w.device());
  indexing_kernels.on(y.device()).take(w.array(), ids, ignore, y);
  auto to_w = [ids, ignore, shape = w.shape()](const Variable& gy) {
    return put(ids, gy, shape, ignore);
  };
  return record("EmbedIDFunction", y, {{w, to_w}});
}

Variable put(const Array& ids, const Variable& gy, const Shape& shape, Ignored ignore) {
  const Array gw = zeros(shape, gy.dtype(), gy.device());
  indexing_kernels.on(gw.device()).put(gy.array(), ids, ignore, gw);
  return record("EmbedIDGrad", gw,
                {{gy, [=](const Variable& ggw) { return take(ids, ggw, ignore); }}});
}

Variable select(const Variable& x, const Array& t) {
  const Array y = empty(t.shape(), x.dtype(), x.device());
  indexing_kernels.on(y.device()).select(x.array(), t, y);
  auto to_x = [t, shape = x.shape()](const Variable& gy) { return place(gy, t, shape); };
  return record("SelectItem", y, {{x, to_x}});
}

Variable place(const Variable& gy, const Array& t, const Shape& shape) {
  const Array gx = zeros(shape, gy.dtype(), gy.device());
  indexing_kernels.on(gx.device()).place(gy.array(), t, gx);
  return record("SelectItemGrad", gx, {{gy, [t](const Variable& ggx) { return select(ggx, t); }}});
}

}  // namespace

Variable embed_id(const Array& ids, const Variable& w, std::optional<std::int64_t> ignore) {
  require(w.ndim() == 2 && is_float(w.dtype()),
          "embed_id: expected W of shape (n, D) and a float dtype, got ", w.shape(), " and ",
          w.dtype());
  return take(checked_indices("embed_id", "x", ids, w.shape(0), ignore), w, ignore);
}

Variable select_item(const Variable& x, const Array& t) {
  require(x.ndim() == 2 && t.ndim() == 1 && t.shape(0) == x.shape(0),
          "select_item: expected x of shape (N, C) and t of shape (N,), got ", x.shape(), " and ",
          t.shape());
  return select(x, checked_indices("select_item", "t", t, x.shape(1)));
}

}  // namespace renga
