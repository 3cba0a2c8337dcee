#include <memory>

#include "devices/cuda/event.h"
#include "devices/cuda/recording.h"
#include "tensor/copy.h"
#include "tensor/cuda/transpose.cu.h"

namespace renga {
namespace {

template <class To, class From>
struct Convert {
  __device__ void operator()(std::byte* const* p) const {
    *reinterpret_cast<To*>(p[0]) = convert<To>(*reinterpret_cast<const From*>(p[1]));
  }
};

template <class T>
struct Fill {
  T value;
  __device__ void operator()(std::byte* const* p) const { *reinterpret_cast<T*>(p[0]) = value; }
};

void copy_cuda(const Array& from, const Array& to) {
  if (cuda::copy_by_tiles(from, to)) return;
  visit_dtype(from.dtype(), [&]<class From>(Type<From>) {
    visit_dtype(to.dtype(), [&]<class To>(Type<To>) {
      cuda::for_each_element<2>({&to, &from}, Convert<To, From>{});
    });
  });
}

void fill_cuda(const Array& x, double value) {
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    cuda::for_each_element<1>({&x}, Fill<T>{convert<T>(value)});
  });
}

// Copies on the stream of `to`, between what precedes and what follows on that of `from`.
void copy_across_cuda(const Array& from, const Array& to) {
  const int source = from.device().index, target = to.device().index;
  const auto bytes = static_cast<std::size_t>(from.size() * from.itemsize());
  if (bytes == 0) return;
  cuda::require_no_recording("a copy to another device");
  const auto event_after = [](int index) {
    const cuda::Use use(index);
    auto event = std::make_unique<cuda::Event>(cudaEventDisableTiming);
    event->record(cuda::stream());
    return event;
  };
  const auto ready = event_after(source);
  {
    const cuda::Use use(target);
    ready->hold(cuda::stream());
    RENGA_CUDA(cudaMemcpyPeerAsync(to.data(), target, from.data(), source, bytes, cuda::stream()));
  }
  const auto copied = event_after(target);
  const cuda::Use use(source);
  copied->hold(cuda::stream());
}

[[maybe_unused]] const bool registered =
    copy_kernels.add(cuda::number(), {copy_cuda, fill_cuda, copy_across_cuda});

}  // namespace
}  // namespace renga
