// Runs kernels that are written for short contiguous blocks over arrays of any
// strides. Blocks are gathered, converted to the compute type, computed and
// scattered while they are in the L1 cache.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <utility>
#include <variant>

#include "simd/vector.h"
#include "tensor/streaming.cpu.h"
#include "tensor/strided_loop.h"

namespace renga::simd {

inline constexpr std::int64_t kBlock = 512;

// 16-bit floats to floats or back.
template <class From, class To>
void convert(const From* from, To* to, std::int64_t n) {
  dispatch_for<std::conditional_t<is_half<From>, From, To>>([=
  ](auto target) __attribute__((always_inline)) {
    for_each_vector<decltype(target), float>(
        0, n, [=]<class L>(L, std::int64_t i) __attribute__((always_inline)) {
          L::store(L::load(from + i), to + i);
        });
  });
}

// Copies n elements, `step` bytes apart. With a step that it knows, the compiler makes vectors.
template <class T, class To>
void collect(const std::byte* from, std::int64_t step, std::int64_t n, To* __restrict to) {
  constexpr std::int64_t item = sizeof(T);
  const auto with = [=](auto known_step) {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<To>(*reinterpret_cast<const T*>(from + i * known_step));
    }
  };
  if (step == -item) return with(std::integral_constant<std::int64_t, -item>{});
  if (step == 2 * item) return with(std::integral_constant<std::int64_t, 2 * item>{});
  with(step);
}

// Loads n elements of type T, `step` bytes apart, as the compute type.
template <class T>
void gather(const std::byte* from, std::int64_t step, std::int64_t n, Compute<T>* to) {
  if constexpr (is_half<T>) {
    if (step == sizeof(T)) {
      return convert(reinterpret_cast<const T*>(from), to, n);
    }
  } else if (step == sizeof(T)) {
    std::copy_n(reinterpret_cast<const T*>(from), n, to);
    return;
  }
  if (step == 0) {
    std::fill_n(to, n, static_cast<Compute<T>>(*reinterpret_cast<const T*>(from)));
    return;
  }
  collect<T>(from, step, n, to);
}

template <class T>
void scatter(const Compute<T>* from, std::byte* to, std::int64_t step, std::int64_t n) {
  if constexpr (is_half<T>) {
    if (step == sizeof(T)) {
      return convert(from, reinterpret_cast<T*>(to), n);
    }
  } else if (step == sizeof(T)) {
    std::copy_n(from, n, reinterpret_cast<T*>(to));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * step) = T(from[i]);
}

// Rows of contiguous elements, or with a step of 0 rows that repeat one number,
// `next` bytes apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t next = 0;
  std::int64_t step = 1;

  T* row(std::int64_t i) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(data) +
                                static_cast<std::uintptr_t>(i * next));
  }
};

// A row as map_on reads it.
template <class V, class T>
struct RowElements {
  const T* data;
  std::int64_t step;

  // A number that is repeated fills a vector of memory, which is read again and again.
  [[gnu::always_inline]] RowElements(const Rows<const T>& x, std::int64_t i,
                                     T (&repeated)[V::width])
      : data(x.row(i)), step(x.step) {
    if (step != 0) return;
    fill(*data, repeated);
    data = repeated;
  }
  [[gnu::always_inline]] V at(std::int64_t i) const { return V(V::load(data + i * step)); }

 private:
  // In one store: a load of a vector waits for several smaller ones.
  [[gnu::always_inline]] static void fill(const T& number, T (&repeated)[V::width]) {
    if constexpr (!is_half<T>) {
      V::store(V::broadcast(&number), repeated);
    } else {
#if defined(__x86_64__)
      using Halves = typename V::UnalignedHalves;
      Halves numbers;
      asm("vpbroadcastw %1, %0" : "=v"(numbers) : "m"(number.bits));
      *reinterpret_cast<Halves*>(repeated) = numbers;
#else
      std::fill_n(repeated, V::width, number);
#endif
    }
  }
};

template <class T, std::size_t count>
using InputRows = std::array<Rows<const T>, count>;

// Maps rows of whole vectors by the function that the first argument points to.
template <class T, std::size_t count>
using VectorMap = void (*)(const void* function, const Rows<T>& y, std::int64_t rows,
                           std::int64_t n, const InputRows<T, count>& x);

