#include "optimizers/cpu/fused_update.h"
#include "optimizers/kernels.h"

namespace renga {
namespace {

struct CpuMap {
  template <template <class> class Rule, std::size_t N, class... Options>
  static void update(const Array& x, const Gradient& g, const std::array<Array, N>& states,
                     const Options&... options) {
    const auto make_rule = [&]<class C>(Type<C>) { return Rule<C>(options...); };
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      fused_update(make_rule, x, g, states[K]...);
    }
    (std::make_index_sequence<N>());
  }
};

void add_scaled_cpu(const Array& y, const Array& x, double scale) {
  fused_update([=]<class C>(Type<C>) { return rules::AddScaled<C>{C(scale)}; }, y, x);
}

[[maybe_unused]] const bool registered =
    update_kernels.add(0, RuleKernels<CpuMap>::table(add_scaled_cpu));

}  // namespace
}  // namespace renga
