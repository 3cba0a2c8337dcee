#include "ops/convolution/cpu/onednn.h"

#include <array>

#include "devices/cpu/onednn.h"
#include "simd/cpu_features.h"
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

  Plan plan(Pass pass) const {
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

 private:
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
      const std::int64_t covered =
          (positions - 1) * window_.stride[axis] + window_.reach(kernel, axis);
      const bool alike = window_.extent(size, kernel, axis, false) == positions;
      pad.push_back(alike ? before : covered - size - before);
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

// With zeros behind its columns.
Array widened(const Array& x, std::int64_t columns) {
  const int last = x.ndim() - 1;
  Shape shape = x.shape();
  shape[last] = columns;
  const Array wide = zeros(shape, x.dtype(), x.device());
  copy(x, slice_view(wide, last, 0, x.shape(last)));
  return wide;
}

}  // namespace

bool onednn_convolves(Dtype dtype) {
  return dtype == Dtype::float32 || (dtype == Dtype::bfloat16 && simd::has_avx512());
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
  // oneDNN's kernel for bfloat16 numbers reads beyond images that are narrower than a stride.
  const bool rounds = factors == Factors::bfloat16 || x.dtype() == Dtype::bfloat16;
  const bool narrow = rounds && x.shape(x.ndim() - 1) < window.stride.back();
  const Image from_y = as_image(gy);
  const Image from_x = as_image(narrow ? widened(x, window.stride.back()) : x);
  run(Pass::weight_grad, Problem(from_x, gW, from_y, window, factors),
      {&from_y.array, &from_x.array, &gW});
}

}  // namespace renga
