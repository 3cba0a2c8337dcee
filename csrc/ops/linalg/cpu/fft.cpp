// Transforms of vectors: the elements of a row, or of several rows, that adjoin are transformed
// side by side, in passes of small radices that also sort them (Stockham 1966). Those of one row
// are then transforms of its every w-th element, which a last pass of radix w joins. Lengths with
// a large prime factor are convolutions of a power of two (Bluestein 1970).
#include "ops/linalg/fft.h"

#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>

#include "devices/forked_processes.h"
#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "simd/transpose.h"
#include "simd/vector.h"

namespace renga {
namespace {

constexpr int kLargestRadix = 31;

template <class T>
struct Complex {
  std::vector<T> real, imaginary;

  explicit Complex(std::int64_t n = 0)
      : real(static_cast<std::size_t>(n)), imaginary(static_cast<std::size_t>(n)) {}
};

template <class T>
struct Parts {
  T *real, *imaginary;

  Parts from(std::int64_t i) const { return {real + i, imaginary + i}; }
};

// e^(-2 pi i k / n)
template <class T>
void set_root(std::int64_t k, std::int64_t n, std::int64_t at, Complex<T>& to) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  to.real[static_cast<std::size_t>(at)] = static_cast<T>(std::cos(angle));
  to.imaginary[static_cast<std::size_t>(at)] = static_cast<T>(-std::sin(angle));
}

// A pass of radix r: element p of `length` is multiplied by powers 1 to r - 1 of root p.
template <class T>
struct Pass {
  int radix;
  std::int64_t length;
  Complex<T> twiddles, roots;  // roots of 1 of the radix

  Pass(int radix, std::int64_t length)
      : radix(radix), length(length), twiddles(length * (radix - 1)), roots(radix) {
    for (std::int64_t p = 0; p < length; ++p) {
      for (int k = 1; k < radix; ++k) {
        set_root(p * k, length * radix, p * (radix - 1) + k - 1, twiddles);
      }
    }
    for (int k = 0; k < radix; ++k) set_root(k, radix, k, roots);
  }
};

// A complex vector.
template <class V>
struct Number {
  V real, imaginary;

  [[gnu::always_inline]] Number operator+(const Number& b) const {
    return {real + b.real, imaginary + b.imaginary};
  }
  [[gnu::always_inline]] Number operator-(const Number& b) const {
    return {real - b.real, imaginary - b.imaginary};
  }
  [[gnu::always_inline]] Number times(const V& re, const V& im) const {
    return {real * re - imaginary * im, real * im + imaginary * re};
  }
  [[gnu::always_inline]] Number times_minus_i() const { return {imaginary, -real}; }
};

template <int r, class L>
[[gnu::always_inline]] inline void transform_small(Number<typename L::V> (&x)[r]) {
  using N = Number<typename L::V>;
  if constexpr (r == 2) {
    const N sum = x[0] + x[1];
    x[1] = x[0] - x[1];
    x[0] = sum;
  } else if constexpr (r == 4) {
    const N a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = (x[1] - x[3]).times_minus_i();
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  } else {
    constexpr int columns = r / 4;  // transforms of 4, then of r / 4
    N rows[4][columns];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
      N quad[4] = {x[j], x[j + columns], x[j + 2 * columns], x[j + 3 * columns]};
      transform_small<4, L>(quad);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        const double angle = 2 * std::numbers::pi * j * u / r;
        using C = typename L::value_type;
        rows[u][j] = j * u == 0 ? quad[u]
                                : quad[u].times(L(static_cast<C>(__builtin_cos(angle))).v,
                                                L(static_cast<C>(-__builtin_sin(angle))).v);
      }
    }
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      transform_small<columns, L>(rows[u]);
#pragma GCC unroll 4
      for (int v = 0; v < columns; ++v) x[u + 4 * v] = rows[u][v];
    }
  }
}

// The radix is odd: sums and differences of pairs of elements have cosines and sines for factors.
template <class L, class T>
[[gnu::always_inline]] inline void transform_odd(int r, const Complex<T>& roots,
                                                 Number<typename L::V>* x) {
  using N = Number<typename L::V>;
  N sums[kLargestRadix / 2 + 1], differences[kLargestRadix / 2 + 1];
  const N first = x[0];
  const int half = r / 2;
  for (int k = 1; k <= half; ++k) {
    sums[k] = x[k] + x[r - k];
    differences[k] = x[k] - x[r - k];
    x[0] = x[0] + sums[k];
  }
  for (int j = 1; j <= half; ++j) {
    N even = first, odd{};
    for (int k = 1; k <= half; ++k) {
      const auto at = static_cast<std::size_t>(j * k % r);
      const auto cosine = L::broadcast(&roots.real[at]), sine = L::broadcast(&roots.imaginary[at]);
      even = even + N{sums[k].real * cosine, sums[k].imaginary * cosine};
      odd = odd + N{-(differences[k].imaginary * sine), differences[k].real * sine};
    }
    x[j] = even + odd;
    x[r - j] = even - odd;
  }
}

