#include "ops/random/random.h"

#include "devices/gil_release.h"
#include "devices/rounding.h"
#include "ops/random/cpu/philox.h"
#include "ops/random/dropout_mask.h"
#include "simd/cpu_features.h"
#include "simd/elementary.h"
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

// Words of 32 bits, as many as there are doubles in a vector. Their sums are modulo 2^32.
template <class D>
using Words [[gnu::vector_size(4 * D::width), gnu::aligned(4), gnu::may_alias]] = std::uint32_t;

// The words as signed integers.
template <class D>
[[gnu::always_inline]] inline D to_doubles(const Words<D>& n) {
  return D(__builtin_convertvector((typename D::Integers)n, typename D::V));
}

// Normal numbers of a block as normal_pair() makes them, in vectors of doubles.
template <class Target>
[[gnu::always_inline]] inline void normal_numbers(const PhiloxBlock& numbers, double* y) {
  using D = simd::Vector<Target, double>;
  // Taylor's series in the square of an angle of at most an eighth of a turn.
  constexpr double kSine[] = {-1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
                              -1.0 / 5040,          1.0 / 120,        -1.0 / 6,        1.0};
  constexpr double kCosine[] = {1.0 / 20922789888000,
                                -1.0 / 87178291200,
                                1.0 / 479001600,
                                -1.0 / 3628800,
                                1.0 / 40320,
                                -1.0 / 720,
                                1.0 / 24,
                                -1.0 / 2,
                                1.0};
  constexpr std::int64_t kHalf = kPhiloxBlock / 2;
  for (std::int64_t i = 0; i < kHalf; i += D::width) {
    const Words<D> a = *reinterpret_cast<const Words<D>*>(numbers.data() + i);
    const Words<D> b = *reinterpret_cast<const Words<D>*>(numbers.data() + i + kHalf);
    // Less 2^31, words are signed integers.
    const D uniform = (to_doubles<D>(a ^ (1U << 31)) + D(0x1p31 + 0.5)) * D(0x1p-32);
    const D radius = sqrt(log(uniform) * D(-2));
    const Words<D> quarter = (b + (1U << 29)) >> 30;  // the nearest one
    const Words<D> rest = b - (quarter << 30);
    const D angle = to_doubles<D>(rest) * D(2 * std::numbers::pi * 0x1p-32);
    const D square = angle * angle;
    const D sine = radius * angle * polynomial(square, kSine);
    const D cosine = radius * polynomial(square, kCosine);
    const auto is_odd = to_doubles<D>(quarter & 1) > D(0);
    const D x = select(is_odd, sine, cosine), up = select(is_odd, cosine, sine);
    D::store(select(to_doubles<D>((quarter + 1) & 2) > D(0), -x, x), y + i);
    D::store(select(to_doubles<D>(quarter & 2) > D(0), -up, up), y + i + kHalf);
  }
}

// Uniform numbers between 0 and 1, both excluded.
inline void uniform_numbers(const PhiloxBlock& numbers, double* y) {
  for (std::size_t i = 0; i < kPhiloxBlock; ++i) y[i] = uniform_number(numbers[i]);
}

// Fills y with what `draw` makes of each block of Philox.
template <class Draw>
void fill_drawn(std::uint64_t seed, const Array& y, const Draw& draw) {
  const GilRelease work(y.size());
  const std::int64_t size = y.size();
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      parallel_for(divide_up(size, kPhiloxBlock), 500, [&](std::int64_t begin, std::int64_t end) {
        PhiloxBlock numbers;
        double drawn[kPhiloxBlock];
        for (std::int64_t b = begin; b < end; ++b) {
          const std::int64_t at = b * kPhiloxBlock, n = std::min(kPhiloxBlock, size - at);
          philox(seed, b, numbers);
          draw(numbers, drawn);
          T* const to = y.as<T>() + at;
          for (std::int64_t i = 0; i < n; ++i) to[i] = T(static_cast<Compute<T>>(drawn[i]));
        }
      });
    }
  });
}

void normal_cpu(std::uint64_t seed, const Array& y) {
  fill_drawn(seed, y, [](const PhiloxBlock& numbers, double* to) {
    simd::dispatch_for<double>([&](auto target) __attribute__((always_inline)) {
      normal_numbers<decltype(target)>(numbers, to);
    });
  });
}

void uniform_cpu(std::uint64_t seed, const Array& y) { fill_drawn(seed, y, uniform_numbers); }

[[maybe_unused]] const bool registered =
    random_kernels.add(0, {dropout_mask_cpu, dropout_cpu, normal_cpu, uniform_cpu});

}  // namespace
}  // namespace renga
