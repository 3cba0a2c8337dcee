#include "ops/linalg/fft.h"

#include <algorithm>

#include "autograd/node.h"
#include "ops/elementwise/math.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<FourierKernels> fourier_kernels{"fft"};

namespace {

// The inverse is the transform of what has its parts exchanged, exchanged again.
std::vector<Variable> transform(const char* name, const Variable& real, const Variable& imaginary,
                                bool inverse, double factor) {
  const Dtype dtype = wide_dtype(real.dtype());
  const Device device = fourier_kernels.computing(real.device());
  const auto operand = [&](const Variable& v) {
    return to_device(contiguous(cast(v.array(), dtype)), device);
  };
  const Array x[2] = {operand(real), operand(imaginary)};
  Array y[2] = {empty_like(x[0]), empty_like(x[0])};
  fourier_kernels.on(device).transform(x[inverse], x[!inverse], factor, y[inverse], y[!inverse]);
  for (Array& part : y) part = cast(to_device(part, real.device()), real.dtype());
  // The transform's matrix is symmetric, so the gradient is the transform by its conjugate.
  auto back = [name, inverse, factor](std::span<const Variable> gys, std::span<const int>, Node&) {
    const Variable& known = gys[0].defined() ? gys[0] : gys[1];
    const Variable none(zeros(known.shape(), known.dtype(), known.device()));
    return transform(name, gys[0].defined() ? gys[0] : none, gys[1].defined() ? gys[1] : none,
                     !inverse, factor);
  };
  return record_all(name, y, std::array{real, imaginary}, std::move(back));
}

std::vector<Variable> checked_transform(const char* op, const Variable& first,
                                        const Variable& second, bool inverse) {
  const auto [real, imaginary] = in_one_dtype(op, first, second);
  require_floats(op, real.array(op));
  require_one_device(op, real.device(), imaginary.device(op));
  require(real.ndim() > 0 && imaginary.shape() == real.shape() && imaginary.dtype() == real.dtype(),
          op, ": expected parts of one shape and dtype with an axis, got ", real.dtype(), " ",
          real.shape(), " and ", imaginary.dtype(), " ", imaginary.shape());
  const std::int64_t n = std::max<std::int64_t>(1, real.shape(real.ndim() - 1));
  return transform(op, real, imaginary, inverse, inverse ? 1 / static_cast<double>(n) : 1);
}

}  // namespace

std::vector<Variable> fft(const Variable& real, const Variable& imaginary) {
  return checked_transform("fft", real, imaginary, false);
}

std::vector<Variable> ifft(const Variable& real, const Variable& imaginary) {
  return checked_transform("ifft", real, imaginary, true);
}

}  // namespace renga
