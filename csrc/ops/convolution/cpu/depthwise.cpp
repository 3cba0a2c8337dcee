#include "ops/convolution/cpu/depthwise.h"

#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/depthwise_gather.h"
#include "ops/convolution/cpu/depthwise_weight_grad.h"

namespace renga {
namespace {

using depthwise::Filters;
using depthwise::Gathering;

void convolve(const Array& factor, const Array& W, const TapMeetings& meetings, std::int64_t period,
              std::int64_t step, const Array& result, const Array& b) {
  const ChannelsLastTarget to(result);
  const Array from = contiguous(channels_last(factor));
  const Filters filters(W);
  const Array bias =
      b.defined() ? contiguous(cast(b, Dtype::float32)) : zeros({result.shape(1)}, Dtype::float32);
  if (from.dtype() == Dtype::bfloat16) {
    Gathering<bfloat16>(from, filters, meetings, period, step, to.dense(), bias).run();
  } else {
    Gathering<float>(from, filters, meetings, period, step, to.dense(), bias).run();
  }
  to.finish();
}

}  // namespace

bool depthwise_convolves(const Shape& W, const Window& window) {
  return window.groups > 1 && W[0] == window.groups && W[1] == 1;
}

void depthwise_forward(const Array& x, const Array& W, const Array& y, const Window& window,
                       Factors, const Array& b, FilterForms*) {
  convolve(x, W, meetings_forward(x, W, y, window), 1, window.stride[1], y, b);
}

void depthwise_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                          Factors, const Array& b, FilterForms*) {
  convolve(gy, W, meetings_back(gx, W, gy, window), window.stride[1], 1, gx, b);
}

void depthwise_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                           Factors, const Array&, FilterForms*) {
  const TapMeetings meetings = meetings_forward(x, gW, gy, window);
  const Array from = contiguous(channels_last(x)), grads = contiguous(channels_last(gy));
  const Array sums = from.dtype() == Dtype::bfloat16
                         ? depthwise::WeightGrad<bfloat16>(grads, from, meetings, window).run()
                         : depthwise::WeightGrad<float>(grads, from, meetings, window).run();
  copy(transpose_view(sums, {1, 0}), reshape_view(gW, {sums.shape(1), sums.shape(0)}));
}

}  // namespace renga
