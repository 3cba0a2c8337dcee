#include "ops/convolution.h"

#include "devices/long_work.h"
#include "ops/convolution_choice.cpu.h"
#include "ops/convolution_onednn.cpu.h"
#include "ops/convolution_unfold.h"
#include "ops/winograd.cpu.h"
#include "tensor/views.h"

namespace renga {
namespace {

using Kernel = void (*)(const Array&, const Array&, const Array&, const Window&);

void direct_or_winograd_forward(const Array& x, const Array& W, const Array& y,
                                const Window& window) {
  (by_winograd(x, W, y, window) ? winograd_forward : onednn_forward)(x, W, y, window);
}

void direct_or_winograd_input_grad(const Array& gy, const Array& W, const Array& gx,
                                   const Window& window) {
  (by_winograd(gx, W, gy, window) ? winograd_input_grad : onednn_input_grad)(gy, W, gx, window);
}

void direct_or_winograd_weight_grad(const Array& gy, const Array& x, const Array& gW,
                                    const Window& window) {
  (by_winograd(x, gW, gy, window) ? winograd_weight_grad : onednn_weight_grad)(gy, x, gW, window);
}

// An image of one axis as one of one row.
Array with_rows(const Array& x) { return expand_view(x, 2); }

Window with_rows(Window window) {
  window.stride.insert(0, 1);
  window.pad.insert(0, 0);
  window.dilate.insert(0, 1);
  return window;
}

// Runs on arrays of any float dtype what there are kernels for in some of them; the 16-bit floats
// that oneDNN does not convolve go through float32.
void convolve(Kernel fast, Kernel unfolded, const Array& a, const Array& b, const Array& to,
              const Window& window) {
  const LongWork work;
  if (to.size() == 0) return;
  if (a.size() == 0 || b.size() == 0) return fill(to, 0);
  if (to.ndim() == 3) {
    return convolve(fast, unfolded, with_rows(a), with_rows(b), with_rows(to), with_rows(window));
  }
  if (to.ndim() > kMostOnednnAxes) fast = unfolded;
  if (to.dtype() == Dtype::float64) return unfolded(a, b, to, window);
  if (onednn_convolves(to.dtype())) return fast(a, b, to, window);
  const Array wide = empty_like(to, Dtype::float32);
  fast(cast(a, Dtype::float32), cast(b, Dtype::float32), wide, window);
  copy(wide, to);
}

void forward(const Array& x, const Array& W, const Array& y, const Window& window) {
  convolve(direct_or_winograd_forward, unfolded_forward, x, W, y, window);
}

void input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window) {
  convolve(direct_or_winograd_input_grad, unfolded_input_grad, gy, W, gx, window);
}

void weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  convolve(direct_or_winograd_weight_grad, unfolded_weight_grad, gy, x, gW, window);
}

[[maybe_unused]] const bool registered =
    convolution_kernels.add(0, {forward, input_grad, weight_grad});

}  // namespace
}  // namespace renga
