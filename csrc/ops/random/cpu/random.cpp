#include "ops/random/random.h"

#include "devices/gil_release.h"
#include "devices/rounding.h"
#include "ops/random/cpu/philox.h"
#include "ops/random/dropout_mask.h"
#include "simd/cpu_features.h"
#include "simd/vector.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

void dropout_mask_cpu(double ratio, std::uint64_t seed, const Array& mask) {
  const GilRelease work(kPhiloxBlock * mask.size());
  const std::uint32_t threshold = dropout_threshold(ratio);
  const bool has_avx512 = simd::has_avx512();
  const std::int64_t blocks = mask.size();
  auto* bits = mask.as<std::uint64_t>();
  parallel_for((blocks + 1) / 2, 8 * kPhiloxBlock, [=](std::int64_t begin, std::int64_t end) {
    std::array<PhiloxBlock, 2> numbers;
    for (std::int64_t b = 2 * begin; b < std::min(2 * end, blocks); b += 2) {
      philox(seed, b, numbers, has_avx512);
      bits[b] = at_least(threshold, numbers[0], has_avx512);
      if (b + 1 < blocks) bits[b + 1] = at_least(threshold, numbers[1], has_avx512);
    }
  });
}

template <class T>
struct DropoutKernel {
  MaskBits mask;
  Compute<T> scale;

  template <class L>
  [[gnu::always_inline]] void element(L l, const T* x, T* y, std::int64_t position) const {
    l.store(l.masked(mask.from(position), l.load(x) * scale), y);
  }

  void run(const T* x, T* y, std::int64_t n, std::int64_t position) const {
    simd::dispatch_for<T>([ =, this ](auto target) __attribute__((always_inline)) {
      simd::for_each_vector<decltype(target), Compute<T>>(
          0, n, [ =, this ](auto l, std::int64_t i) __attribute__((always_inline)) {
            element(l, x + i, y + i, position + i);
          });
    });
  }
};

void dropout_cpu(const Array& x, const DropoutMask& mask, const Array& y) {
  const GilRelease work(y.size());
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      const DropoutKernel<T> kernel{MaskBits(mask), static_cast<Compute<T>>(mask.scale)};
      // y is dense and comes first, so each run is contiguous in y.
      parallel_walk(make_loop<2>({&y, &x}), 2, [&](std::int64_t n, const auto& p, const auto& s) {
        T* to = reinterpret_cast<T*>(p[0]);
        const std::int64_t position = to - y.as<T>();
        const auto* from = reinterpret_cast<const T*>(p[1]);
        if (s[1] == sizeof(T)) return kernel.run(from, to, n, position);
        for (std::int64_t i = 0; i < n; ++i) {
          from = reinterpret_cast<const T*>(p[1] + i * s[1]);
          kernel.element(simd::Scalar<Compute<T>>{}, from, to + i, position + i);
        }
      });
    }
  });
}

template <class T>
void normal_block(const PhiloxBlock& numbers, T* y, std::int64_t n) {
  constexpr std::int64_t kHalf = kPhiloxBlock / 2;
  for (std::int64_t i = 0; i < kHalf; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const NormalPair pair = normal_pair(numbers[k], numbers[k + kHalf]);
    if (i < n) y[i] = T(static_cast<Compute<T>>(pair.first));
    if (i + kHalf < n) y[i + kHalf] = T(static_cast<Compute<T>>(pair.second));
  }
}

void normal_cpu(std::uint64_t seed, const Array& y) {
  const GilRelease work(y.size());
  const std::int64_t size = y.size();
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      parallel_for(divide_up(size, kPhiloxBlock), 2000, [&](std::int64_t begin, std::int64_t end) {
        PhiloxBlock numbers;
        for (std::int64_t b = begin; b < end; ++b) {
          const std::int64_t at = b * kPhiloxBlock;
          philox(seed, b, numbers);
          normal_block(numbers, y.as<T>() + at, std::min(kPhiloxBlock, size - at));
        }
      });
    }
  });
}

[[maybe_unused]] const bool registered =
    random_kernels.add(0, {dropout_mask_cpu, dropout_cpu, normal_cpu});

}  // namespace
}  // namespace renga
