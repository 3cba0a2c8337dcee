#include "ops/matmul/matmul.h"

#include <algorithm>

#include "autograd/node.h"
#include "ops/matmul/batch.h"
#include "ops/matmul/precision.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<MatmulKernels> matmul_kernels{"matmul"};

namespace {

Shape batch_of(const Shape& shape) {
  Shape batch = shape;
  batch.pop_back();
  batch.pop_back();
  return batch;
}

// x broadcast to the batch axes.
Array broadcast_batch(const Array& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.shape(x.ndim() - 2));
  shape.push_back(x.shape(x.ndim() - 1));
  return broadcast_view("matmul", x, shape);
}

// Matrices are multiplied where `to` wants it. With a `cache`, b may be multiplied by what is kept
// there.
Array product(const Array& a, const Array& b, Dtype dtype, PackedWeightCache* cache,
              GradientSink& to) {
  if (a.ndim() == 2 && b.ndim() == 2) {
    const Array c = to.empty({a.shape(0), b.shape(1)}, dtype, a.device());
    matmul_kernels.on(c.device()).matmul(a, b, c, {}, cache);
    return c;
  }
  const Shape batch = broadcast_shapes("matmul", batch_of(a.shape()), batch_of(b.shape()));
  Shape shape = batch;
  shape.push_back(a.shape(a.ndim() - 2));
  shape.push_back(b.shape(b.ndim() - 1));
  const Array c = empty(shape, dtype, a.device());
  matmul_kernels.on(c.device())
      .matmul(broadcast_batch(a, batch), broadcast_batch(b, batch), c, {}, nullptr);
  return c;
}

// `dtype` is the result's, which may differ from an operand's if one is bfloat16 and one float32:
// gradients have the dtype of their inputs.
Variable matrix_product(const Variable& a, const Variable& b, bool transa, bool transb, Dtype dtype,
                        GradientSink to = {}, const Ref<PackedWeightCache>& cache = {}) {
  const Array left = transa ? transpose_matrices(a.array()) : a.array();
  const Array right = transb ? transpose_matrices(b.array()) : b.array();
  const std::int64_t inner = left.shape(left.ndim() - 1);
  require(inner == right.shape(right.ndim() - 2), "matmul: expected ", inner,
          " rows in the second operand, got shapes ", left.shape(), " and ", right.shape());
  auto vjp_a = [b, transa, transb, shape = a.shape(), dtype = a.dtype()](const Variable& gy,
                                                                         GradientSink& to) {
    return sum_to(transa ? matrix_product(b, gy, transb, true, dtype, to)
                         : matrix_product(gy, b, false, !transb, dtype, to),
                  shape);
  };
  auto vjp_b = [a, transa, transb, shape = b.shape(), dtype = b.dtype()](const Variable& gy,
                                                                         GradientSink& to) {
    return sum_to(transb ? matrix_product(gy, a, true, transa, dtype, to)
                         : matrix_product(a, gy, !transa, false, dtype, to),
                  shape);
  };
  return record("MatMul", product(left, right, dtype, cache.get(), to), {{a, vjp_a}, {b, vjp_b}});
}

// Returns where panels of weights may be kept that multiply the rows of x, or null if they are not.
Ref<PackedWeightCache> panel_cache(const Variable& x, const Variable& w, bool training) {
  const std::int64_t rows = x.shape(0);
  if (!matmul_kernels.on(w.device()).packs(rows, w.size())) return nullptr;
  return packed_weight_cache(w, rows, training);
}

std::vector<Array> arrays_of(const std::vector<Variable>& variables) {
  std::vector<Array> arrays;
  for (const Variable& x : variables) arrays.push_back(x.array());
  return arrays;
}

// The gradient of weights that several products with few rows use: one product of all rows.
class WeightGradientTerms final : public GradientTerms {
 public:
  // The result is false if the term is no worse off alone.
  bool add(const Variable& x, const Variable& gy, Dtype dtype) {
    constexpr std::int64_t kManyRows = 1024;
    if (x.shape(0) >= kManyRows) return false;
    if (!xs_.empty() && (x.dtype() != xs_[0].dtype() || gy.dtype() != gys_[0].dtype()))
      return false;
    dtype_ = dtype;
    xs_.push_back(x);
    gys_.push_back(gy);
    rows_ += x.shape(0);
    if (GradientSink elsewhere; rows_ >= kManyRows) before_ = sum(elsewhere);
    return true;
  }

  Variable sum(GradientSink& to) override {
    if (xs_.empty()) return before_;
    const Variable gradient = multiply(to);
    xs_.clear();
    gys_.clear();
    rows_ = 0;
    return add_gradients(before_, gradient);
  }

 private:
  Variable multiply(GradientSink& to) const {
    if (xs_.size() == 1) return matrix_product(gys_[0], xs_[0], true, false, dtype_, to);
    const std::vector<Array> xs = arrays_of(xs_), gys = arrays_of(gys_);
    if (!multiplies_parts(gys, xs)) {
      return matrix_product(concat(gys_, 0), concat(xs_, 0), true, false, dtype_, to);
    }
    const Device device = xs[0].device();
    const Array c = to.empty({gys[0].shape(1), xs[0].shape(1)}, dtype_, device);
    matmul_kernels.on(device).multiply_parts(gys, xs, c);
    return Variable(c);
  }

