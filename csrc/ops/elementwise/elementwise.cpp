#include "ops/elementwise/elementwise.h"

#include <algorithm>
#include <iterator>

#include "tensor/views.h"

namespace renga {

constinit KernelTable<ElementwiseKernels> elementwise_kernels{"elementwise"};
void (*arithmetic_warning)(const char* text) = nullptr;

namespace {

// Whether x is a broadcast view, as the gradient of a sum is.
bool is_broadcast(const Array& x) {
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (x.strides()[axis] == 0 && x.shape(axis) > 1) return true;
  }
  return false;
}

// A new array for the result of broadcasting, in the memory order of an operand with the result's
// shape, preferably of one that is no broadcast view.
Array empty_for(const Shape& shape, const Array& a, const Array& b, Dtype dtype) {
  const bool like_b = b.shape() == shape && (a.shape() != shape || is_broadcast(a));
  if (like_b) return empty_like(b, dtype);
  return a.shape() == shape ? empty_like(a, dtype) : empty(shape, dtype, a.device());
}

// Of bfloat16 and float32 it is float32.
Array empty_for(const Shape& shape, const Array& a, const Array& b) {
  return empty_for(shape, a, b, std::max(a.dtype(), b.dtype()));
}

bool is_mixed_pair(const Array& a, const Array& b) {
  return (a.dtype() == Dtype::bfloat16 && b.dtype() == Dtype::float32) ||
         (a.dtype() == Dtype::float32 && b.dtype() == Dtype::bfloat16);
}

// An operand of a mixed pair: in float32, or as it is if the kernel converts it block by block.
Array as_mixed_operand(const Array& x, const Shape& shape) {
  return x.device().is_host() && x.shape() == shape ? x : cast(x, Dtype::float32);
}

void require_same_device(const char* op, const Array& a, const Array& b) {
  if (a.device() == b.device()) return;
  fail<std::invalid_argument>(op, ": expected arrays on one device, got ", to_string(a.device()),
                              " and ", to_string(b.device()));
}

// The error names the operand that is wrong: a single number has to have the dtype of an array.
void require_one_dtype(const char* op, const Array& a, const Array& b) {
  const bool first = a.ndim() == 0 && b.ndim() > 0;
  const char* const names[] = {"second", "first"};
  require(a.dtype() == b.dtype(), op, ": expected the ", names[first], " operand of dtype ",
          (first ? b : a).dtype(), " as the ", names[!first], ", got ", (first ? a : b).dtype());
}

// Messages call Unary's functions by these names.
constexpr const char* kNames[] = {
    "negative",   "absolute",  "sign",     "square",        "floor",        "ceil",
    "fix",        "add",       "multiply", "subtract_from", "divide_into",  "power",
    "cube",       "power_of",  "clip",     "inside",        "floor_divide", "floor_divide_into",
    "exp",        "expm1",     "log",      "log1p",         "log2",         "log10",
    "sqrt",       "rsqrt",     "sin",      "cos",           "tan",          "arcsin",
    "arccos",     "arctan",    "arctanh",  "sinh",          "cosh",         "tanh",
    "erf",        "erfc",      "ndtr",     "erfinv",        "erfcinv",      "ndtri",
    "erfcx",      "log_ndtr",  "lgamma",   "digamma",       "sigmoid",      "relu",
    "leaky_relu", "elu",       "softplus", "clipped_relu",  "hard_sigmoid", "hard_swish",
    "gelu",       "gelu_tanh", "silu",     "mish"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Unary::mish) + 1);

}  // namespace

Array apply(Unary map, const Array& x, double p, double q) {
  const char* const name = kNames[static_cast<std::size_t>(map)];
  require(x.dtype() != Dtype::bool_, name, ": expected numbers, got bool");
  require(map < Unary::add || is_float(x.dtype()), name, ": expected a float dtype, got ",
          x.dtype());
  Array y = empty_like(x);
  elementwise_kernels.on(x.device()).unary(map, p, q, x, y);
  return y;
}

Array apply(const char* op, Binary map, const Array& a, const Array& b, double p) {
  if (is_mixed_pair(a, b)) {
    require_same_device(op, a, b);
    const Shape shape = broadcast_shapes(op, a.shape(), b.shape());
    const Array u = as_mixed_operand(a, shape), v = as_mixed_operand(b, shape);
    Array y = empty_for(shape, u, v);
    elementwise_kernels.on(a.device())
        .binary(map, p, broadcast_view(op, u, shape), broadcast_view(op, v, shape), y);
    return y;
  }
  require_one_dtype(op, a, b);
  require(a.dtype() != Dtype::bool_, op, ": expected numbers, got bool");
  require_same_device(op, a, b);
  if (a.shape() == b.shape()) {
    Array y = empty_for(a.shape(), a, b);
    elementwise_kernels.on(a.device()).binary(map, p, a, b, y);
    return y;
  }
  const Shape shape = broadcast_shapes(op, a.shape(), b.shape());
  Array y = empty_for(shape, a, b);
  elementwise_kernels.on(a.device())
      .binary(map, p, broadcast_view(op, a, shape), broadcast_view(op, b, shape), y);
  return y;
}

Array apply(const char* op, Quaternary map, const Array& a, const Array& b, const Array& c,
            const Array& d) {
  Shape shape = a.shape();
  Dtype dtype = a.dtype();
  for (const Array* x : {&b, &c, &d}) {
    if (!is_mixed_pair(a, *x)) require_one_dtype(op, a, *x);
    require_same_device(op, a, *x);
    shape = broadcast_shapes(op, shape, x->shape());
    dtype = std::max(dtype, x->dtype());
  }
  require(is_float(dtype), op, ": expected a float dtype, got ", dtype);
  const auto operand = [&](const Array& x) {
    return broadcast_view(op, x.device().is_host() ? x : cast(x, dtype), shape);
  };
  const Array y = empty_for(shape, a, b, dtype);
  elementwise_kernels.on(a.device())
      .quaternary(map, operand(a), operand(b), operand(c), operand(d), y);
  return y;
}

Array select(const char* op, const Array& condition, const Array& a, const Array& b) {
  require(condition.dtype() == Dtype::bool_, op, ": expected a bool condition, got ",
          condition.dtype());
  if (is_mixed_pair(a, b)) {
    return select(op, condition, cast(a, Dtype::float32), cast(b, Dtype::float32));
  }
  require_one_dtype(op, a, b);
  require_same_device(op, a, b);
  const Shape shape =
      broadcast_shapes(op, broadcast_shapes(op, a.shape(), b.shape()), condition.shape());
  Array y = empty_for(shape, a, b);
  elementwise_kernels.on(a.device())
      .select(broadcast_view(op, to_device(condition, a.device()), shape),
              broadcast_view(op, a, shape), broadcast_view(op, b, shape), y);
  return y;
}

}  // namespace renga