// One pass over vectors: `side` of them side by side, which earlier passes have sorted.
template <int r, class L, class T>
[[gnu::always_inline]] inline void run_pass(const Pass<T>& pass, std::int64_t side, Parts<T> x,
                                            Parts<T> y) {
  using N = Number<typename L::V>;
  const int radix = r == 0 ? pass.radix : r;
  const std::int64_t width = L::width, across = side * pass.length * width;
  for (std::int64_t p = 0; p < pass.length; ++p) {
    const T* const re = pass.twiddles.real.data() + p * (radix - 1);
    const T* const im = pass.twiddles.imaginary.data() + p * (radix - 1);
    for (std::int64_t q = 0; q < side; ++q) {
      const std::int64_t from = (p * side + q) * width, to = (p * side * radix + q) * width;
      N numbers[r == 0 ? kLargestRadix : r];
#pragma GCC unroll 8
      for (int k = 0; k < radix; ++k) {
        numbers[k] = {L::load(x.real + from + k * across),
                      L::load(x.imaginary + from + k * across)};
      }
      if constexpr (r == 0) {
        transform_odd<L>(radix, pass.roots, numbers);
      } else if constexpr (r % 2 == 1) {
        transform_odd<L>(r, pass.roots, numbers);
      } else {
        transform_small<r, L>(numbers);
      }
#pragma GCC unroll 8
      for (int k = 0; k < radix; ++k) {
        const N number = k == 0
                             ? numbers[0]
                             : numbers[k].times(L::broadcast(re + k - 1), L::broadcast(im + k - 1));
        L::store(number.real, y.real + to + k * side * width);
        L::store(number.imaginary, y.imaginary + to + k * side * width);
      }
    }
  }
}

template <class L, class T>
[[gnu::always_inline]] inline void run_any_pass(const Pass<T>& pass, std::int64_t side, Parts<T> x,
                                                Parts<T> y) {
  switch (pass.radix) {
    case 2:
      return run_pass<2, L>(pass, side, x, y);
    case 3:
      return run_pass<3, L>(pass, side, x, y);
    case 4:
      return run_pass<4, L>(pass, side, x, y);
    case 5:
      return run_pass<5, L>(pass, side, x, y);
    case 8:
      return run_pass<8, L>(pass, side, x, y);
    default:
      return run_pass<0, L>(pass, side, x, y);
  }
}

template <class Target, class V>
[[gnu::always_inline]] inline void transpose_square(V* rows) {
  using C = std::decay_t<decltype(rows[0][0])>;
  constexpr int width = sizeof(V) / sizeof(C);
  if constexpr (sizeof(C) == sizeof(float)) {
    simd::transpose<Target>(*reinterpret_cast<V(*)[width]>(rows));
  } else {
    alignas(sizeof(V)) C numbers[width][width];
    for (int i = 0; i < width; ++i) {
      for (int j = 0; j < width; ++j) numbers[j][i] = rows[i][j];
    }
    for (int i = 0; i < width; ++i) rows[i] = *reinterpret_cast<const V*>(numbers[i]);
  }
}

// A Plan has what does not depend on the numbers.
template <class T>
class Plan {
 public:
  explicit Plan(std::int64_t n)
      : n_(n), width_((simd::has_avx512() ? 64 : 32) / std::int64_t{sizeof(T)}) {
    is_row_ = n % width_ == 0;
    std::int64_t rest = length_ = is_row_ ? n / width_ : n;
    for (int radix : {8, 4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31}) {
      while (rest % radix == 0) {
        rest /= radix;
        passes_.emplace_back(radix, rest);
      }
    }
    if (rest > 1) {
      make_convolution();
    } else if (is_row_) {
      make_joining();
    }
  }

  // Returns how many rows are transformed together.
  std::int64_t rows() const { return is_row_ || convolution_ ? 1 : width_; }
  std::int64_t buffer_size() const {
    return convolution_ ? 2 * convolution_->n_ + convolution_->buffer_size()
                        : 2 * n_ * (is_row_ ? 1 : width_);
  }

