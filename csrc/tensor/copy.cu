#include "tensor/copy.h"
#include "tensor/elements.cu.h"

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

[[maybe_unused]] const bool registered = copy_kernels.add(cuda::number(), {copy_cuda, fill_cuda});

}  // namespace
}  // namespace renga
