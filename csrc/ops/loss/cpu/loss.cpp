#include "ops/loss/loss.h"

#include "devices/gil_release.h"
#include "ops/reduction/cpu/softmax_row.h"

namespace renga {
namespace {

// The class of a sample and its weight; class 0 with weight 0 if it is ignored.
template <class T>
struct Labels {
  std::int64_t classes, ignore;
  const LossOf<T>* weight;  // or nullptr

  std::int64_t label(const std::byte* t) const {
    const auto label = *reinterpret_cast<const std::int64_t*>(t);
    return label == ignore ? 0 : label;
  }
  Compute<T> weight_of(const std::byte* t) const {
    const auto label = *reinterpret_cast<const std::int64_t*>(t);
    if (label == ignore) return 0;
    return weight != nullptr ? static_cast<Compute<T>>(weight[label]) : Compute<T>(1);
  }
};

template <class T>
Labels<T> labels_of(const Array& x, const Array& weight, std::int64_t ignore) {
  return {x.shape(1), ignore, weight.defined() ? weight.as<const LossOf<T>>() : nullptr};
}

// Calls body(scores, gradients, p) for every sample, with buffers for its rows of x and of gx, and
// pointers to the elements of the operands.
template <class T, int N, class Body>
void for_each_sample(const std::array<const Array*, N>& operands, const Array& x, const Array& gx,
                     const Body& body) {
  const std::int64_t classes = x.shape(1);
  parallel_walk(make_loop<N>(operands), 10 * classes, [&](std::int64_t n, auto p, const auto& s) {
    RowBuffer<T> scores(x.strides()[1], classes), gradients(gx.strides()[1], classes);
    for (std::int64_t i = 0; i < n; ++i) {
      body(scores, gradients, p);
      for (std::size_t k = 0; k < N; ++k) p[k] += s[k];
    }
  });
}

template <class T>
void nll(const Array& x, const Array& t, const Labels<T>& labels, const Array& normalizers,
         const Array& loss) {
  using C = Compute<T>;
  using Loss = LossOf<T>;
  // With no classes, all samples are ignored.
  if (labels.classes == 0) return fill(loss, 0);
  const Array xs = select_view(x, 1, 0), tops = select_view(normalizers, 0, 0);
  const Array shifts = select_view(normalizers, 0, 1);
  const std::array<const Array*, 5> operands{&loss, &t, &xs, &tops, &shifts};
  for_each_sample<T, 5>(operands, x, x, [=](auto& scores, auto&, const auto& p) {
    const C w = labels.weight_of(p[1]);
    const C* const row = scores.read(p[2]);
    const SoftmaxNormalizer<C> normalizer = softmax_normalizer(row, labels.classes);
    *reinterpret_cast<C*>(p[3]) = normalizer.top;
    *reinterpret_cast<C*>(p[4]) = normalizer.shift;
    const C score = row[labels.label(p[1])];
    const C rounded = static_cast<C>(Loss((score - normalizer.top) - normalizer.shift));
    *reinterpret_cast<Loss*>(p[0]) = Loss(w == 0 ? C(0) : -w * rounded);
  });
}

template <class T>
void nll_grad(const Array& x, const Array& normalizers, const Array& t, const Labels<T>& labels,
              const Array& gy, const Array& gx) {
  using C = Compute<T>;
  using Loss = LossOf<T>;
  if (labels.classes == 0) return;
  const Array from = select_view(x, 1, 0), rows = select_view(gx, 1, 0);
  const Array tops = select_view(normalizers, 0, 0), shifts = select_view(normalizers, 0, 1);
  const std::array<const Array*, 6> operands{&rows, &t, &from, &gy, &tops, &shifts};
  for_each_sample<T, 6>(operands, x, gx, [=](auto& scores, auto& gradients, const auto& p) {
    const std::int64_t label = labels.label(p[1]);
    const C w = labels.weight_of(p[1]), g = static_cast<C>(*reinterpret_cast<const Loss*>(p[3]));
    const C factor = static_cast<C>(Loss(w == 0 ? C(0) : w * g));
    const C top = *reinterpret_cast<const C*>(p[4]), shift = *reinterpret_cast<const C*>(p[5]);
    const C* const row = scores.read(p[2]);
    C* const to = gradients.at(p[0]);
    softmax_rows::exponentials(row, labels.classes, top, shift, factor, to);
    to[label] = (std::exp((row[label] - top) - shift) - 1) * factor;
    gradients.write(p[0]);
  });
}

void nll_cpu(const Array& x, const Array& t, const Array& weight, std::int64_t ignore,
             const Array& normalizers, const Array& loss) {
  const GilRelease work(x.size());
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) nll<T>(x, t, labels_of<T>(x, weight, ignore), normalizers, loss);
  });
}

void nll_grad_cpu(const Array& x, const Array& normalizers, const Array& t, const Array& weight,
                  std::int64_t ignore, const Array& gy, const Array& gx) {
  const GilRelease work(gx.size());
  visit_dtype(gx.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      nll_grad<T>(x, normalizers, t, labels_of<T>(gx, weight, ignore), gy, gx);
    }
  });
}

[[maybe_unused]] const bool registered = loss_kernels.add(0, {nll_cpu, nll_grad_cpu});

}  // namespace
}  // namespace renga