  // Transforms `count` rows, at most rows(), that are n apart; y is multiplied by `factor`. The
  // buffer has buffer_size() numbers.
  void run(Parts<const T> x, Parts<T> y, std::int64_t count, T factor, Parts<T> buffer) const {
    if (convolution_) return convolve(x, y, factor, buffer);
    simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      is_row_ ? run_row<Target>(x, y, factor, buffer)
              : run_rows<Target>(x, y, count, factor, buffer);
    });
  }

 private:
  // The numbers after all passes are in one of the halves of the buffer.
  template <class Target>
  [[gnu::always_inline]] Parts<T> run_passes(Parts<T> x, Parts<T> first, Parts<T> second) const {
    std::int64_t side = 1;
    for (const Pass<T>& pass : passes_) {
      run_any_pass<simd::Vector<Target, T>>(pass, side, x, first);
      side *= pass.radix;
      x = first;
      std::swap(first, second);
    }
    return x;
  }

  template <class Target>
  [[gnu::always_inline]] void run_row(Parts<const T> x, Parts<T> y, T factor,
                                      Parts<T> buffer) const {
    using L = simd::Vector<Target, T>;
    using V = typename L::V;
    constexpr int width = L::width;
    const Parts<T> in{const_cast<T*>(x.real), const_cast<T*>(x.imaginary)};  // only read
    const Parts<T> sorted = run_passes<Target>(in, buffer, buffer.from(n_));
    for (std::int64_t k = 0; k < length_; k += width) {
      const auto count = static_cast<int>(std::min<std::int64_t>(width, length_ - k));
      V real[width], imaginary[width];
      for (int i = 0; i < width; ++i) {
        const std::int64_t at = (k + std::min(i, count - 1)) * width;
        real[i] = L::load(sorted.real + at);
        imaginary[i] = L::load(sorted.imaginary + at);
      }
      transpose_square<Target>(real);
      transpose_square<Target>(imaginary);
      Number<V> numbers[width];
      T padded[2][width];
      for (int l = 0; l < width; ++l) {
        const T* re = joining_.real.data() + l * length_ + k;
        const T* im = joining_.imaginary.data() + l * length_ + k;
        if (count < width) {
          std::copy_n(re, count, padded[0]);
          std::copy_n(im, count, padded[1]);
          re = padded[0];
          im = padded[1];
        }
        numbers[l] = Number<V>{real[l], imaginary[l]}.times(L::load(re), L::load(im));
      }
      transform_small<width, L>(numbers);
      for (int q = 0; q < width; ++q) {
        const V re = numbers[q].real * factor, im = numbers[q].imaginary * factor;
        const Parts<T> to = y.from(q * length_ + k);
        if (count == width) {
          L::store(re, to.real);
          L::store(im, to.imaginary);
          continue;
        }
        L::store(re, padded[0]);
        L::store(im, padded[1]);
        std::copy_n(padded[0], count, to.real);
        std::copy_n(padded[1], count, to.imaginary);
      }
    }
  }

  // Rows side by side.
  template <class Target>
  [[gnu::always_inline]] void run_rows(Parts<const T> x, Parts<T> y, std::int64_t count, T factor,
                                       Parts<T> buffer) const {
    constexpr std::int64_t width = simd::Vector<Target, T>::width;
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t r = 0; r < width; ++r) {
        const std::int64_t at = std::min(r, count - 1) * n_ + i;
        buffer.real[i * width + r] = x.real[at];
        buffer.imaginary[i * width + r] = x.imaginary[at];
      }
    }
    const Parts<T> other = buffer.from(n_ * width);
    const Parts<T> sorted = run_passes<Target>(buffer, other, buffer);
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t i = 0; i < n_; ++i) {
        y.real[r * n_ + i] = sorted.real[i * width + r] * factor;
        y.imaginary[r * n_ + i] = sorted.imaginary[i * width + r] * factor;
      }
    }
  }

  void make_joining() {
    joining_ = Complex<T>(n_);
    for (std::int64_t l = 0; l < width_; ++l) {
      for (std::int64_t k = 0; k < length_; ++k) set_root(l * k, n_, l * length_ + k, joining_);
    }
  }

  void make_convolution() {
    std::int64_t size = 32;
    while (size < 2 * n_ - 1) size *= 2;
    convolution_ = std::make_unique<Plan>(size);
    chirp_ = Complex<T>(n_);
    // Squares modulo 2 n, which are exact.
    for (std::int64_t j = 0; j < n_; ++j) set_root(j * j % (2 * n_), 2 * n_, j, chirp_);
    Complex<T> around(size), buffer(convolution_->buffer_size());
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t at : {j, (size - j) % size}) {
        const auto i = static_cast<std::size_t>(at), from = static_cast<std::size_t>(j);
        around.real[i] = chirp_.real[from];
        around.imaginary[i] = -chirp_.imaginary[from];
      }
    }
    filter_ = Complex<T>(size);
    convolution_->run({around.real.data(), around.imaginary.data()},
                      {filter_.real.data(), filter_.imaginary.data()}, 1,
                      T(1) / static_cast<T>(size), {buffer.real.data(), buffer.imaginary.data()});
  }

  void convolve(Parts<const T> x, Parts<T> y, T factor, Parts<T> buffer) const {
    const std::int64_t size = convolution_->n_;
    const Parts<T> product = buffer, spectrum = buffer.from(size), rest = buffer.from(2 * size);
    const auto multiply = [](Parts<const T> a, const Complex<T>& by, T scale, std::int64_t n,
                             Parts<T> to) {
      for (std::int64_t i = 0; i < n; ++i) {
        const T re = by.real[static_cast<std::size_t>(i)] * scale;
        const T im = by.imaginary[static_cast<std::size_t>(i)] * scale;
        const T real = a.real[i] * re - a.imaginary[i] * im;
        to.imaginary[i] = a.real[i] * im + a.imaginary[i] * re;
        to.real[i] = real;
      }
    };
    multiply(x, chirp_, T(1), n_, product);
    std::fill(product.real + n_, product.real + size, T(0));
    std::fill(product.imaginary + n_, product.imaginary + size, T(0));
    convolution_->run({product.real, product.imaginary}, spectrum, 1, T(1), rest);
    multiply({spectrum.real, spectrum.imaginary}, filter_, T(1), size, spectrum);
    // The inverse, by the transform of exchanged parts.
    convolution_->run({spectrum.imaginary, spectrum.real}, {product.imaginary, product.real}, 1,
                      T(1), rest);
    multiply({product.real, product.imaginary}, chirp_, factor, n_, y);
  }

  std::int64_t n_, width_, length_ = 1;
  bool is_row_;
  std::vector<Pass<T>> passes_;
  Complex<T> joining_;
  std::unique_ptr<Plan> convolution_;  // for a length with a large prime factor
  Complex<T> chirp_, filter_;
};

