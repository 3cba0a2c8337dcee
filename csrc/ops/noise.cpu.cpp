#include "ops/noise.h"

#include <cmath>
#include <numbers>

#include "devices/cpu/onednn.h"
#include "devices/long_work.h"
#include "ops/philox.h"
#include "ops/wide_lanes.cpu.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

// Calls body(i, m, numbers) for stretches i..i+m of places begin..begin+n, with their numbers.
template <class Body>
void draw(std::uint64_t seed, std::int64_t begin, std::int64_t n, const Body& body) {
  const bool wide = onednn::has_avx512();
  std::array<PhiloxBlock, 2> numbers;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t within = (begin + i) % kPhiloxBlock;
    const std::int64_t m = std::min(n - i, 2 * kPhiloxBlock - within);
    philox(seed, (begin + i) / kPhiloxBlock, numbers, wide);
    body(i, m, numbers[0].data() + within);
    i += m;
  }
}

// y = x scale where the number is at least the threshold, else 0.
template <class T>
struct Drop {
  std::uint32_t threshold;
  Compute<T> scale;

  void one(const T* x, T* y, std::uint32_t number) const {
    // Scaled either way: a choice between two values is one instruction, a branch a coin's toss.
    const Compute<T> kept = static_cast<Compute<T>>(*x) * scale;
    *y = T(number >= threshold ? kept : Compute<T>(0));
  }

  void strided(const std::byte* x, std::int64_t step, T* y, std::int64_t n,
               const std::uint32_t* numbers) const {
    for (std::int64_t i = 0; i < n; ++i) {
      one(reinterpret_cast<const T*>(x + i * step), y + i, numbers[i]);
    }
  }

  void adjoining(const T* x, T* y, std::int64_t n, const std::uint32_t* numbers) const {
    // Elements are fetched while numbers are drawn, of which this many take as long as that.
    constexpr std::int64_t kAhead = 512;
    for (std::int64_t line = 0; line < n; line += 64 / static_cast<std::int64_t>(sizeof(T))) {
      __builtin_prefetch(x + kAhead + line);
      __builtin_prefetch(y + kAhead + line, 1);
    }
    std::int64_t i = 0;
    if constexpr (sizeof(Compute<T>) == sizeof(float)) {  // as many lanes as of numbers
      on_best_target<float>([ =, &i, this ](auto target) __attribute__((always_inline)) {
        using L = Lanes<decltype(target), float>;
        using Words = typename VectorsOf<decltype(target)>::WordsAnywhere;
        for (; i + L::width <= n; i += L::width) {
          const Words& drawn = *reinterpret_cast<const Words*>(numbers + i);
          const typename L::V kept = L::load(x + i) * scale;
          L::store(drawn >= threshold ? kept : typename L::V{}, y + i);
        }
      });
    }
    for (; i < n; ++i) one(x + i, y + i, numbers[i]);
  }
};

void dropout_cpu(const Array& x, double ratio, double scale, std::uint64_t seed, const Array& y) {
  const LongWork work(y.size());
  const auto threshold =
      static_cast<std::uint32_t>(std::min(std::round(ratio * 0x1p32), 0x1p32 - 1));
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      const Drop<T> drop{threshold, static_cast<Compute<T>>(scale)};
      // y is dense and comes first, so the runs are stretches of its memory.
      parallel_walk(make_loop<2>({&y, &x}), 4, [&](std::int64_t n, const auto& p, const auto& s) {
        T* to = reinterpret_cast<T*>(p[0]);
        draw(seed, to - y.as<T>(), n,
             [&](std::int64_t i, std::int64_t m, const std::uint32_t* numbers) {
               const std::byte* from = p[1] + i * s[1];
               if (s[1] == sizeof(T)) {
                 drop.adjoining(reinterpret_cast<const T*>(from), to + i, m, numbers);
               } else {
                 drop.strided(from, s[1], to + i, m, numbers);
               }
             });
      });
    }
  });
}

// Box and Muller: two uniform numbers, 32 places apart, make two normal ones.
template <class T>
void normal_block(const PhiloxBlock& numbers, T* y, std::int64_t n) {
  constexpr std::int64_t kHalf = kPhiloxBlock / 2;
  for (std::int64_t i = 0; i < kHalf; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double radius = std::sqrt(-2 * std::log((numbers[k] + 0.5) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * (numbers[k + kHalf] * 0x1p-32);
    if (i < n) y[i] = T(static_cast<Compute<T>>(radius * std::cos(angle)));
    if (i + kHalf < n) y[i + kHalf] = T(static_cast<Compute<T>>(radius * std::sin(angle)));
  }
}

void normal_cpu(std::uint64_t seed, const Array& y) {
  const LongWork work(y.size());
  const std::int64_t size = y.size();
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      parallel_for((size + kPhiloxBlock - 1) / kPhiloxBlock, 2000,
                   [&](std::int64_t begin, std::int64_t end) {
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

[[maybe_unused]] const bool registered = noise_kernels.add(0, {dropout_cpu, normal_cpu});

}  // namespace
}  // namespace renga
