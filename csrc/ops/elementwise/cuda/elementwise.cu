
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/integer_maps.h"
#include "ops/elementwise/maps.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

template <class T>
inline constexpr bool is_number = !std::is_same_v<T, bool>;

template <Unary map, class T>
struct UnaryMap {
  Compute<T> p, q;
  __device__ void operator()(std::byte* const* at) const {
    const Compute<T> v = cuda::load<T>(at[1]);
    if constexpr (is_floating<T>) {
      cuda::store<T>(at[0], maps::unary<map>(v, p, q));
    } else {
      cuda::store<T>(at[0], integers::unary<map>(v));
    }
  }
};

template <Binary map, class T>
struct BinaryMap {
  Compute<T> p;
  __device__ void operator()(std::byte* const* at) const {
    const Compute<T> a = cuda::load<T>(at[1]), b = cuda::load<T>(at[2]);
    if constexpr (is_floating<T>) {
      cuda::store<T>(at[0], maps::binary<map>(a, b, p));
    } else if constexpr (map == Binary::floor_divide) {
      auto fault = integers::Fault::none;  // not reported: that would wait for the device
      cuda::store<T>(at[0], integers::floor_divide(a, b, fault));
    } else {
      cuda::store<T>(at[0], integers::binary<map>(a, b));
    }
  }
};

template <Quaternary map, class T>
struct QuaternaryMap {
  __device__ void operator()(std::byte* const* at) const {
    cuda::store<T>(at[0], maps::quaternary<map>(cuda::load<T>(at[1]), cuda::load<T>(at[2]),
                                                cuda::load<T>(at[3]), cuda::load<T>(at[4])));
  }
};

// T is an integer of the elements' size: they are only copied.
template <class T>
struct Select {
  __device__ void operator()(std::byte* const* at) const {
    const std::byte* from = *reinterpret_cast<const bool*>(at[1]) ? at[2] : at[3];
    *reinterpret_cast<T*>(at[0]) = *reinterpret_cast<const T*>(from);
  }
};

void unary_cuda(Unary map, double p, double q, const Array& x, const Array& y) {
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_number<T>) {
      using C = Compute<T>;
      constexpr Unary last = is_floating<T> ? maps::kLastUnary : integers::kLastUnary;
      maps::visit_map<last>(map, [&]<Unary m>() {
        cuda::map_elements<T, 2>({&y, &x}, UnaryMap<m, T>{convert<C>(p), convert<C>(q)});
      });
    }
  });
}

void binary_cuda(Binary map, double p, const Array& a, const Array& b, const Array& y) {
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_number<T>) {
      constexpr Binary last = is_floating<T> ? maps::kLastBinary : integers::kLastBinary;
      maps::visit_map<last>(map, [&]<Binary m>() {
        cuda::map_elements<T, 3>({&y, &a, &b}, BinaryMap<m, T>{convert<Compute<T>>(p)});
      });
    }
  });
}

void quaternary_cuda(Quaternary map, const Array& a, const Array& b, const Array& c, const Array& d,
                     const Array& y) {
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      maps::visit_map<maps::kLastQuaternary>(map, [&]<Quaternary m>() {
        cuda::map_elements<T, 5>({&y, &a, &b, &c, &d}, QuaternaryMap<m, T>{});
      });
    }
  });
}

void select_cuda(const Array& condition, const Array& a, const Array& b, const Array& y) {
  visit_bits(y.itemsize(), [&]<class T>(Type<T>) {
    cuda::for_each_element<4>({&y, &condition, &a, &b}, Select<T>{});
  });
}

[[maybe_unused]] const bool registered = elementwise_kernels.add(
    cuda::number(), {unary_cuda, binary_cuda, quaternary_cuda, select_cuda});

}  // namespace
}  // namespace renga
