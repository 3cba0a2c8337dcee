#include "ops/convolution_onednn.cpu.h"

#include <algorithm>
#include <array>

#include "devices/cpu/onednn.h"
#include "tensor/views.h"

namespace renga {
namespace {

using dnnl::memory;
using onednn::Operand;
using onednn::Plan;
using Tag = memory::format_tag;

enum class Pass : std::int64_t { forward, input_grad, weight_grad };

bool is_dense(const Array& x, const Axes& order) {
  std::int64_t step = x.itemsize();
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    if (x.shape(axis) != 1 && x.strides()[axis] != step) return false;
    step *= x.shape(axis);
  }
  return true;
}

// An image of rows and columns, or of one axis more, in one of the two layouts that oneDNN is
// handed.
struct Image {
  Array array;
  Tag layout;
};

Tag channels_last(const Array& x) { return x.ndim() == 4 ? Tag::nhwc : Tag::ndhwc; }

Image as_image(const Array& x) {
  Axes first{0, 1, 2, 3}, last{0, 2, 3, 1};
  if (x.ndim() == 5) first.push_back(4), last.insert(3, 4);
  if (is_dense(x, last)) return {x, channels_last(x)};
  if (is_dense(x, first)) return {x, x.ndim() == 4 ? Tag::nchw : Tag::ncdhw};
  const Array dense = empty_in_order(x.shape(), last, x.dtype());
  copy(x, dense);
  return {dense, channels_last(x)};
}

memory::dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

memory::data_type type_of(Dtype dtype) {
  return dtype == Dtype::bfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// Elements along an axis that the window's positions cover, padding included.
std::int64_t covered_extent(const Array& W, const Array& y, const Window& window, int axis) {
  return (y.shape(2 + axis) - 1) * window.stride[axis] + window.reach(W.shape(2 + axis), axis);
}

// A convolution's operands and options, as oneDNN describes them. Images are channels last inside
// (measured: as fast as oneDNN's blocked layouts, and nothing else needs to know those).
class Problem {
 public:
  Problem(const Image& x, const Array& W, const Image& y, const Window& window, Factors factors)
      : x_(x),
        W_(W),
        y_(y),
        window_(window),
        factors_(factors == Factors::bfloat16 ? memory::data_type::bf16 : memory::data_type::f32) {}

  onednn::Key key(Pass pass) const {
    onednn::Key key{static_cast<std::int64_t>(pass),
                    static_cast<std::int64_t>(factors_),
                    static_cast<std::int64_t>(x_.array.dtype()),
                    static_cast<std::int64_t>(W_.dtype()),
                    static_cast<std::int64_t>(y_.array.dtype()),
                    static_cast<std::int64_t>(x_.layout),
                    static_cast<std::int64_t>(y_.layout),
                    window_.groups};
    for (const Shape* shape : {&x_.array.shape(), &W_.shape(), &y_.array.shape()}) {
      key.insert(key.end(), shape->begin(), shape->end());
    }
    for (const Dims* option : {&window_.stride, &window_.pad, &window_.dilate}) {
      key.insert(key.end(), option->begin(), option->end());
    }
    return key;
  }

  // Throws std::invalid_argument where oneDNN has no kernel for these operands.
  Plan plan(Pass pass) const {
    try {
      return supported_plan(pass);
    } catch (const dnnl::error& error) {
      fail<std::invalid_argument>("convolution: expected operands that oneDNN supports, got x of ",
                                  x_.array.shape(), ", W of ", W_.shape(), " and y of ",
                                  y_.array.shape(), " with stride ", window_.stride, ", pad ",
                                  window_.pad, ", dilate ", window_.dilate, ": ", error.what());
    }
  }

 private:
  Plan supported_plan(Pass pass) const {
    const dnnl::convolution_forward::primitive_desc forward(
        onednn::engine(), dnnl::prop_kind::forward_training, algorithm_, factor(x_),
        weights(Tag::any, factors_), pass == Pass::forward ? result(y_) : factor(y_), strides(),
        dilates(), before(), after(), onednn::own_scratchpad());
    if (pass == Pass::forward) {
      return Plan(dnnl::convolution_forward(forward), forward.scratchpad_desc(),
                  {Operand::input(DNNL_ARG_SRC, outside(x_), forward.src_desc()),
                   Operand::input(DNNL_ARG_WEIGHTS, weights(), forward.weights_desc()),
                   Operand::output(DNNL_ARG_DST, outside(y_), forward.dst_desc())});
    }
    return pass == Pass::input_grad ? input_grad(forward) : weight_grad(forward);
  }

  Plan input_grad(const dnnl::convolution_forward::primitive_desc& forward) const {
    const dnnl::convolution_backward_data::primitive_desc back(
        onednn::engine(), algorithm_, result(x_), weights(Tag::any, factors_), factor(y_),
        strides(), dilates(), before(), after(), forward, onednn::own_scratchpad());
    return Plan(dnnl::convolution_backward_data(back), back.scratchpad_desc(),
                {Operand::input(DNNL_ARG_DIFF_DST, outside(y_), back.diff_dst_desc()),
                 Operand::input(DNNL_ARG_WEIGHTS, weights(), back.weights_desc()),
                 Operand::output(DNNL_ARG_DIFF_SRC, outside(x_), back.diff_src_desc())});
  }

  Plan weight_grad(const dnnl::convolution_forward::primitive_desc& forward) const {
    const dnnl::convolution_backward_weights::primitive_desc back(
        onednn::engine(), algorithm_, factor(x_), weights(Tag::any, result_type(W_)), factor(y_),
        strides(), dilates(), before(), after(), forward, onednn::own_scratchpad());
    return Plan(dnnl::convolution_backward_weights(back), back.scratchpad_desc(),
                {Operand::input(DNNL_ARG_DIFF_DST, outside(y_), back.diff_dst_desc()),
                 Operand::input(DNNL_ARG_SRC, outside(x_), back.src_desc()),
                 Operand::output(DNNL_ARG_DIFF_WEIGHTS, weights(), back.diff_weights_desc())});
  }

  // An image as the caller has it, and inside as a factor and as a result.
  memory::desc outside(const Image& x) const {
    return {dims_of(x.array.shape()), type_of(x.array.dtype()), x.layout};
  }
  memory::desc factor(const Image& x) const {
    return {dims_of(x.array.shape()), factors_, channels_last(x.array)};
  }
  memory::desc result(const Image& x) const {
    return {dims_of(x.array.shape()), result_type(x.array), channels_last(x.array)};
  }
  memory::data_type result_type(const Array& x) const {
    return factors_ == memory::data_type::f32 ? factors_ : type_of(x.dtype());
  }

  memory::desc weights() const {
    const bool grouped = window_.groups > 1;
    const Tag layout =
        W_.ndim() == 4 ? (grouped ? Tag::goihw : Tag::oihw) : (grouped ? Tag::goidhw : Tag::oidhw);
    return weights(layout, type_of(W_.dtype()));
  }
  memory::desc weights(Tag layout, memory::data_type type) const {
    memory::dims dims = dims_of(W_.shape());
    if (window_.groups > 1) {
      dims[0] /= window_.groups;
      dims.insert(dims.begin(), window_.groups);
    }
    return {dims, type, layout};
  }

  memory::dims strides() const { return dims_of(window_.stride); }
  memory::dims dilates() const {
    memory::dims gaps = dims_of(window_.dilate);
    for (auto& gap : gaps) --gap;
    return gaps;
  }
  memory::dims before() const { return dims_of(window_.pad); }
  // As before, unless y's extents tell that it is more (cover_all) or less (parts of images).
  memory::dims after() const {
    memory::dims pad;
    for (int axis = 0; axis < window_.pad.size(); ++axis) {
      const std::int64_t size = x_.array.shape(2 + axis), positions = y_.array.shape(2 + axis);
      const std::int64_t kernel = W_.shape(2 + axis), before = window_.pad[axis];
      const bool alike = window_.extent(size, kernel, axis, false) == positions;
      const std::int64_t all = covered_extent(W_, y_.array, window_, axis);
      pad.push_back(alike ? before : all - size - before);
    }
    return pad;
  }

  static constexpr auto algorithm_ = dnnl::algorithm::convolution_direct;
  const Image& x_;
  const Array& W_;
  const Image& y_;
  const Window& window_;
  memory::data_type factors_;
};

// The second operand are the filters, where there are any to keep.
void run(Pass pass, const Problem& problem, const std::array<const Array*, 3>& operands,
         FilterForms* forms = nullptr) {
  static auto* const plans = new onednn::Plans;
  const auto plan = plans->get(problem.key(pass), [&] { return problem.plan(pass); });
  std::array<void*, 3> data;
  for (int i = 0; i < 3; ++i) data[i] = operands[i]->data();
  const std::size_t bytes = forms != nullptr ? plan->inside_bytes(1) : 0;
  if (bytes == 0) return plan->run(data);
  const Array kept = forms->get(plan->inside_key(1), [&] {
    const Array inside = empty({static_cast<std::int64_t>(bytes)}, Dtype::uint8);
    plan->bring(1, data[1], inside.data());
    return inside;
  });
  data[1] = kept.data();
  plan->run(data, 1);
}

void weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                 Factors factors) {
  const Image from_y = as_image(gy), from_x = as_image(x);
  run(Pass::weight_grad, Problem(from_x, gW, from_y, window, factors),
      {&from_y.array, &from_x.array, &gW});
}

// Whether oneDNN's kernels for the gradients of weights overrun their memory: those for volumes
// where an extent is smaller than the filter's or the stride, that for images of bfloat16 numbers
// where they are narrower than a stride.
bool overruns(const Array& x, const Array& W, const Window& window, bool bfloat16) {
  const int axes = window.pad.size();
  if (axes == 2) return bfloat16 && x.shape(3) < window.stride[1];
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t reach = window.reach(W.shape(2 + axis), axis);
    if (x.shape(2 + axis) < std::max(reach, window.stride[axis])) return true;
  }
  return false;
}