// y = f(x...) for rows of n elements, where n is a multiple of the vectors' width and f, of type F,
// is always inlined.
template <class Target, class F, class T, std::size_t count>
void map_whole_vectors(const void* function, const Rows<T>& y, std::int64_t rows, std::int64_t n,
                       const InputRows<T, count>& x) {
  using V = Vector<Target, Compute<T>>;
  run_on<Target>([&](auto) __attribute__((always_inline)) {
    // Captured by value: the compiler would read what is in memory again after each store.
    const auto map_row = [ n, f = *static_cast<const F*>(function) ](T * out, auto... in)
        __attribute__((always_inline)) {
      for (std::int64_t i = 0; i < n; i += V::width) V::store(f(in.at(i)...).v, out + i);
    };
    T repeated[count][V::width];
    [&]<std::size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) {
      for (std::int64_t r = 0; r < rows; ++r) {
        map_row(y.row(r), RowElements<V, T>(x[k], r, repeated[k])...);
      }
    }
    (std::make_index_sequence<count>());
  });
}

// Maps rows of any n. The rests of rows go through padded vectors, those of several rows at once,
// so that the result of an element does not depend on its position. This code is compiled once for
// all functions.
template <class T, std::size_t count>
[[gnu::noinline]] void map_rows(VectorMap<T, count> map, const void* function, std::int64_t width,
                                const Rows<T>& y, std::int64_t rows, std::int64_t n,
                                const InputRows<T, count>& x) {
  constexpr std::int64_t kRests = 256;
  const std::int64_t rest = n % width, whole = n - rest;
  if (whole > 0) map(function, y, rows, whole, x);
  if (rest == 0) return;
  T in[count][kRests], out[kRests];
  const std::int64_t most = kRests / width * width / rest;
  for (std::int64_t r = 0; r < rows; r += most) {
    const std::int64_t m = std::min(most, rows - r);
    const std::int64_t size = divide_up(m * rest, width) * width;
    InputRows<T, count> padded;
    for (std::size_t k = 0; k < count; ++k) {
      padded[k] = {in[k]};
      std::fill_n(in[k] + size - width, width, T(Compute<T>(1)));
      T* to = in[k];
      for (std::int64_t j = 0; j < m; ++j) {
        const T* const from = x[k].row(r + j) + whole * x[k].step;
        for (std::int64_t i = 0; i < rest; ++i) *to++ = from[i * x[k].step];
      }
    }
    map(function, Rows<T>{out}, 1, size, padded);
    for (std::int64_t j = 0; j < m; ++j) {
      std::copy_n(out + j * rest, rest, y.row(r + j) + whole);
    }
  }
}

// y = f(x...) for rows of n elements, in vectors of the machine's width. f is always inlined.
template <class T, class F>
void map_vectors(const Rows<T>& y, std::int64_t rows, std::int64_t n, const F& f,
                 const std::same_as<Rows<const T>> auto&... x) {
  dispatch_for<T>([&](auto target) {
    using Target = decltype(target);
    constexpr std::size_t count = sizeof...(x);
    map_rows<T, count>(map_whole_vectors<Target, F, T, count>, &f,
                       Vector<Target, Compute<T>>::width, y, rows, n, {x...});
  });
}

// Calls kernel(x..., y, rows, n) for rows of 16-bit floats as for rows of floats, a block at a
// time. Long functions are compiled for floats alone: next to them, two conversions take no time.
template <class T, class Kernel>
void map_in_floats(const Kernel& kernel, const Rows<T>& y, std::int64_t rows, std::int64_t n,
                   const std::same_as<Rows<const T>> auto&... x) {
  float in[sizeof...(x)][kBlock], out[kBlock];
  const auto load = [](const Rows<const T>& row, std::int64_t r, std::int64_t i, std::int64_t m,
                       float* to) {
    const T* from = row.row(r) + i * row.step;
    gather<T>(reinterpret_cast<const std::byte*>(from), row.step * sizeof(T), m, to);
  };
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < n; i += kBlock) {
        const std::int64_t m = std::min(kBlock, n - i);
        (load(x, r, i, m, in[k]), ...);
        kernel(Rows<const float>{in[k]}..., Rows<float>{out}, 1, m);
        convert(out, y.row(r) + i, m);
      }
    }
  }
  (std::make_index_sequence<sizeof...(x)>());
}

// Blocks of an input of n elements: in place if they are contiguous and of the
// compute type, else gathered into a buffer. A broadcast element (step 0) is
// gathered once.
template <class T>
class InputBlocks {
 public:
  InputBlocks(const std::byte* data, std::int64_t step, std::int64_t n) : data_(data), step_(step) {
    if (step == 0) gather<T>(data, 0, std::min(kBlock, n), buffer_);
  }
  const Compute<T>* at(std::int64_t i, std::int64_t n) {
    if (step_ == 0) return buffer_;
    if constexpr (std::is_same_v<T, Compute<T>>) {
      if (step_ == sizeof(T)) return reinterpret_cast<const T*>(data_) + i;
    }
    gather<T>(data_ + i * step_, step_, n, buffer_);
    return buffer_;
  }

