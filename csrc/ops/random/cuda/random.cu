#include "devices/cuda/recording.h"
#include "ops/random/dropout_mask.h"
#include "ops/random/philox.h"
#include "ops/random/random.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

using philox_constants::kCounters;

// A thread makes the four words of 16 bits each that a counter's numbers decide.
__global__ void draw_mask(std::uint32_t threshold, cuda::Seed given, std::int64_t blocks,
                          std::uint64_t* bits) {
  const std::uint64_t seed = given.get();
  for (std::int64_t b = cuda::thread_index(); b < blocks; b += cuda::thread_count()) {
    std::uint64_t kept = 0;
    for (int i = 0; i < kCounters; ++i) {
      const PhiloxWords drawn =
          philox_words(seed, static_cast<std::uint64_t>(b) * kCounters + static_cast<unsigned>(i));
      for (int word = 0; word < 4; ++word) {
        const std::uint64_t bit = drawn.words[word] >= threshold;
        kept |= bit << (word * kCounters + i);
      }
    }
    bits[b] = kept;
  }
}

// y is dense: its elements are in memory in the order of their bits.
template <class T>
struct Dropout {
  MaskBits mask;
  Compute<T> scale;
  const T* start;
  __device__ void operator()(std::byte* const* p) const {
    const std::int64_t position = reinterpret_cast<const T*>(p[0]) - start;
    const bool keeps = mask.from(position) & 1;
    cuda::store<T>(p[0], keeps ? cuda::load<T>(p[1]) * scale : Compute<T>(0));
  }
};

// A thread for each two numbers: 32 positions apart.
template <class T>
__global__ void draw_normal(cuda::Seed given, std::int64_t size, T* y) {
  const std::uint64_t seed = given.get();
  constexpr std::int64_t kHalf = kPhiloxBlock / 2;
  const std::int64_t pairs = (size + kPhiloxBlock - 1) / kPhiloxBlock * kHalf;
  for (std::int64_t k = cuda::thread_index(); k < pairs; k += cuda::thread_count()) {
    const std::int64_t block = k / kHalf, j = k % kHalf, at = block * kPhiloxBlock + j;
    const PhiloxWords drawn =
        philox_words(seed, static_cast<std::uint64_t>(block * kCounters + j % kCounters));
    const std::int64_t word = j / kCounters;
    const NormalPair pair = normal_pair(drawn.words[word], drawn.words[word + 2]);
    if (at < size) y[at] = T(static_cast<Compute<T>>(pair.first));
    if (at + kHalf < size) y[at + kHalf] = T(static_cast<Compute<T>>(pair.second));
  }
}

template <class T>
__global__ void draw_uniform(cuda::Seed given, std::int64_t size, T* y) {
  const std::uint64_t seed = given.get();
  for (std::int64_t at = cuda::thread_index(); at < size; at += cuda::thread_count()) {
    const std::int64_t block = at / kPhiloxBlock, j = at % kPhiloxBlock;
    const PhiloxWords drawn =
        philox_words(seed, static_cast<std::uint64_t>(block * kCounters + j % kCounters));
    y[at] = T(static_cast<Compute<T>>(uniform_number(drawn.words[j / kCounters])));
  }
}

void dropout_mask_cuda(double ratio, std::uint64_t seed, const Array& bits) {
  cuda::launch(bits.device(), cuda::grid_for(bits.size()), draw_mask, dropout_threshold(ratio),
               seed, bits.size(), bits.as<std::uint64_t>());
}

void dropout_cuda(const Array& x, const DropoutMask& mask, const Array& y) {
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::for_each_element<2>(
          {&y, &x},
          Dropout<T>{MaskBits(mask), static_cast<Compute<T>>(mask.scale), y.as<const T>()});
    }
  });
}

void normal_cuda(std::uint64_t seed, const Array& y) {
  if (y.size() == 0) return;
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(y.device(), cuda::grid_for((y.size() + 1) / 2), draw_normal<T>, seed, y.size(),
                   y.as<T>());
    }
  });
}

void uniform_cuda(std::uint64_t seed, const Array& y) {
  if (y.size() == 0) return;
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(y.device(), cuda::grid_for(y.size()), draw_uniform<T>, seed, y.size(),
                   y.as<T>());
    }
  });
}

[[maybe_unused]] const bool registered = random_kernels.add(
    cuda::number(), {dropout_mask_cuda, dropout_cuda, normal_cuda, uniform_cuda});

}  // namespace
}  // namespace renga