// The image with its padding as zeros of its own, for a window without padding.
Array padded(const Array& x, const Array& W, const Array& y, const Window& window) {
  Shape shape = x.shape();
  for (int axis = 0; axis < window.pad.size(); ++axis) {
    std::int64_t& extent = shape[2 + axis];
    extent = std::max(
        {window.pad[axis] + extent, covered_extent(W, y, window, axis), window.stride[axis]});
  }
  const Array wide = zeros(shape, x.dtype(), x.device());
  Array inner = wide;
  for (int axis = 0; axis < window.pad.size(); ++axis) {
    inner = slice_view(inner, 2 + axis, window.pad[axis], x.shape(2 + axis));
  }
  copy(x, inner);
  return wide;
}

}  // namespace

bool onednn_convolves(Dtype dtype) {
  return dtype == Dtype::float32 || (dtype == Dtype::bfloat16 && onednn::has_avx512());
}

void onednn_forward(const Array& x, const Array& W, const Array& y, const Window& window,
                    Factors factors, FilterForms* forms) {
  const Image from = as_image(x), to = as_image(y);
  const Array weights = contiguous(W);
  run(Pass::forward, Problem(from, weights, to, window, factors),
      {&from.array, &weights, &to.array}, forms);
}

void onednn_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                       Factors factors, FilterForms* forms) {
  const Image from = as_image(gy), to = as_image(gx);
  const Array weights = contiguous(W);
  run(Pass::input_grad, Problem(to, weights, from, window, factors),
      {&from.array, &weights, &to.array}, forms);
}

void onednn_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                        Factors factors) {
  const bool bfloat16 = factors == Factors::bfloat16 || x.dtype() == Dtype::bfloat16;
  if (!overruns(x, gW, window, bfloat16)) return weight_grad(gy, x, gW, window, factors);
  Window unpadded = window;
  for (std::int64_t& pad : unpadded.pad) pad = 0;
  weight_grad(gy, padded(x, gW, gy, window), gW, unpadded, factors);
}

}  // namespace renga