 private:
  const std::byte* data_;
  std::int64_t step_;
  Compute<T> buffer_[kBlock];
};

// Blocks of an output of n elements: in place if they are contiguous and of the
// compute type, else in a buffer that put() scatters or streams to memory.
template <class T>
class OutputBlocks {
 public:
  OutputBlocks(std::byte* data, std::int64_t step, bool streaming)
      : data_(data), step_(step), streaming_(streaming) {}
  ~OutputBlocks() {
    if (streaming_) finish_streaming();
  }
  Compute<T>* at(std::int64_t i) {
    if constexpr (std::is_same_v<T, Compute<T>>) {
      if (step_ == sizeof(T) && !streaming_) return reinterpret_cast<T*>(data_) + i;
    }
    return buffer_;
  }
  void put(std::int64_t i, std::int64_t n) {
    if constexpr (std::is_same_v<T, Compute<T>>) {
      if (step_ == sizeof(T)) {
        if (streaming_) stream(buffer_, reinterpret_cast<T*>(data_) + i, n);
        return;
      }
    }
    scatter<T>(buffer_, data_ + i * step_, step_, n);
  }

 private:
  std::byte* data_;
  std::int64_t step_;
  bool streaming_;
  alignas(64) Compute<T> buffer_[kBlock];
};

// Whether to write runs of n elements of y past the caches.
template <class T>
bool should_stream(const Array& y, std::int64_t n) {
  return n >= kBlock && !is_half<T> && pays_streaming(y.size() * y.itemsize());
}

// The elements of one operand in the order of a loop over several: in place if
// they are contiguous, else copied into a buffer, a block at a time.
template <class T>
class LoopBlocks {
 public:
  template <int N>
  LoopBlocks(const StridedLoop<N>& loop, int operand)
      : loop_{loop.extents, {loop.strides[operand]}, {loop.data[operand]}} {
    std::int64_t step = sizeof(T);
    for (int axis = loop.extents.size() - 1; axis >= 0; step *= loop.extents[axis--]) {
      in_place_ &= loop.extents[axis] == 1 || loop.strides[operand][axis] == step;
    }
  }
  bool in_place() const { return in_place_; }
  T* at(std::int64_t i) const { return reinterpret_cast<T*>(loop_.data[0]) + i; }
  // Elements [i, i + n), of at most a block.
  const T* read(std::int64_t i, std::int64_t n) {
    if (in_place_) return at(i);
    T* to = buffer_;
    for_each_run(loop_, i, i + n, [&](std::int64_t run, const auto& p, const auto& s) {
      const auto* const from = reinterpret_cast<const T*>(p[0]);
      if (s[0] == 0) {
        std::fill_n(to, run, *from);
      } else if (s[0] == sizeof(T) && run >= 8) {  // a call takes as long as a few elements
        std::copy_n(from, run, to);
      } else {
        collect<T>(p[0], s[0], run, to);
      }
      to += run;
    });
    return buffer_;
  }

 private:
  StridedLoop<1> loop_;
  bool in_place_ = true;
  T buffer_[kBlock];
};

// The elements of an operand of float32 or bfloat16 as floats, a block at a time.
class FloatBlocks {
 public:
  template <int N>
  FloatBlocks(const StridedLoop<N>& loop, int operand, Dtype dtype)
      : blocks_(std::in_place_type<LoopBlocks<float>>, loop, operand) {
    if (dtype == Dtype::bfloat16) blocks_.emplace<LoopBlocks<bfloat16>>(loop, operand);
  }
  const float* read(std::int64_t i, std::int64_t n) {
    return std::visit(
        [&]<class T>(LoopBlocks<T>& blocks) -> const float* {
          const T* const block = blocks.read(i, n);
          if constexpr (is_half<T>) {
            convert(block, floats_, n);
            return floats_;
          } else {
            return block;
          }
        },
        blocks_);
  }
  // Returns where floats of a contiguous operand are to be written, and writes them.
  float* at(std::int64_t i) {
    const auto* const direct = std::get_if<LoopBlocks<float>>(&blocks_);
    return direct != nullptr ? direct->at(i) : floats_;
  }
  void put(std::int64_t i, std::int64_t n) {
    std::visit(
        [&]<class T>(const LoopBlocks<T>& blocks) {
          if constexpr (is_half<T>) convert(floats_, blocks.at(i), n);
        },
        blocks_);
  }
  bool in_place() const {
    return std::visit([](const auto& blocks) { return blocks.in_place(); }, blocks_);
  }

 private:
  std::variant<LoopBlocks<float>, LoopBlocks<bfloat16>> blocks_;
  float floats_[kBlock];
};

