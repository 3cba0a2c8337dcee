#include "ops/normalization/cuda/two_sums.cu.h"
#include "ops/normalization/fused_elements.h"
#include "ops/normalization/normalization.h"
#include "simd/scalar.h"

namespace renga {
namespace {

using normalized::HeldChannel, normalized::TypedNormalization, normalized::visit_types;

// A ChannelGrid says how threads share a layout. A block has the channels of a tile and a part of
// their elements; all elements of a thread have one channel, whose numbers stay in registers.
struct ChannelGrid {
  ChannelLayout layout;
  cuda::FoldGrid blocks;  // its results are the channels
  unsigned lanes;         // threads along a plane, where channels are not last
};

constexpr int kAtOnce = 4;  // elements that a thread reads before it uses them

ChannelGrid grid_of(const ChannelLayout& layout) {
  constexpr std::int64_t kMostLanes = 64;
  const bool is_last = layout.inner == 1;
  const unsigned columns = is_last ? cuda::power_for(layout.channels, kMostLanes) : 1;
  const unsigned rows = cuda::kThreads / columns;
  const unsigned lanes = is_last ? 1 : cuda::power_for(layout.inner, cuda::kThreads);
  const auto tiles = static_cast<unsigned>((layout.channels + columns - 1) / columns);
  const unsigned parts =
      cuda::parts_of_sums(tiles, layout.outer, is_last ? rows * kAtOnce : rows / lanes);
  return {layout, {columns, rows, tiles, parts}, lanes};
}

// Calls group(first, step, n) for groups of at most kAtOnce elements, first + k step for k < n.
template <class Group>
__device__ void visit_range(std::int64_t begin, std::int64_t end, std::int64_t count,
                            std::int64_t base, std::int64_t stride, const Group& group) {
  std::int64_t at = begin;
  for (; at + (kAtOnce - 1) * count < end; at += kAtOnce * count) {
    group(base + at * stride, count * stride, kAtOnce);
  }
  for (; at < end; at += count) group(base + at * stride, 0, 1);
}

// Calls `group` for all elements of a thread. `is_last` says whether channels are the last axis.
template <bool is_last, class Group>
__device__ void visit_thread(const ChannelGrid& grid, const cuda::FoldThread& thread,
                             const Group& group) {
  const auto [outer, channels, inner] = grid.layout;
  const std::int64_t channel = thread.result, parts = grid.blocks.parts;
  if constexpr (is_last) {
    const std::int64_t rows = thread.rows;
    visit_range(thread.part * rows + thread.row, outer, parts * rows, channel, channels, group);
  } else {
    const std::int64_t lane = thread.row % grid.lanes, rows = thread.rows / grid.lanes;
    const std::int64_t first = thread.part * rows + thread.row / grid.lanes, step = parts * rows;
    const std::int64_t image = channels * inner;
    if (inner <= grid.lanes) {
      if (lane >= inner) return;
      return visit_range(first, outer, step, channel * inner + lane, image, group);
    }
    for (std::int64_t o = first; o < outer; o += step) {
      visit_range(lane, inner, grid.lanes, o * image + channel * inner, 1, group);
    }
  }
}

// Each element is Of(element, channel).value(i), which store(i, value) puts in its place.
template <bool is_last, class Element>
__global__ void visit_channels(ChannelGrid grid, Element element) {
  const cuda::FoldThread thread(grid.blocks);
  if (thread.result >= grid.layout.channels) return;
  const typename Element::Of channel(element, thread.result);
  visit_thread<is_last>(grid, thread, [&](std::int64_t first, std::int64_t step, int n) {
    decltype(channel.value(first)) values[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k) {
      if (k < n) values[k] = channel.value(first + k * step);
    }
    for (int k = 0; k < kAtOnce; ++k) {
      if (k < n) channel.store(first + k * step, values[k]);
    }
  });
}

// Calls launch(std::bool_constant<channels are last>).
template <class Launch>
void with_layout(const ChannelLayout& layout, const Launch& launch) {
  layout.inner == 1 ? launch(std::true_type{}) : launch(std::false_type{});
}

template <class Element>
void for_each_element(const Channels& x, const Element& element) {
  if (x.array.size() == 0) return;
  const ChannelGrid grid = grid_of(x.layout);
  with_layout(x.layout, [&]<bool is_last>(std::bool_constant<is_last>) {
    cuda::launch(x.array.device(), grid.blocks.grid(0), visit_channels<is_last, Element>, grid,
                 element);
  });
}

// A normalization whose numbers of one channel are in registers.
template <class T, class S, class A>
class OfChannel {
 public:
  __device__ OfChannel(const TypedNormalization<T, S, A>& all, std::int64_t channel)
      : typed_(all.of_channel(channel)) {}
  __device__ S output(std::int64_t i) const { return typed_.output(L{}, i, HeldChannel{}); }
  __device__ S centred(std::int64_t i) const { return typed_.centred(L{}, i, HeldChannel{}); }
  __device__ S gradient(std::int64_t i, S centred, const T* gy) const {
    return typed_.gradient(L{}, i, centred, HeldChannel{}, gy);
  }
  __device__ S scale() const { return typed_.scale; }

