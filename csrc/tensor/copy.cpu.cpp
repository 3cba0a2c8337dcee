#include "tensor/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "devices/gil_release.h"
#include "devices/host.h"
#include "tensor/convert.h"
#include "tensor/crossing_copy.cpu.h"
#include "tensor/streaming.cpu.h"
#include "tensor/strided_loop.h"

namespace renga {

constinit KernelTable<CopyKernels> copy_kernels{"copy"};

namespace {

// A memory operand of `size` bytes at any address.
template <int size>
[[gnu::always_inline]] inline void move(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, size);
}

// Bytes of a short run, in a few moves, of which the last two may overlap.
[[gnu::always_inline]] inline void copy_short(const std::byte* from, std::byte* to,
                                              std::int64_t n) {
  const auto ends = [&]<int size>(std::integral_constant<int, size>) {
    move<size>(from, to);
    move<size>(from + n - size, to + n - size);
  };
  if (n >= 32) {
    for (std::int64_t i = 0; i + 32 < n; i += 32) move<32>(from + i, to + i);
    return move<32>(from + n - 32, to + n - 32);
  }
  if (n >= 16) return ends(std::integral_constant<int, 16>{});
  if (n >= 8) return ends(std::integral_constant<int, 8>{});
  if (n >= 4) return ends(std::integral_constant<int, 4>{});
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
}

// Runs longer than this, in bytes, are worth a call of memcpy, which on a Zen 4 takes more than
// twice as long for those of 1 to 2 KiB.
constexpr std::int64_t kLongRun = 2048;

[[gnu::always_inline]] inline void copy_bytes(const std::byte* from, std::byte* to,
                                              std::int64_t n) {
  if (n <= kLongRun) return copy_short(from, to, n);
  std::memcpy(to, from, static_cast<std::size_t>(n));
}

// Conversions of float16 that are made by way of floats.
template <class From, class To>
constexpr bool has_float_between = std::is_same_v<From, float16> != std::is_same_v<To, float16> &&
                                   !std::is_same_v<From, float> && !std::is_same_v<To, float>;

// The compiler makes vectors of other conversions itself.
template <class From, class To>
void convert_run(const From* x, To* y, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (has_float_between<From, To>) {
    constexpr std::int64_t kBlock = 512;
    float numbers[kBlock];
    for (; i < n; i += kBlock) {
      const std::int64_t m = std::min(kBlock, n - i);
      convert_run(x + i, numbers, m);
      convert_run(numbers, y + i, m);
    }
    return;
  }
#if defined(__F16C__)
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float16>) {
    for (; i + 8 <= n; i += 8) {
      const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), halves);
    }
  }
  if constexpr (std::is_same_v<From, float16> && std::is_same_v<To, float>) {
    for (; i + 8 <= n; i += 8) {
      const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
      _mm256_storeu_ps(y + i, _mm256_cvtph_ps(halves));
    }
  }
#endif
  for (; i < n; ++i) y[i] = convert<To>(x[i]);
}

