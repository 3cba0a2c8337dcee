#include "ops/normalization/channel_vectors.h"

namespace renga {
namespace {

struct ByLoop {
  template <class F>
  void operator()(const Array& x, const F& f) const {
    const std::int64_t channels = x.size();
    for (std::int64_t c = 0; c < channels; ++c) f(c);
  }
};

[[maybe_unused]] const bool registered =
    channel_vector_kernels.add(0, channel_vectors::kernels_by<ByLoop>());

}  // namespace
}  // namespace renga