 private:
  using L = simd::Scalar<S>;
  TypedNormalization<T, S, A, S> typed_;
};

template <class T, class S, class A>
struct Normalize {
  TypedNormalization<T, S, A> typed;
  T* y;

  class Of {
   public:
    __device__ Of(const Normalize& all, std::int64_t channel)
        : of_(all.typed, channel), y_(all.y) {}
    __device__ S value(std::int64_t i) const { return of_.output(i); }
    __device__ void store(std::int64_t i, S v) const { simd::Scalar<S>::store(v, y_ + i); }

   private:
    OfChannel<T, S, A> of_;
    T* y_;
  };
};

template <class T, class S, class A>
struct InputGrad {
  TypedNormalization<T, S, A> typed;
  const T* gy;
  const S *shift, *slope;
  T* gx;

  class Of {
   public:
    __device__ Of(const InputGrad& all, std::int64_t channel)
        : of_(all.typed, channel),
          gy_(all.gy),
          shift_(all.shift[channel]),
          slope_(all.slope[channel]),
          gx_(all.gx) {}
    __device__ S value(std::int64_t i) const {
      const S d = of_.centred(i);
      return of_.gradient(i, d, gy_) * of_.scale() - shift_ - d * slope_;
    }
    __device__ void store(std::int64_t i, S v) const { simd::Scalar<S>::store(v, gx_ + i); }

   private:
    OfChannel<T, S, A> of_;
    const T* gy_;
    S shift_, slope_;
    T* gx_;
  };
};

// Sums over each channel of two numbers of an element, Of(terms, channel).value(i, a, b), which
// go to terms.store(channel, sums), or to `partial` where there are several parts.
template <bool is_last, class Terms>
__global__ void sum_channels(ChannelGrid grid, Terms terms, cuda::TwoSums* partial) {
  using S = typename Terms::Number;
  const cuda::FoldThread thread(grid.blocks);
  const std::int64_t channels = grid.layout.channels;
  cuda::TwoSums sums{0, 0};
  if (thread.result < channels) {
    const typename Terms::Of channel(terms, thread.result);
    visit_thread<is_last>(grid, thread, [&](std::int64_t first, std::int64_t step, int n) {
      S a[kAtOnce] = {}, b[kAtOnce] = {};
      for (int k = 0; k < kAtOnce; ++k) {
        if (k < n) channel.value(first + k * step, a[k], b[k]);
      }
      sums.first += static_cast<double>((a[0] + a[1]) + (a[2] + a[3]));
      sums.second += static_cast<double>((b[0] + b[1]) + (b[2] + b[3]));
    });
  }
  cuda::finish_sums(thread, grid.blocks, terms, sums, channels, partial);
}

// Differences from the channel's first element and their squares: nothing cancels, however far from
// 0 the elements are.
template <class T, class S>
struct Moments {
  using Number = S;
  const T* x;
  ChannelLayout layout;
  S *mean, *var;