  // Whether a kernel takes the parts as they are.
  bool multiplies_parts(const std::vector<Array>& gys, const std::vector<Array>& xs) const {
    const auto fits = [](const Array& x) {
      return x.dtype() == Dtype::float32 && x.strides()[1] == x.itemsize();
    };
    const MatmulKernels& kernels = matmul_kernels.on(xs[0].device());
    return !backprop_enabled() && dtype_ == Dtype::float32 &&
           kernels.multiplies_parts(gys[0].shape(1), xs[0].shape(1), rows_) &&
           std::ranges::all_of(gys, fits) && std::ranges::all_of(xs, fits);
  }

  std::vector<Variable> xs_, gys_;
  std::int64_t rows_ = 0;
  Variable before_;  // the sum of earlier rows
  Dtype dtype_ = Dtype::float32;
};

}  // namespace

Variable matmul(const Variable& first, const Variable& second, bool transa, bool transb) {
  const auto [a, b] = promoted(as_activation(first), as_activation(second));
  require(a.ndim() > 0 && b.ndim() > 0, "matmul: expected at least 1 axis, got shapes ", a.shape(),
          " and ", b.shape());
  require(are_compatible(a.dtype(), b.dtype()), "matmul: expected operands of one dtype, got ",
          a.dtype(), " and ", b.dtype());
  require_one_device("matmul", a.device(), b.device());
  const Dtype dtype = std::min(a.dtype(), b.dtype());  // bfloat16 if one of them is
  if (a.ndim() > 1 && b.ndim() > 1) return matrix_product(a, b, transa, transb, dtype);
  // A vector is a row on the left and a column on the right; transposing it changes nothing.
  const Variable left = a.ndim() == 1 ? expand_dims(a, 0) : a;
  const Variable right = b.ndim() == 1 ? expand_dims(b, 1) : b;
  const Variable y =
      matrix_product(left, right, a.ndim() > 1 && transa, b.ndim() > 1 && transb, dtype);
  Axes added;
  if (a.ndim() == 1) added.push_back(y.ndim() - 2);
  if (b.ndim() == 1) added.push_back(y.ndim() - 1);
  return squeeze(y, added);
}

Variable linear(const Variable& input, const Variable& weights, const std::optional<Variable>& b) {
  const Variable x = as_activation(input);
  const bool mixed = is_float(weights.dtype()) && !are_compatible(x.dtype(), weights.dtype());
  const Variable w = mixed && is_float(x.dtype()) ? cast(weights, x.dtype()) : weights;
  require(x.ndim() == 2 && w.ndim() == 2 && x.shape(1) == w.shape(1),
          "linear: expected x of shape (N, I) and W of shape (O, I), got ", x.shape(), " and ",
          w.shape());
  require(are_compatible(x.dtype(), w.dtype()) && is_float(x.dtype()),
          "linear: expected x and W of one float dtype, got ", x.dtype(), " and ", w.dtype());
  require_one_device("linear", x.device(), w.device());
  const Array y = empty({x.shape(0), w.shape(0)}, x.dtype(), x.device());
  if (b) {
    require_one_device("linear", x.device(), b->device());
    require(b->dtype() != weights.dtype() || are_compatible(x.dtype(), b->dtype()),
            "linear: expected x of dtype ", weights.dtype(), " as W and b, got ", x.dtype());
    require(b->ndim() == 1 && b->shape(0) == w.shape(0) && are_compatible(x.dtype(), b->dtype()),
            "linear: expected b of shape (", w.shape(0), ",) and dtype ", x.dtype(), ", got ",
            b->shape(), " and ", b->dtype());
  }
  // Before another array refers to the memory of w, which has to be exclusive.
  const Ref<PackedWeightCache> cache = panel_cache(x, w, backprop_enabled());
  matmul_kernels.on(y.device())
      .matmul(x.array(), transpose_matrices(w.array()), y, {b ? b->array() : Array()}, cache.get());
  auto vjp_x = [w, dtype = x.dtype()](const Variable& gy, GradientSink& to) {
    return matrix_product(gy, w, false, false, dtype, to, panel_cache(gy, w, true));
  };
  auto vjp_w = [x, dtype = w.dtype()](const Variable& gy, GradientSink& to) {
    auto* const terms = to.terms<WeightGradientTerms>();
    if (terms != nullptr && terms->add(x, gy, dtype)) return Variable();
    return matrix_product(gy, x, true, false, dtype, to);
  };
  if (!b) return record("LinearFunction", y, {{x, vjp_x}, {w, vjp_w}});
  auto vjp_b = [](const Variable& gy) { return sum(gy, Axes{0}); };
  return record("LinearFunction", y, {{x, vjp_x}, {w, vjp_w}, {*b, vjp_b}});
}

}  // namespace renga