// Calls kernel(x..., y, 1, n) for rows of floats that cover arrays of float32 or bfloat16, each of
// its own dtype. Returns false, and does nothing, if y has gaps.
template <class Kernel, class... In>
bool map_mixed_blocks(const Array& y, std::int64_t cost, const Kernel& kernel, const In&... x) {
  const auto loop = make_loop<sizeof...(In) + 1>({&y, &x...});
  if (!FloatBlocks(loop, 0, y.dtype()).in_place()) return false;
  parallel_for(loop.size(), cost, [&](std::int64_t begin, std::int64_t end) {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      FloatBlocks out(loop, 0, y.dtype());
      FloatBlocks in[] = {FloatBlocks(loop, k + 1, x.dtype())...};
      for (std::int64_t i = begin; i < end; i += kBlock) {
        const std::int64_t n = std::min(kBlock, end - i);
        kernel(Rows<const float>{in[k].read(i, n)}..., Rows<float>{out.at(i)}, 1, n);
        out.put(i, n);
      }
    }
    (std::index_sequence_for<In...>());
  });
  return true;
}

// map_blocks where y is contiguous and runs are short, such as those of x and a
// number for each of its rows: blocks of several runs.
template <class T, int N, class Kernel>
void map_short_runs(const StridedLoop<N>& loop, std::int64_t cost, const Kernel& kernel) {
  parallel_for(loop.size(), cost, [&](std::int64_t begin, std::int64_t end) {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      std::array<LoopBlocks<T>, N - 1> in{LoopBlocks<T>(loop, k + 1)...};
      const LoopBlocks<T> out(loop, 0);
      for (std::int64_t i = begin; i < end; i += kBlock) {
        const std::int64_t n = std::min(kBlock, end - i);
        kernel(Rows<const T>{in[k].read(i, n)}..., Rows<T>{out.at(i)}, 1, n);
      }
    }
    (std::make_index_sequence<N - 1>());
  });
}

// Calls kernel(x..., y, rows, n) for rows of n elements that cover arrays of
// dtype T.
template <class T, class Kernel, class... In>
void map_blocks(const Array& y, std::int64_t cost, const Kernel& kernel, const In&... x) {
  constexpr int count = sizeof...(In);
  constexpr std::int64_t kItem = sizeof(T), kShort = 32, kLong = 1 << 14;
  const auto loop = make_loop<count + 1>({&y, &x...});
  const std::int64_t run = loop.run();
  const bool streaming = should_stream<T>(y, run);
  bool direct = !streaming && loop.strides[0].back() == kItem;
  for (int k = 1; k <= count; ++k) {
    const std::int64_t step = loop.strides[k].back();
    direct &= step == kItem || (step == 0 && std::is_floating_point_v<Compute<T>>);
  }
  const bool is_short = run < (direct ? kShort : kBlock) && loop.extents.size() > 1;
  if (is_short && LoopBlocks<T>(loop, 0).in_place()) {
    return map_short_runs<T>(loop, cost, kernel);
  }
  const auto call = [&]<std::size_t... k>(std::index_sequence<k...>, const auto& p,
                                          const auto& next, std::int64_t rows, std::int64_t n) {
    kernel(Rows<const T>{reinterpret_cast<const T*>(p[k + 1]), next[k + 1],
                         loop.strides[k + 1].back() == 0 ? 0 : 1}...,
           Rows<T>{reinterpret_cast<T*>(p[0]), next[0]}, rows, n);
  };
  constexpr std::make_index_sequence<count> inputs;
  if (direct && run < kLong && loop.extents.size() > 1) {
    auto rows = loop;
    rows.extents.pop_back();
    for (Strides& strides : rows.strides) strides.pop_back();
    return parallel_walk(rows, cost * run, [&](std::int64_t m, const auto& p, const auto& next) {
      call(inputs, p, next, m, run);
    });
  }
  if (direct) {
    return parallel_walk(loop, cost, [&](std::int64_t n, const auto& p, const auto& s) {
      call(inputs, p, s, 1, n);
    });
  }
  parallel_walk(loop, cost, [&](std::int64_t n, const auto& p, const auto& s) {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      std::array<InputBlocks<T>, count> in{InputBlocks<T>(p[k + 1], s[k + 1], n)...};
      OutputBlocks<T> out(p[0], s[0], streaming && n >= kBlock);
      for (std::int64_t i = 0; i < n; i += kBlock) {
        const std::int64_t m = std::min(kBlock, n - i);
        kernel(Rows<const Compute<T>>{in[k].at(i, m)}..., Rows<Compute<T>>{out.at(i)}, 1, m);
        out.put(i, m);
      }
    }
    (inputs);
  });
}

}  // namespace renga::simd
