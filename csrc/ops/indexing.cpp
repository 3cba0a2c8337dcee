#include "ops/indexing.h"

#include "autograd/node.h"

namespace renga {

constinit KernelTable<IndexingKernels> indexing_kernels{"indexing"};

namespace {

void require_integers(const char* op, const char* name, const Array& x) {
  require(!is_float(x.dtype()) && x.dtype() != Dtype::bool_, op, ": expected integers for ", name,
          ", got ", x.dtype());
}

// The way back of embed_id: rows added up where their ids say.
Variable embed_id_grad(const Array& ids, const Variable& gy, const Shape& shape,
                       std::optional<std::int64_t> ignore) {
  const Array gw = zeros(shape, gy.dtype(), gy.device());
  indexing_kernels.on(gw.device()).put(gy.array(), ids, ignore, gw);
  return record("EmbedIDGrad", gw,
                {{gy, [=](const Variable& ggw) { return embed_id(ids, ggw, ignore); }}});
}

Variable select_item_grad(const Variable& gy, const Array& t, const Shape& shape) {
  const Array gx = zeros(shape, gy.dtype(), gy.device());
  indexing_kernels.on(gx.device()).place(gy.array(), t, gx);
  return record("SelectItemGrad", gx,
                {{gy, [t](const Variable& ggx) { return select_item(ggx, t); }}});
}

}  // namespace

Variable embed_id(const Array& ids, const Variable& w, std::optional<std::int64_t> ignore) {
  require_integers("embed_id", "x", ids);
  require(w.ndim() == 2 && is_float(w.dtype()),
          "embed_id: expected W of shape (n, D) and a float dtype, got ", w.shape(), " and ",
          w.dtype());
  Shape shape = ids.shape();
  shape.push_back(w.shape(1));
  const Array y = empty(shape, w.dtype(), w.device());
  indexing_kernels.on(y.device()).take(w.array(), ids, ignore, y);
  auto to_w = [ids, ignore, shape = w.shape()](const Variable& gy) {
    return embed_id_grad(ids, gy, shape, ignore);
  };
  return record("EmbedIDFunction", y, {{w, to_w}});
}

Variable select_item(const Variable& x, const Array& t) {
  require_integers("select_item", "t", t);
  require(x.ndim() == 2 && t.ndim() == 1 && t.shape(0) == x.shape(0),
          "select_item: expected x of shape (N, C) and t of shape (N,), got ", x.shape(), " and ",
          t.shape());
  const Array y = empty(t.shape(), x.dtype(), x.device());
  indexing_kernels.on(y.device()).select(x.array(), t, y);
  auto to_x = [t, shape = x.shape()](const Variable& gy) { return select_item_grad(gy, t, shape); };
  return record("SelectItem", y, {{x, to_x}});
}

}  // namespace renga
