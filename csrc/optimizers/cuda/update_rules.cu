#include "optimizers/kernels.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

// `p` points at x, g and the states; the gradient is changed by its decay only.
template <class T, class Rule, int N>
struct Update {
  Rule rule;
  Compute<T> decay;
  __device__ void operator()(std::byte* const* p) const {
    using C = Compute<T>;
    C v[N];
    for (int k = 0; k < N; ++k) v[k] = cuda::load<T>(p[k]);
    if (decay != 0) {
      rules::AddScaled<C>{decay}(v[1], v[0]);
      cuda::store<T>(p[1], v[1]);
      v[1] = cuda::load<T>(p[1]);  // rounded
    }
    call(v, std::make_integer_sequence<int, N>());
    for (int k = 0; k < N; ++k) {
      if (k != 1) cuda::store<T>(p[k], v[k]);
    }
  }
  template <int... K>
  __device__ void call(Compute<T>* v, std::integer_sequence<int, K...>) const {
    rule(v[K]...);
  }
};

struct CudaMap {
  template <template <class> class Rule, std::size_t States, class... Options>
  static void update(const Array& x, const Gradient& g, const std::array<Array, States>& states,
                     const Options&... options) {
    constexpr int N = 2 + States;
    std::array<const Array*, N> operands{&x, &g.array};
    for (std::size_t k = 0; k < States; ++k) operands[2 + k] = &states[k];
    visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) {
        using C = Compute<T>;
        cuda::for_each_element<N>(
            operands, Update<T, Rule<C>, N>{Rule<C>(options...), static_cast<C>(g.decay)});
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

[[maybe_unused]] const bool registered =
    update_kernels.add(cuda::number(), RuleKernels<CudaMap>::table(add_scaled_cuda));

}  // namespace
}  // namespace renga