template <class From, class To>
void copy_run(std::int64_t n, const std::byte* from, std::int64_t from_step, std::byte* to,
              std::int64_t to_step) {
  if (from_step == sizeof(From) && to_step == sizeof(To)) {
    if constexpr (std::is_same_v<From, To>) {
      copy_bytes(from, to, n * static_cast<std::int64_t>(sizeof(To)));
    } else {
      convert_run(reinterpret_cast<const From*>(from), reinterpret_cast<To*>(to), n);
    }
    return;
  }
  if (from_step == 0 && to_step == sizeof(To)) {
    std::fill_n(reinterpret_cast<To*>(to), n, convert<To>(*reinterpret_cast<const From*>(from)));
    return;
  }
  if constexpr (std::is_same_v<From, To>) {
    constexpr std::int64_t item = sizeof(To);
    if (from_step * to_step == -item * item && std::abs(to_step) == item) {  // in vectors
      const auto* const x = reinterpret_cast<const From*>(from) - (from_step < 0 ? n - 1 : 0);
      auto* const y = reinterpret_cast<To*>(to) - (to_step < 0 ? n - 1 : 0);
      for (std::int64_t i = 0; i < n; ++i) y[i] = x[n - 1 - i];
      return;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(to + i * to_step) =
        convert<To>(*reinterpret_cast<const From*>(from + i * from_step));
  }
}

// Runs of n elements along the last axis of a loop, and those of the axis around it.
struct Runs {
  std::int64_t n, from_step, to_step;
};

template <class From, class To>
void copy_runs(const Runs& runs, std::int64_t count, const std::byte* from, std::int64_t from_row,
               std::byte* to, std::int64_t to_row) {
  for (std::int64_t k = 0; k < count; ++k, from += from_row, to += to_row) {
    copy_run<From, To>(runs.n, from, runs.from_step, to, runs.to_step);
  }
}

// Whether a conversion from or to unsigned integers differs from that with signed ones.
template <class From, class To>
constexpr bool is_own_conversion() {
  constexpr auto is_plain_unsigned = []<class T>(Type<T>) {
    return std::is_unsigned_v<T> && !std::is_same_v<T, bool>;
  };
  const bool from_widens = is_floating<To> || sizeof(To) > sizeof(From);
  const bool to_exceeds = is_floating<From> && sizeof(To) >= 4;
  return !(is_plain_unsigned(Type<From>{}) && (!from_widens || std::is_same_v<To, bool>)) &&
         !(is_plain_unsigned(Type<To>{}) && !to_exceeds);
}

// Calls visit with the types of a conversion; where signs do not matter, with signed integers, so
// that fewer loops are compiled.
template <class Visit>
void visit_conversion(Dtype from, Dtype to, const Visit& visit) {
  if (!is_float(from) || size_of(to) < 4) to = signed_of(to);
  const bool from_widens = is_float(to) || size_of(to) > size_of(from);
  if (!from_widens || to == Dtype::bool_) from = signed_of(from);
  visit_dtype(from, [&]<class From>(Type<From> from_type) {
    visit_dtype(to, [&]<class To>(Type<To> to_type) {
      if constexpr (is_own_conversion<From, To>()) visit(from_type, to_type);
    });
  });
}

void copy_cpu(const Array& from, const Array& to) {
  const GilRelease work(to.size());
  if (to.size() == 0) return;
  const auto loop = make_loop<2>({&to, &from});
  const int crossing = from.dtype() == to.dtype() ? crossing_axis(loop, to.itemsize()) : -1;
  if (crossing >= 0) {
    return visit_bits(to.itemsize(),
                      [&]<class Bits>(Type<Bits>) { copy_crossing<Bits>(loop, crossing); });
  }
  // Loops around the runs are the same for all types.
  decltype(&copy_runs<float, float>) run = nullptr;
  visit_conversion(from.dtype(), to.dtype(),
                   [&]<class From, class To>(Type<From>, Type<To>) { run = copy_runs<From, To>; });
  if (loop.extents.size() == 1 || loop.run() * to.itemsize() > kLongRun) {
    return parallel_walk(loop, 2, [=](std::int64_t n, const auto& p, const auto& s) {
      run({n, s[1], s[0]}, 1, p[1], 0, p[0], 0);
    });
  }
  const Runs runs{loop.run(), loop.strides[1].back(), loop.strides[0].back()};
  StridedLoop<2> rows = loop;
  rows.extents.pop_back();
  for (int k : {0, 1}) rows.strides[k].pop_back();
  parallel_walk(rows, 2 * runs.n, [=](std::int64_t n, const auto& p, const auto& s) {
    run(runs, n, p[1], s[1], p[0], s[0]);
  });
}

// A row of adjoining bytes of each of several arrays, and the next one so many bytes after it.
struct Rows {
  std::int64_t count, bytes;
  const std::byte* from;
  std::int64_t from_row;
  std::byte* to;
  std::int64_t to_row;
};

// What is copied from x to y, unless it is of another form, or rows are so long that threads had
// better share each.
std::optional<Rows> rows_of(const Array& x, const Array& y) {
  constexpr std::int64_t kLongest = 1 << 16;
  const auto loop = make_loop<2>({&y, &x});
  const std::int64_t item = y.itemsize();
  if (x.dtype() != y.dtype() || x.device() != y.device() || loop.extents.size() != 2 ||
      loop.strides[0][1] != item || loop.strides[1][1] != item || loop.run() * item > kLongest) {
    return {};
  }
  return Rows{loop.extents[0],    loop.run() * item, loop.data[1],
              loop.strides[1][0], loop.data[0],      loop.strides[0][0]};
}

bool join_rows_cpu(std::span<const Array* const> xs, const Array& y, int axis) {
  std::vector<Rows> parts;
  const bool are_rows = visit_places(xs, y, axis, [&](const Array& from, const Array& to) {
    const std::optional<Rows> rows = rows_of(from, to);
    if (!rows || (!parts.empty() && rows->count != parts[0].count)) return false;
    parts.push_back(*rows);
    return true;
  });
  if (!are_rows || parts.empty()) return are_rows;
  const GilRelease work(y.size());
  const std::int64_t count = parts[0].count;
  parallel_for(count, 2 * y.size() / count, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) {
      for (const Rows& rows : parts) {
        const std::byte* const from = rows.from + begin * rows.from_row;
        std::byte* const to = rows.to + begin * rows.to_row;
        copy_bytes(from, to, rows.bytes);
      }
    }
  });
  return true;
}

// Elements that are next to each other.
template <class T>
void fill_run(T value, T* to, std::int64_t n, bool streaming) {
  if constexpr (is_half<T>) {  // the compiler makes vectors of integers alone
    return fill_run(value.bits, reinterpret_cast<std::uint16_t*>(to), n, streaming);
  }
  constexpr auto kBlock = static_cast<std::int64_t>(4096 / sizeof(T));
  if (!streaming) {
    std::fill_n(to, n, value);
    return;
  }
  T block[kBlock];
  std::fill_n(block, kBlock, value);
  for (std::int64_t i = 0; i < n; i += kBlock) stream(block, to + i, std::min(kBlock, n - i));
  finish_streaming();
}

void fill_cpu(const Array& x, double value) {
  const GilRelease work(x.size());
  const auto loop = make_loop<1>({&x});
  const bool streaming = pays_streaming(x.size() * x.itemsize());
  const bool is_zero = value == 0 && !std::signbit(value);
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    const T v = convert<T>(value);
    parallel_walk(loop, 1, [=](std::int64_t n, const auto& p, const auto& s) {
      constexpr std::int64_t item = sizeof(T);
      if (s[0] == item && is_zero && !streaming) {  // no loop writes faster
        std::memset(p[0], 0, static_cast<std::size_t>(n * item));
        return;
      }
      if (s[0] == item) return fill_run(v, reinterpret_cast<T*>(p[0]), n, streaming);
      for (std::int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(p[0] + i * s[0]) = v;
    });
  });
}

[[maybe_unused]] const bool registered =
    copy_kernels.add(0, {copy_cpu, fill_cpu, nullptr, join_rows_cpu});

}  // namespace
}  // namespace renga
