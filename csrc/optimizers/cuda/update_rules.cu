#include <algorithm>

#include "optimizers/cuda/held_updates.cu.h"
#include "optimizers/kernels.h"
#include "optimizers/update_mask.h"

namespace renga {
namespace {

// What kernels read of an UpdateMask; without values, updates are not masked.
struct Mask {
  const float* values;
  float t;
};

// The step of Adam's first n updates, relative to alpha.
template <class C>
__device__ C correction(const rules::Adam<C>& rule, C n) {
  return std::sqrt(-std::expm1(n * std::log1p(-rule.gain2))) /
         -std::expm1(n * std::log1p(-rule.gain1));
}

template <class C>
__device__ void leave_out(rules::Adam<C>& rule, C updates, C t) {
  rule.alpha *= correction(rule, t - updates) / correction(rule, t);
}

// `p` points at x, g and the states; the gradient is changed by its scale and decay only.
template <class T, class GivenRule, int N>
struct Update {
  GivenRule given;
  Compute<T> scale, decay;
  Mask mask;
  __device__ void operator()(std::byte* const* p) const {
    using C = Compute<T>;
    GivenRule rule = given;
    if (mask.values != nullptr) {
      if (mask.values[0] != 0) return;
      if constexpr (requires { leave_out(rule, C(), C()); }) {
        if (mask.values[1] > 0) leave_out(rule, C(mask.values[1]), C(mask.t));
      }
    }
    C v[N];
    for (int k = 0; k < N; ++k) v[k] = cuda::load<T>(p[k]);
    if (scale != 1) {
      rules::Scale<C>{scale}(v[1]);
      v[1] = rounded(p[1], v[1]);
    }
    if (decay != 0) {
      rules::AddScaled<C>{decay}(v[1], v[0]);
      v[1] = rounded(p[1], v[1]);
    }
    call(rule, v, std::make_integer_sequence<int, N>());
    for (int k = 0; k < N; ++k) {
      if (k != 1) cuda::store<T>(p[k], v[k]);
    }
  }
  // Stores a number.
  __device__ static Compute<T> rounded(std::byte* p, Compute<T> number) {
    cuda::store<T>(p, number);
    return cuda::load<T>(p);
  }
  template <int... K>
  __device__ static void call(const GivenRule& rule, Compute<T>* v,
                              std::integer_sequence<int, K...>) {
    rule(v[K]...);
  }
};

struct CudaMap {
  template <template <class> class Rule, std::size_t States, class... Options>
  static void update(const Array& x, const Gradient& g, const std::array<Array, States>& states,
                     const Options&... options) {
    constexpr int N = 2 + States;
    const UpdateMask& given = update_mask();
    Mask mask{nullptr, static_cast<float>(given.t)};
    if (given.values.defined() && given.values.device() == x.device()) {
      mask.values = given.values.template as<float>();
    }
    std::array<const Array*, N> operands{&x, &g.array};
    std::ranges::transform(states, operands.begin() + 2, [](const Array& x) { return &x; });
    visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) {
        using C = Compute<T>;
        const Update<T, Rule<C>, N> update{Rule<C>(options...), static_cast<C>(g.scale),
                                           static_cast<C>(g.decay), mask};
        if (!cuda::hold<T>(operands, update)) cuda::for_each_element<N>(operands, update);
      }
    });
  }
};

template <class T>
struct Add {
  rules::AddScaled<Compute<T>> rule;
  __device__ void operator()(std::byte* const* p) const {
    Compute<T> y = cuda::load<T>(p[0]);
    rule(y, cuda::load<T>(p[1]));
    cuda::store<T>(p[0], y);
  }
};

void add_scaled_cuda(const Array& y, const Array& x, double scale) {
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::for_each_element<2>({&y, &x}, Add<T>{{static_cast<Compute<T>>(scale)}});
    }
  });
}

[[maybe_unused]] const bool registered = update_kernels.add(
    cuda::number(), RuleKernels<CudaMap>::table(add_scaled_cuda, cuda::update_together));

}  // namespace
}  // namespace renga
