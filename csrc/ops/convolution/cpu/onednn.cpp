#include "ops/convolution/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <span>

#include "devices/cpu/onednn.h"
#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/convolution/cpu/padded_image.h"
#include "ops/matmul/cpu/bfloat16_operands.h"
#include "ops/shape/image.h"
#include "simd/cpu_features.h"
#include "tensor/views.h"

namespace renga::convolution {
namespace {

using dnnl::memory;
using onednn::Operand;
using onednn::Plan;
using Tag = memory::format_tag;

// Whether the axes adjoin in memory in this order.
bool is_dense(const Array& x, const Axes& order) {
  std::int64_t step = x.itemsize();
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    if (x.shape(axis) != 1 && x.strides()[axis] != step) return false;
    step *= x.shape(axis);
  }
  return true;
}

// An image of two or three axes in one of the two layouts that oneDNN is given.
struct Image {
  Array array;
  Tag layout;
};

Tag channels_last_tag(const Array& x) { return x.ndim() == 4 ? Tag::nhwc : Tag::ndhwc; }

Image as_image(const Array& x) {
  const Axes last = channels_last_axes(x.ndim());
  Axes first{0, 1, 2, 3};
  if (x.ndim() == 5) first.push_back(4);
  if (is_dense(x, last)) return {x, channels_last_tag(x)};
  if (is_dense(x, first)) return {x, x.ndim() == 4 ? Tag::nchw : Tag::ncdhw};
  const Array dense = empty_in_order(x.shape(), last, x.dtype());
  copy(x, dense);
  return {dense, channels_last_tag(x)};
}

memory::dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

memory::data_type type_of(Dtype dtype) {
  return dtype == Dtype::bfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// Whether oneDNN's kernels of bfloat16 compute the pass. Where rows are dilated and the inputs of a
// group are no whole vectors, those of weight gradients read numbers behind their scratchpad, times
// zeros: gradients are NaN where such numbers are.
bool supports_bfloat16(const Problem& problem) {
  constexpr std::int64_t kVector = 16;
  const Dims& dilate = problem.window.dilate;
  const bool reads_beyond = problem.pass == Pass::weight_grad && dilate[dilate.size() - 2] > 1 &&
                            problem.W.shape(1) % kVector != 0;
  return onednn_supports(Dtype::bfloat16) && !reads_beyond;
}

// Makes oneDNN's primitives for the passes of a convolution. Inside, images are channels last: as
// fast as oneDNN's blocked layouts (measured), which nothing else needs to know then. Where oneDNN
// has only loops over single numbers for one of the two, images are in the other one.
class PlanBuilder {
 public:
  PlanBuilder(const Problem& problem, Tag x_layout, Tag y_layout)
      : problem_(problem),
        x_{problem.x, x_layout},
        y_{problem.y, y_layout},
        W_(problem.W),
        window_(problem.window),
        compute_type_(problem.multiplies_bfloat16() && supports_bfloat16(problem)
                          ? memory::data_type::bf16
                          : memory::data_type::f32),
        in_blocks_(gains_by_blocks()) {}

  // Throws std::invalid_argument where oneDNN has no kernel for these operands.
  Plan plan() {
    try {
      return supported_plan();
    } catch (const dnnl::error& error) {
      fail<std::invalid_argument>("convolution: expected operands that oneDNN supports, got x of ",
                                  x_.array.shape(), ", W of ", W_.shape(), " and y of ",
                                  y_.array.shape(), " with stride ", window_.stride, ", pad ",
                                  window_.pad, ", dilate ", window_.dilate, ": ", error.what());
    }
  }

 private:
  Plan supported_plan() {
    Plan plan = plan_in_layout();
    if (!plan.is_reference()) return plan;
    in_blocks_ = !in_blocks_;
    Plan other = plan_in_layout();
    return other.is_reference() ? plan : other;
  }

  Plan plan_in_layout() const {
    const Pass pass = problem_.pass;
    const dnnl::convolution_forward::primitive_desc forward(
        onednn::engine(), dnnl::prop_kind::forward_training, algorithm_, input(x_),
        weights(Tag::any, compute_type_), pass == Pass::forward ? result(y_) : input(y_), strides(),
        dilates(), padding_before(), padding_after(), onednn::own_scratchpad());
    if (pass == Pass::forward) {
      return Plan(dnnl::convolution_forward(forward), forward.scratchpad_desc(),
                  {Operand::input(DNNL_ARG_SRC, external(x_), forward.src_desc()),
                   weights_operand(forward.weights_desc()),
                   Operand::output(DNNL_ARG_DST, external(y_), forward.dst_desc())});
    }
    return pass == Pass::input_grad ? input_grad(forward) : weight_grad(forward);
  }

  Plan input_grad(const dnnl::convolution_forward::primitive_desc& forward) const {
    const dnnl::convolution_backward_data::primitive_desc back(
        onednn::engine(), algorithm_, result(x_), weights(Tag::any, compute_type_), input(y_),
        strides(), dilates(), padding_before(), padding_after(), forward, onednn::own_scratchpad());
    return Plan(dnnl::convolution_backward_data(back), back.scratchpad_desc(),
                {Operand::input(DNNL_ARG_DIFF_DST, external(y_), back.diff_dst_desc()),
                 weights_operand(back.weights_desc()),
                 Operand::output(DNNL_ARG_DIFF_SRC, external(x_), back.diff_src_desc())});
  }

  Plan weight_grad(const dnnl::convolution_forward::primitive_desc& forward) const {
    const dnnl::convolution_backward_weights::primitive_desc back(
        onednn::engine(), algorithm_, input(x_), weights(Tag::any, result_type(W_)), input(y_),
        strides(), dilates(), padding_before(), padding_after(), forward, onednn::own_scratchpad());
    return Plan(dnnl::convolution_backward_weights(back), back.scratchpad_desc(),
                {Operand::input(DNNL_ARG_DIFF_DST, external(y_), back.diff_dst_desc()),
                 Operand::input(DNNL_ARG_SRC, external(x_), back.src_desc()),
                 Operand::output(DNNL_ARG_DIFF_WEIGHTS, weights(), back.diff_weights_desc())});
  }

  // Without AVX-512, most gradients of weights are matrix products on channels-last images, which
  // take up to four times as long as oneDNN's kernels for blocks of channels. A block is of one
  // group.
  bool gains_by_blocks() const {
    constexpr std::int64_t kBlock = 8;
    const std::int64_t outputs = W_.shape(0) / window_.groups, inputs = W_.shape(1);
    return problem_.pass == Pass::weight_grad && !simd::has_avx512() &&
           (window_.groups == 1 || std::min(outputs, inputs) >= kBlock);
  }

  // An image as the caller has it, and as the primitive reads and writes it.
  memory::desc external(const Image& x) const {
    return {dims_of(x.array.shape()), type_of(x.array.dtype()), x.layout};
  }
  memory::desc input(const Image& x) const {
    return {dims_of(x.array.shape()), compute_type_, layout_of(x)};
  }
  memory::desc result(const Image& x) const {
    return {dims_of(x.array.shape()), result_type(x.array), layout_of(x)};
  }
  Tag layout_of(const Image& x) const { return in_blocks_ ? Tag::any : channels_last_tag(x.array); }
  memory::data_type result_type(const Array& x) const {
    return compute_type_ == memory::data_type::f32 ? compute_type_ : type_of(x.dtype());
  }

  Operand weights_operand(const memory::desc& inside) const {
    return Operand::input(DNNL_ARG_WEIGHTS, weights(), inside,
                          right_operand_move(weights(), inside));
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
  memory::dims padding_before() const { return dims_of(window_.pad); }
  // The padding after an image is that before it, unless y has more positions (cover_all) or fewer
  // (blocks of images).
  memory::dims padding_after() const {
    memory::dims pad;
    for (int axis = 0; axis < window_.pad.size(); ++axis) {
      const std::int64_t size = x_.array.shape(2 + axis), positions = y_.array.shape(2 + axis);
      const std::int64_t kernel = W_.shape(2 + axis), before = window_.pad[axis];
      const bool symmetric = window_.extent(size, kernel, axis, false) == positions;
      const std::int64_t covered = window_.covered(positions, kernel, axis);
      pad.push_back(symmetric ? before : covered - size - before);
    }
    return pad;
  }

  static constexpr auto algorithm_ = dnnl::algorithm::convolution_direct;
  const Problem& problem_;
  const Image x_, y_;
  const Array& W_;
  const Window& window_;
  memory::data_type compute_type_;
  bool in_blocks_;  // whether oneDNN chooses the layout of images
};

onednn::Plans& plans = *new onednn::Plans;  // never destroyed, like the engine

// Returns the plan for dense images of these layouts.
std::shared_ptr<const Plan> plan_of(const Problem& problem, Tag x_layout, Tag y_layout) {
  onednn::Key key = problem.key();
  for (Tag layout : {x_layout, y_layout}) key.push_back(static_cast<std::int64_t>(layout));
  return plans.get(std::move(key), [&] { return PlanBuilder(problem, x_layout, y_layout).plan(); });
}

// The weights as the plan wants them; an undefined Array where the caller has them so.
Array packed_weights(const Plan& plan, const Array& W, PackedWeightCache* cache) {
  const std::size_t bytes = plan.inside_bytes(1);
  if (bytes == 0) return Array();
  const auto pack = [&] {
    const Array packed = empty({static_cast<std::int64_t>(bytes)}, Dtype::uint8);
    plan.bring(1, W.data(), packed.data());
    return packed;
  };
  return kept_or_packed(cache, plan.inside_key(1), pack);
}

// The plan for one sample, on each of them with one thread: so the bits of a sum do not depend on
// the number of threads. `input` and `result` are dense in memory, samples outermost.
void run_by_samples(const Plan& plan, const Array& input, const Array& W, const Array& result,
                    PackedWeightCache* cache) {
  const Array packed = packed_weights(plan, W, cache);
  const std::int64_t samples = input.shape(0);
  const std::int64_t cost = result.size() / samples * (W.size() / W.shape(0)) / 8;
  for_each_alone(samples, cost, [&](std::int64_t i) {
    const std::array<void*, 3> data{slice_view(input, 0, i, 1).data(),
                                    packed.defined() ? packed.data() : W.data(),
                                    slice_view(result, 0, i, 1).data()};
    plan.run(data, packed.defined() ? 1 : -1);
  });
}

void weight_grad(const Problem& problem) {
  const Image x = as_image(problem.x), gy = as_image(problem.y);
  const auto plan = plan_of(problem.of(gy.array, x.array, problem.W), x.layout, gy.layout);
  plan->run(std::array<void*, 3>{gy.array.data(), x.array.data(), problem.W.data()});
}

// Whether oneDNN's kernels for the gradients of weights access memory out of bounds: those for
// volumes where an extent is smaller than the filter's or the stride, that for images of bfloat16
// numbers where they are narrower than a stride.
bool is_out_of_bounds(const Problem& problem) {
  const Array& x = problem.x;
  const Window& window = problem.window;
  const int axes = window.pad.size();
  const bool bfloat16 = problem.multiplies_bfloat16() || x.dtype() == Dtype::bfloat16;
  if (axes == 2) return bfloat16 && x.shape(3) < window.stride[1];
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t reach = window.reach(problem.W.shape(2 + axis), axis);
    if (x.shape(2 + axis) < std::max(reach, window.stride[axis])) return true;
  }
  return false;
}

// Zeros to put around gy before an input gradient at step 1: oneDNN's fast kernels read so many
// pixels beyond an image at most, where gy's channels are no multiple of a block.
Dims margins_of(const Problem& problem) {
  constexpr std::int64_t kMostBeyond = 7;
  const Window& window = problem.window;
  Dims margins = Dims::filled(window.pad.size(), 0);
  if (problem.pass == Pass::forward || window.stride != Dims::filled(margins.size(), 1)) {
    return margins;
  }
  for (int axis = 0; axis < margins.size(); ++axis) {
    const std::int64_t reach = window.reach(problem.W.shape(2 + axis), axis);
    margins[axis] = std::max<std::int64_t>(reach - 1 - window.pad[axis] - kMostBeyond, 0);
  }
  return margins;
}

// The same input gradient of gy with margins of zeros.
void convolve_with_margins(const Problem& problem, const Dims& margins) {
  Dims extents = spatial_extents(problem.y);
  Window window = problem.window;
  for (int axis = 0; axis < margins.size(); ++axis) {
    extents[axis] += 2 * margins[axis];
    window.pad[axis] += margins[axis];
  }
  const PaddedImage gy = zero_padded(problem.y, extents, margins);
  copy(problem.y, gy.image);
  onednn_convolve(
      {problem.pass, problem.x, problem.W, gy.all, window, problem.cache, problem.arithmetic});
}

// The image with explicit zero padding, for a window without padding.
Array padded(const Problem& problem) {
  Dims extents = padded_extents(spatial_extents(problem.x), spatial_extents(problem.W),
                                spatial_extents(problem.y), problem.window);
  for (int axis = 0; axis < extents.size(); ++axis) {
    extents[axis] = std::max(extents[axis], problem.window.stride[axis]);
  }
  const PaddedImage wide = zero_padded(problem.x, extents, problem.window.pad);
  copy(problem.x, wide.image);
  return wide.all;
}

// Whether one thread takes some tenths of a second, which is too long for a comparison. Problems of
// this size were not seen to differ.
bool takes_long(const Problem& problem) {
  constexpr std::int64_t kProducts = std::int64_t{1} << 33;
  return problem.y.size() / problem.W.shape(0) * problem.W.size() > kProducts;
}

std::span<const std::byte> bytes_of(const Array& dense) {
  return {dense.data(), static_cast<std::size_t>(dense.size() * dense.itemsize())};
}

}  // namespace

bool onednn_supports(Dtype dtype) {
  return dtype == Dtype::float32 || (dtype == Dtype::bfloat16 && simd::has_avx512());
}

void onednn_convolve(const Problem& problem) {
  const bool forward = problem.pass == Pass::forward;
  const Image x = as_image(problem.x), y = as_image(problem.y);
  const Array weights = contiguous(problem.W);
  const Array &input = forward ? x.array : y.array, &result = forward ? y.array : x.array;
  const auto plan_for = [&](const Array& input, const Array& result) {
    return plan_of(problem.of(input, weights, result), x.layout, y.layout);
  };
  const auto plan = plan_for(input, result);
  if (plan->is_gemm()) {
    const Dims margins = margins_of(problem);
    if (margins != Dims::filled(margins.size(), 0)) return convolve_with_margins(problem, margins);
    const auto plan_for_one_thread = [&] {
      const SingleThread alone;
      return plan_for(slice_view(input, 0, 0, 1), slice_view(result, 0, 0, 1));
    };
    return run_by_samples(*plan_for_one_thread(), input, weights, result, problem.cache);
  }
  const auto run = [&](const Plan& plan, const Array& to) {
    const bool keeps = problem.cache != nullptr;
    const Array packed = keeps ? packed_weights(plan, weights, problem.cache) : Array();
    std::array<void*, 3> data{input.data(), weights.data(), to.data()};
    if (packed.defined()) data[1] = packed.data();
    plan.run(data, packed.defined() ? 1 : -1);
  };
  if (omp_get_max_threads() == 1 || takes_long(problem)) return run(*plan, result);
  const auto run_on_one_thread = [&] {
    const SingleThread alone;
    run(*plan_for(input, result), result);
  };
  // oneDNN cuts the sums of some problems by the number of threads. The first time, a problem is
  // computed on one thread and on all: if these have other bits, it stays on one.
  using Bits = Plan::Bits;
  switch (plan->bits()) {
    case Bits::of_one_thread:
      return run(*plan, result);
    case Bits::others:
      return run_on_one_thread();
    case Bits::unknown:
      break;
  }
  run_on_one_thread();
  const auto expected = bytes_of(result);
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (std::ranges::all_of(expected, is_zero)) return;  // which tells nothing
  const Array other = empty_like(result);
  run(*plan, other);
  const bool same = std::ranges::equal(expected, bytes_of(other));
  plan->bits() = same ? Bits::of_one_thread : Bits::others;
}

void onednn_weight_grad(const Problem& problem) {
  if (!is_out_of_bounds(problem)) return weight_grad(problem);
  const Array x = padded(problem);
  Window window = problem.window;
  window.pad = Dims::filled(window.pad.size(), 0);
  weight_grad({problem.pass, x, problem.W, problem.y, window, nullptr, problem.arithmetic});
}

}  // namespace renga::convolution
