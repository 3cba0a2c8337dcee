#include <atomic>

#include "devices/gil_release.h"
#include "ops/elementwise/cpu/kernels.h"
#include "ops/elementwise/cpu/mixed_runs.h"
#include "ops/elementwise/integer_maps.h"
#include "ops/elementwise/maps.h"
#include "simd/blocked_loop.h"
#include "simd/special.h"
#include "tensor/crossing_copy.cpu.h"
#include "tensor/parts.h"
#include "tensor/views.h"

namespace renga::elementwise_cpu {
namespace {

using simd::Rows;

template <Binary map, class T>
[[gnu::noinline]] void float_binary(Compute<T> p, const Rows<const T>& a, const Rows<const T>& b,
                                    const Rows<T>& y, std::int64_t rows, std::int64_t n) {
  simd::map_vectors(
      y, rows, n,
      [=](const auto& u, const auto& v)
          __attribute__((always_inline)) { return maps::binary<map>(u, v, p); },
      a, b);
}

// Whether a function takes some times as long as an exponential function does.
constexpr bool is_long(Binary map) {
  return map == Binary::power || map == Binary::arctan2 || map >= Binary::polygamma;
}

// Faults of integer divisions in all blocks of a call.
struct DivisionFaults {
  std::atomic<bool> by_zero{false}, overflow{false};

  void add(integers::Fault fault) {
    if (fault == integers::Fault::by_zero) by_zero = true;
    if (fault == integers::Fault::overflow) overflow = true;
  }
  void report() const {
    if (arithmetic_warning == nullptr) return;
    if (by_zero) arithmetic_warning("divide by zero encountered in floor_divide");
    if (overflow) arithmetic_warning("overflow encountered in floor_divide");
  }
};

// Plain loops, which the compiler vectorizes, but for divisions.
template <Binary map, class T>
void integer_binary(const T* a, const T* b, T* y, std::int64_t n, DivisionFaults& faults) {
  if constexpr (map == Binary::floor_divide) {
    for (std::int64_t i = 0; i < n; ++i) {
      auto fault = integers::Fault::none;
      y[i] = integers::floor_divide(a[i], b[i], fault);
      if (fault != integers::Fault::none) [[unlikely]]
        faults.add(fault);
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = integers::binary<map>(a[i], b[i]);
  }
}

// Whether x adjoins along another axis than y does, so that x in the order of y jumps through
// memory.
bool crosses(const Array& x, const Array& y) {
  return !same_layout(x, y) && crossing_axis(make_loop<2>({&y, &x}), y.itemsize()) >= 0;
}

// Computes arrays of float32 and bfloat16 in floats. Returns false, and does nothing, if there are
// others or y has gaps.
bool mixed_binary(Binary map, double p, const Array& a, const Array& b, const Array& y) {
  if (!is_activation(a.dtype()) || !is_activation(b.dtype()) || !is_activation(y.dtype())) {
    return false;
  }
  const GilRelease work(y.size());
  const auto kernel = [=](const Rows<const float>& u, const Rows<const float>& v,
                          const Rows<float>& to, std::int64_t rows, std::int64_t n) {
    maps::visit_map<maps::kLastBinary>(
        map, [=]<Binary m>() { float_binary<m, float>(static_cast<float>(p), u, v, to, rows, n); });
  };
  return map_mixed_runs(y, 1, kernel, a, b) || simd::map_mixed_blocks(y, 1, kernel, a, b);
}

// Computes y part by part, of operands that are copied to its order and dtype.
void binary_by_parts(Binary map, double p, const Array& a, const Array& b, const Array& y) {
  const auto differs = [&](const Array& x) { return x.dtype() != y.dtype() || crosses(x, y); };
  const bool copies_a = differs(a), copies_b = differs(b);
  for_each_part(y, memory_order(y), [&](const Part& part) {
    const Array to = part.of(y);
    const auto ordered = [&](const Array& x, bool copies) {
      const Array from = part.of(x), copied = copies ? empty_like(to) : from;
      if (copies) copy(from, copied);
      return copied;
    };
    binary(map, p, ordered(a, copies_a), ordered(b, copies_b), to);
  });
}

}  // namespace

void binary(Binary map, double p, const Array& a, const Array& b, const Array& y) {
  constexpr std::int64_t kLarge = 1 << 14;
  const bool are_alike = a.dtype() == y.dtype() && b.dtype() == y.dtype();
  const bool crossing = y.size() >= kLarge && (crosses(a, y) || crosses(b, y));
  if (!are_alike && !crossing && mixed_binary(map, p, a, b, y)) return;
  if (!are_alike || crossing) return binary_by_parts(map, p, a, b, y);
  DivisionFaults faults;
  {
    const GilRelease work(y.size());
    visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
      using C = Compute<T>;
      const auto kernel = [=, &faults]<class S>(const Rows<const S>& in_a,
                                                const Rows<const S>& in_b, const Rows<S>& out,
                                                std::int64_t rows, std::int64_t n) {
        if constexpr (std::is_floating_point_v<C>) {
          maps::visit_map<maps::kLastBinary>(map, [=]<Binary m>() {
            if constexpr (is_half<S> && is_long(m)) {
              const auto floats = [=](const auto&... operands) {
                float_binary<m, float>(p, operands...);
              };
              simd::map_in_floats(floats, out, rows, n, in_a, in_b);
            } else {
              float_binary<m, S>(C(p), in_a, in_b, out, rows, n);
            }
          });
        } else if constexpr (!std::is_same_v<C, bool>) {
          maps::visit_map<integers::kLastBinary>(map, [=, &faults]<Binary m>() {
            for (std::int64_t r = 0; r < rows; ++r) {
              integer_binary<m>(in_a.row(r), in_b.row(r), out.row(r), n, faults);
            }
          });
        }
      };
      simd::map_blocks<T>(y, 1, kernel, a, b);
    });
  }
  faults.report();
}

}  // namespace renga::elementwise_cpu
