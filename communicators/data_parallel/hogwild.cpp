#include "data_parallel/hogwild.h"

#include <atomic>

#include "devices/gil_release.h"
#include "tensor/error.h"

namespace renga {

namespace {

template <class T>
void subtract_scaled(T* x, const T* g, std::int64_t n, T lr) {
  static_assert(std::atomic_ref<T>::is_always_lock_free);
  for (std::int64_t i = 0; i < n; ++i) {
    if (g[i] == 0) continue;
    const std::atomic_ref<T> element(x[i]);
    T before = element.load(std::memory_order_relaxed);
    while (!element.compare_exchange_weak(before, before - lr * g[i], std::memory_order_relaxed)) {
    }
  }
}

}  // namespace

void hogwild_sgd(const Array& x, const Array& g, double lr) {
  require(x.shape() == g.shape() && x.dtype() == g.dtype(), "hogwild: expected a gradient of ",
          x.shape(), ", got ", g.shape());
  require(x.is_contiguous() && g.is_contiguous(), "hogwild: expected contiguous arrays");
  const GilRelease lend;
  if (x.dtype() == Dtype::float32) {
    subtract_scaled(reinterpret_cast<float*>(x.data()), reinterpret_cast<const float*>(g.data()),
                    x.size(), static_cast<float>(lr));
  } else {
    require(x.dtype() == Dtype::float64, "hogwild: expected float32 or float64");
    subtract_scaled(reinterpret_cast<double*>(x.data()), reinterpret_cast<const double*>(g.data()),
                    x.size(), lr);
  }
}

}  // namespace renga
