// The four basic operations; the other maps have no CUDA kernel yet and say so.
#include "ops/elementwise/elementwise.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a * b;
  }
};
struct Divide {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a / b;
  }
};

// T is computed with in C.
template <class T, class C, class Map>
struct Pairwise {
  __device__ void operator()(std::byte* const* p) const {
    const C a = cuda::convert<C>(*reinterpret_cast<const T*>(p[1]));
    const C b = cuda::convert<C>(*reinterpret_cast<const T*>(p[2]));
    *reinterpret_cast<T*>(p[0]) = cuda::convert<T>(static_cast<C>(Map{}(a, b)));
  }
};

template <class Map>
void pairwise(const Array& a, const Array& b, const Array& y) {
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    using Body = Pairwise<typename cuda::OnDevice<T>::type, Compute<T>, Map>;
    cuda::launch<3>({&y, &a, &b}, Body{});
  });
}

[[noreturn]] void fail_unknown() {
  fail<std::runtime_error>("elementwise: this function has no CUDA kernel yet");
}

void binary(Binary map, double, const Array& a, const Array& b, const Array& y) {
  switch (map) {
    case Binary::add:
      return pairwise<Add>(a, b, y);
    case Binary::subtract:
      return pairwise<Subtract>(a, b, y);
    case Binary::multiply:
      return pairwise<Multiply>(a, b, y);
    case Binary::divide:
      return pairwise<Divide>(a, b, y);
    default:
      fail_unknown();
  }
}

void unary(Unary, double, double, const Array&, const Array&) { fail_unknown(); }

void select(const Array&, const Array&, const Array&, const Array&) { fail_unknown(); }

[[maybe_unused]] const bool registered =
    elementwise_kernels.add(cuda::number(), {unary, binary, select});

}  // namespace
}  // namespace renga