ForkMutex plans_mutex;

// Returns the plan of a length; the plans of the last lengths are kept.
template <class T>
std::shared_ptr<const Plan<T>> plan_of(std::int64_t n) {
  const std::scoped_lock lock(plans_mutex);
  static std::array<std::pair<std::int64_t, std::shared_ptr<const Plan<T>>>, 8> kept;
  static std::size_t next = 0;
  for (const auto& [length, plan] : kept) {
    if (plan && length == n) return plan;
  }
  auto& place = kept[next++ % kept.size()];
  place = {n, std::make_shared<const Plan<T>>(n)};
  return place.second;
}

void transform_cpu(const Array& real, const Array& imaginary, double factor, const Array& y_real,
                   const Array& y_imaginary) {
  const std::int64_t n = real.shape(real.ndim() - 1), rows = n == 0 ? 0 : real.size() / n;
  if (rows == 0) return;
  constexpr std::int64_t kCost = 8;  // operations of vectors for each number
  const GilRelease work(kCost * real.size());
  visit_wide(real.dtype(), [&]<class T>(Type<T>) {
    const auto plan = plan_of<T>(n);
    const std::int64_t together = plan->rows();
    parallel_for(divide_up(rows, together), kCost * n * together,
                 [&](std::int64_t begin, std::int64_t end) {
                   Complex<T> memory(plan->buffer_size());
                   const Parts<T> buffer{memory.real.data(), memory.imaginary.data()};
                   for (std::int64_t i = begin * together; i < std::min(rows, end * together);
                        i += together) {
                     plan->run({real.as<const T>() + i * n, imaginary.as<const T>() + i * n},
                               {y_real.as<T>() + i * n, y_imaginary.as<T>() + i * n},
                               std::min(together, rows - i), static_cast<T>(factor), buffer);
                   }
                 });
  });
}

[[maybe_unused]] const bool registered = fourier_kernels.add(0, {transform_cpu});

}  // namespace
}  // namespace renga
