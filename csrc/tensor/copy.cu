#include "tensor/copy.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

template <class From, class To>
struct Convert {
  __device__ void operator()(std::byte* const* p) const {
    *reinterpret_cast<To*>(p[0]) = cuda::convert<To>(*reinterpret_cast<const From*>(p[1]));
  }
};

template <class T>
struct Fill {
  double value;
  __device__ void operator()(std::byte* const* p) const {
    *reinterpret_cast<T*>(p[0]) = cuda::convert<T>(value);
  }
};

void copy_cuda(const Array& from, const Array& to) {
  visit_dtype(from.dtype(), [&]<class From>(Type<From>) {
    visit_dtype(to.dtype(), [&]<class To>(Type<To>) {
      using Body = Convert<typename cuda::OnDevice<From>::type, typename cuda::OnDevice<To>::type>;
      cuda::launch<2>({&to, &from}, Body{});
    });
  });
}

void fill_cuda(const Array& x, double value) {
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    cuda::launch<1>({&x}, Fill<typename cuda::OnDevice<T>::type>{value});
  });
}

[[maybe_unused]] const bool registered = copy_kernels.add(cuda::number(), {copy_cuda, fill_cuda});

}  // namespace
}  // namespace renga
