#include "devices/cuda/launch.h"
#include "ops/normalization/channel_vectors.h"

namespace renga {
namespace {

template <class F>
__global__ void visit_channels(std::int64_t channels, F f) {
  for (std::int64_t c = cuda::thread_index(); c < channels; c += cuda::thread_count()) f(c);
}

struct ByLaunch {
  template <class F>
  void operator()(const Array& x, const F& f) const {
    if (x.size() == 0) return;
    cuda::launch(x.device(), cuda::grid_for(x.size()), visit_channels<F>, x.size(), f);
  }
};

[[maybe_unused]] const bool registered =
    channel_vector_kernels.add(cuda::number(), channel_vectors::kernels_by<ByLaunch>());

}  // namespace
}  // namespace renga