  __device__ S pivot(std::int64_t channel) const {
    return static_cast<S>(x[channel * layout.inner]);
  }
  struct Of {
    const T* x;
    S pivot;
    __device__ Of(const Moments& all, std::int64_t channel) : x(all.x), pivot(all.pivot(channel)) {}
    __device__ void value(std::int64_t i, S& first, S& second) const {
      first = static_cast<S>(x[i]) - pivot;
      second = first * first;
    }
  };
  __device__ void store(std::int64_t channel, const cuda::TwoSums& sums) const {
    const double count = static_cast<double>(layout.count()), shift = sums.first / count;
    const double squares = sums.second - shift * sums.first;
    mean[channel] = static_cast<S>(static_cast<double>(pivot(channel)) + shift);
    var[channel] = static_cast<S>(squares < 0 ? 0 : squares / count);
  }
};

template <class T, class S, class A>
struct GradientSums {
  using Number = S;
  TypedNormalization<T, S, A> typed;
  const T* gy;
  S *sum_g, *sum_g_x;

  class Of {
   public:
    __device__ Of(const GradientSums& all, std::int64_t channel)
        : of_(all.typed, channel), gy_(all.gy) {}
    __device__ void value(std::int64_t i, S& g, S& g_x) const {
      const S d = of_.centred(i);
      g = of_.gradient(i, d, gy_);
      g_x = g * d;
    }

   private:
    OfChannel<T, S, A> of_;
    const T* gy_;
  };
  __device__ void store(std::int64_t channel, const cuda::TwoSums& sums) const {
    sum_g[channel] = static_cast<S>(sums.first);
    sum_g_x[channel] = static_cast<S>(sums.second);
  }
};

// The sums of a layout's channels; zeros where they have no elements.
template <class Terms>
void sum_all(const Terms& terms, const Channels& x, const Array& first, const Array& second) {
  const std::int64_t channels = x.layout.channels;
  if (x.layout.count() == 0) {
    fill(first, 0);
    return fill(second, 0);
  }
  if (channels == 0) return;
  const Device device = x.array.device();
  const ChannelGrid grid = grid_of(x.layout);
  cuda::launch_sums(device, grid.blocks, terms, channels, [&](cuda::TwoSums* partial) {
    with_layout(x.layout, [&]<bool is_last>(std::bool_constant<is_last>) {
      cuda::launch(device, grid.blocks.grid(sizeof(cuda::TwoSums)), sum_channels<is_last, Terms>,
                   grid, terms, partial);
    });
  });
}

void moments_cuda(const Channels& x, const Array& mean, const Array& var) {
  visit_dtype(x.array.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      const Moments<T, S> moments{x.array.as<const T>(), x.layout, mean.as<S>(), var.as<S>()};
      sum_all(moments, x, mean, var);
    }
  });
}

void normalize_cuda(const Normalization& normalization, const Array& y) {
  visit_types(normalization,
              [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                for_each_element(normalization.x, Normalize<T, S, A>{typed, y.as<T>()});
              });
}

void gradient_sums_cuda(const Normalization& normalization, const Array& gy, const Array& sum_g,
                        const Array& sum_g_x) {
  const Channels& x = normalization.x;
  visit_types(
      normalization, [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
        const GradientSums<T, S, A> sums{typed, gy.as<const T>(), sum_g.as<S>(), sum_g_x.as<S>()};
        sum_all(sums, x, sum_g, sum_g_x);
      });
}

void input_grad_cuda(const Normalization& normalization, const Array& gy, const Array& shift,
                     const Array& slope, const Array& gx) {
  visit_types(normalization,
              [&]<class T, class S, class A>(const TypedNormalization<T, S, A>& typed) {
                for_each_element(normalization.x,
                                 InputGrad<T, S, A>{typed, gy.as<const T>(), shift.as<const S>(),
                                                    slope.as<const S>(), gx.as<T>()});
              });
}

[[maybe_unused]] const bool registered = normalization_kernels.add(
    cuda::number(), {moments_cuda, normalize_cuda, gradient_sums_cuda, input_grad_cuda});

}  // namespace
}  // namespace renga
