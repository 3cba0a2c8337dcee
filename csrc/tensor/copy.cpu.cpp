#include "tensor/copy.h"

#include <cstring>

#include "devices/host.h"
#include "devices/long_work.h"
#include "tensor/strided_loop.h"

namespace renga {

constinit KernelTable<CopyKernels> copy_kernels{"copy"};

namespace {

template <class From, class To>
To convert(From v) {
  if constexpr (std::is_same_v<From, To>) {
    return v;
  } else if constexpr (is_half<From>) {
    return convert<float, To>(static_cast<float>(v));
  } else if constexpr (is_half<To>) {
    return To(static_cast<float>(v));
  } else {
    return static_cast<To>(v);
  }
}

template <class From, class To>
void copy_run(std::int64_t n, const std::byte* from, std::int64_t from_step, std::byte* to,
              std::int64_t to_step) {
  if (from_step == sizeof(From) && to_step == sizeof(To)) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(To));
    } else {
      const auto* x = reinterpret_cast<const From*>(from);
      auto* y = reinterpret_cast<To*>(to);
      for (std::int64_t i = 0; i < n; ++i) y[i] = convert<From, To>(x[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(to + i * to_step) =
        convert<From, To>(*reinterpret_cast<const From*>(from + i * from_step));
  }
}

void copy_cpu(const Array& from, const Array& to) {
  const LongWork work(to.size());
  const auto loop = make_loop<2>({&to, &from});
  visit_dtype(from.dtype(), [&]<class From>(Type<From>) {
    visit_dtype(to.dtype(), [&]<class To>(Type<To>) {
      parallel_walk(loop, 2, [](std::int64_t n, const auto& p, const auto& s) {
        copy_run<From, To>(n, p[1], s[1], p[0], s[0]);
      });
    });
  });
}

void fill_cpu(const Array& x, double value) {
  const LongWork work(x.size());
  const auto loop = make_loop<1>({&x});
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    const T v = convert<double, T>(value);
    parallel_walk(loop, 1, [v](std::int64_t n, const auto& p, const auto& s) {
      for (std::int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(p[0] + i * s[0]) = v;
    });
  });
}

[[maybe_unused]] const bool registered = copy_kernels.add(0, {copy_cpu, fill_cpu});

}  // namespace
}  // namespace renga
