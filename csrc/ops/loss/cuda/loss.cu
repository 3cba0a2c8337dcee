#include "ops/loss/loss.h"
#include "ops/reduction/cuda/softmax_row.cu.h"

namespace renga {
namespace {

// The class of a sample and its weight; class 0 with weight 0 if it is ignored.
template <class T>
struct Labels {
  std::int64_t ignore;
  const LossOf<T>* weight;  // or nullptr
  __device__ std::int64_t label(std::int64_t t) const { return t == ignore ? 0 : t; }
  __device__ Compute<T> weight_of(std::int64_t t) const {
    if (t == ignore) return 0;
    return weight != nullptr ? static_cast<Compute<T>>(weight[t]) : Compute<T>(1);
  }
};

template <class T>
Labels<T> labels_of(const Array& weight, std::int64_t ignore) {
  return {ignore, weight.defined() ? weight.as<const LossOf<T>>() : nullptr};
}

// `samples` points at a loss, its label, the first class of x, and the two normalizers.
template <class T>
__global__ void nll(Labels<T> labels, cuda::ElementLoop<5> samples, std::int64_t classes,
                    std::int64_t step, cuda::FoldGrid grid) {
  using C = Compute<T>;
  for (cuda::FoldThread thread(grid); thread.any_left(samples.size); thread.result += thread.step) {
    std::byte* p[5] = {};
    const bool is_used = thread.result < samples.size;
    if (is_used) samples.locate(thread.result, p);
    const cuda::Row<T> x{p[2], is_used ? classes : 0, step};
    const cuda::SoftmaxTotals<T> totals = cuda::softmax_totals(thread, x);
    if (!is_used || thread.row != 0) continue;
    const C shift = static_cast<C>(std::log(totals.total));
    *reinterpret_cast<C*>(p[3]) = totals.top;
    *reinterpret_cast<C*>(p[4]) = shift;
    const auto t = *reinterpret_cast<const std::int64_t*>(p[1]);
    const C w = labels.weight_of(t);
    const C log_p = static_cast<C>(LossOf<T>(x.at(labels.label(t)) - totals.top - shift));
    cuda::store<LossOf<T>>(p[0], w == 0 ? C(0) : -w * log_p);
  }
}

// `samples` points at the first class of gx and of x, a label, the gradient of a loss, and the two
// normalizers.
template <class T>
__global__ void nll_grad(Labels<T> labels, cuda::ElementLoop<6> samples, std::int64_t classes,
                         std::int64_t step, std::int64_t to_step, cuda::FoldGrid grid) {
  using C = Compute<T>;
  for (cuda::FoldThread thread(grid); thread.result < samples.size; thread.result += thread.step) {
    std::byte* p[6];
    samples.locate(thread.result, p);
    const auto t = *reinterpret_cast<const std::int64_t*>(p[2]);
    const std::int64_t label = labels.label(t);
    const C w = labels.weight_of(t);
    const C factor = static_cast<C>(LossOf<T>(w == 0 ? C(0) : w * cuda::load<LossOf<T>>(p[3])));
    const C top = *reinterpret_cast<const C*>(p[4]), shift = *reinterpret_cast<const C*>(p[5]);
    for (std::int64_t i = thread.row; i < classes; i += thread.rows) {
      const C v =
          std::exp(cuda::load<T>(p[1] + i * step) - top - shift) - (i == label ? C(1) : C(0));
      cuda::store<T>(p[0] + i * to_step, v * factor);
    }
  }
}

void nll_cuda(const Array& x, const Array& t, const Array& weight, std::int64_t ignore,
              const Array& normalizers, const Array& loss) {
  if (loss.size() == 0) return;
  const std::int64_t classes = x.shape(1), step = x.strides()[1];
  if (classes == 0) return fill(loss, 0);
  const Array xs = select_view(x, 1, 0);
  const Array tops = select_view(normalizers, 0, 0), shifts = select_view(normalizers, 0, 1);
  const auto samples = cuda::make_element_loop<5>({&loss, &t, &xs, &tops, &shifts});
  const auto grid = cuda::row_grid(samples, 2, classes, step);
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(x.device(), grid.grid(sizeof(double)), nll<T>, labels_of<T>(weight, ignore),
                   samples, classes, step, grid);
    }
  });
}

void nll_grad_cuda(const Array& x, const Array& normalizers, const Array& t, const Array& weight,
                   std::int64_t ignore, const Array& gy, const Array& gx) {
  if (gx.size() == 0) return;
  const std::int64_t classes = gx.shape(1), step = x.strides()[1];
  const Array from = select_view(x, 1, 0), rows = select_view(gx, 1, 0);
  const Array tops = select_view(normalizers, 0, 0), shifts = select_view(normalizers, 0, 1);
  const auto samples = cuda::make_element_loop<6>({&rows, &from, &t, &gy, &tops, &shifts});
  const auto grid = cuda::row_grid(samples, 1, classes, step);
  visit_dtype(gx.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(gx.device(), grid.grid(0), nll_grad<T>, labels_of<T>(weight, ignore), samples,
                   classes, step, gx.strides()[1], grid);
    }
  });
}

[[maybe_unused]] const bool registered =
    loss_kernels.add(cuda::number(), {nll_cuda, nll_grad_cuda});

}  // namespace
}  // namespace renga
