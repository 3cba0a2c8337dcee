// Products of images with banded matrices from both sides: of the rows first where these become
// fewer, else of the columns, with the rows that the next one needs, too, kept.
#include <algorithm>
#include <vector>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "ops/sampling/cpu/kernels.h"
#include "ops/sampling/image_layout.h"
#include "simd/blocked_loop.h"

namespace renga::sampling_cpu {
namespace {

// A banded matrix whose factors are numbers of type C.
template <class C>
struct Factors {
  explicit Factors(const Band& band)
      : band(band), used(band.used()), weights(band.weights.begin(), band.weights.end()) {}

  // The weights of result i that are not 0: visit(number, weight).
  template <class Visit>
  void for_each_weight(std::int64_t i, const Visit& visit) const {
    for (std::int64_t k = 0; k < band.taps; ++k) {
      const C w = weights[static_cast<std::size_t>(k * band.count() + i)];
      if (w != 0) visit(band.begin[static_cast<std::size_t>(i)] + k, w);
    }
  }

  const Band& band;
  Run used;
  std::vector<C> weights;
};

// to = v x + w y, lines of n numbers, or is added to; without y if that is nullptr.
template <class C>
void combine_two(C v, const C* __restrict x, C w, const C* __restrict y, std::int64_t n, bool adds,
                 C* __restrict to) {
  const auto write = [&](const auto& term) __attribute__((always_inline)) {
    if (adds) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) to[j] += term(j);
    } else {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) to[j] = term(j);
    }
  };
  if (y != nullptr) return write([=](std::int64_t j) { return v * x[j] + w * y[j]; });
  write([=](std::int64_t j) { return v * x[j]; });
}

// to = the weighted sum of lines of n numbers that make result i, or is added to.
template <class C, class LineOf>
void combine_lines(const Factors<C>& factors, std::int64_t i, std::int64_t n, bool adds,
                   const LineOf& line_of, C* to) {
  const C* waiting = nullptr;
  C weight = 0;
  factors.for_each_weight(i, [&](std::int64_t number, C w) {
    const C* const line = line_of(number);
    if (waiting == nullptr) {
      waiting = line;
      weight = w;
      return;
    }
    combine_two(weight, std::exchange(waiting, nullptr), w, line, n, adds, to);
    adds = true;
  });
  if (waiting != nullptr) return combine_two<C>(weight, waiting, 0, nullptr, n, adds, to);
  if (!adds) std::fill_n(to, n, C(0));
}

// The results from pixels of `channels` numbers each, `line` beginning with pixel `start`.
template <class C>
void combine_pixels(const Factors<C>& factors, std::int64_t start, std::int64_t channels,
                    const C* __restrict line, bool adds, C* __restrict to) {
  const Band& band = factors.band;
  const std::int64_t count = band.count();
  if (channels > 1) {
    for (std::int64_t j = 0; j < count; ++j) {
      combine_lines(
          factors, j, channels, adds,
          [=](std::int64_t pixel) { return line + (pixel - start) * channels; }, to + j * channels);
    }
    return;
  }
  const std::int32_t* const __restrict begin = band.begin.data();
  if (!adds && band.taps == 0) std::fill_n(to, count, C(0));
  for (std::int64_t k = 0; k < band.taps; ++k, adds = true) {
    const C* const __restrict w = factors.weights.data() + k * count;
    const C* const __restrict from = line + k - start;
    if (adds) {
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) to[j] += w[j] * from[begin[j]];
    } else {
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) to[j] = w[j] * from[begin[j]];
    }
  }
}

// Rows of an image as numbers of the compute type, `length` of each from `first` on: in place, or
// converted, of which the last `count` are kept.
template <class T>
class RowsOf {
  using C = Compute<T>;

 public:
  RowsOf(const T* first, std::int64_t row_step, std::int64_t length, std::int64_t count)
      : first_(first), row_step_(row_step), length_(length) {
    if constexpr (!std::is_same_v<T, C>) {
      numbers_.resize(static_cast<std::size_t>(count * length));
      kept_.assign(static_cast<std::size_t>(count), -1);
    }
  }
  const C* at(std::int64_t row) {
    const T* const from = first_ + row * row_step_;
    if constexpr (std::is_same_v<T, C>) {
      return from;
    } else {
      const std::size_t slot = static_cast<std::size_t>(row) % kept_.size();
      C* const to = numbers_.data() + slot * static_cast<std::size_t>(length_);
      if (std::exchange(kept_[slot], row) != row) simd::convert(from, to, length_);
      return to;
    }
  }

 private:
  const T* first_;
  std::int64_t row_step_, length_;
  std::vector<C> numbers_;
  std::vector<std::int64_t> kept_;
};

// One image of x to one of y: a channel, or all of them where they are last, as far as its results
// are in the rows [first_row, last_row) of y. 16-bit floats are computed as floats, and are not
// added to.
template <class T>
class Resampler {
  using C = Compute<T>;

 public:
  Resampler(const Array& x, const Array& y, const Resampling& image, bool adds)
      : rows_(*image.rows),
        columns_(*image.columns),
        x_(x),
        y_(y),
        from_(image.from),
        to_(image.to),
        channels_(has_channels_last(x) ? x.shape(1) : 1),
        adds_(adds) {}

  void run(std::int64_t channel, std::int64_t first_row, std::int64_t last_row) {
    const Band& rows = rows_.band;
    const bool columns_first = rows_.used.end - rows_.used.begin < rows.count();
    const std::int64_t width = columns_.band.count() * channels_;
    const std::int64_t used = columns_.used.begin;
    const std::int64_t length = (columns_.used.end - used) * channels_;
    RowsOf<T> from(x_.plane(from_, channel) + used * channels_, x_.row_step, length, rows.taps);
    T* const to = y_.plane(to_, channel) + columns_.band.first * channels_;
    lines_.resize(static_cast<std::size_t>(columns_first ? rows.taps * width : length));
    kept_.assign(static_cast<std::size_t>(rows.taps), -1);
    results_.resize(static_cast<std::size_t>(is_half<T> ? width : 0));
    const auto line_of = [&](std::int64_t row) { return from.at(row); };
    const auto combined = [&](std::int64_t row) {
      const std::int64_t slot = row % rows.taps;
      C* const line = lines_.data() + slot * width;
      if (std::exchange(kept_[static_cast<std::size_t>(slot)], row) != row) {
        combine_pixels(columns_, used, channels_, line_of(row), false, line);
      }
      return static_cast<const C*>(line);
    };
    for (std::int64_t i = std::max(first_row, rows.first);
         i < std::min(last_row, rows.first + rows.count()); ++i) {
      T* const results = to + i * y_.row_step;
      C* target;
      if constexpr (is_half<T>) {
        target = results_.data();
      } else {
        target = results;
      }
      if (columns_first) {
        combine_lines(rows_, i - rows.first, width, adds_, combined, target);
      } else {
        combine_lines(rows_, i - rows.first, length, false, line_of, lines_.data());
        combine_pixels(columns_, used, channels_, lines_.data(), adds_, target);
      }
      if constexpr (is_half<T>) simd::convert(target, results, width);
    }
  }

 private:
  Factors<C> rows_, columns_;
  Image<T> x_, y_;
  std::int64_t from_, to_, channels_;
  bool adds_;
  std::vector<C> lines_, results_;
  std::vector<std::int64_t> kept_;  // the rows that lines_ has combined
};

bool covers(const Band& band, std::int64_t size) { return band.first == 0 && band.count() == size; }

// Whether each image of y is written once, and wholly.
bool writes_all(const std::vector<Resampling>& images, const Array& y) {
  bool all = static_cast<std::int64_t>(images.size()) == y.shape(0);
  for (std::size_t i = 0; i < images.size() && all; ++i) {
    all = images[i].to == static_cast<std::int64_t>(i) && covers(*images[i].rows, y.shape(2)) &&
          covers(*images[i].columns, y.shape(3));
  }
  return all;
}

template <class T>
void resample_images(const Array& x, const Array& y, const std::vector<Resampling>& images,
                     bool adds) {
  // Threads have channels of their own, or rows.
  const bool is_last = has_channels_last(x);
  const std::int64_t units = is_last ? y.shape(2) : y.shape(1);
  const std::int64_t cost = y.size() / std::max<std::int64_t>(units, 1) * 4;
  parallel_for(units, cost, [&](std::int64_t begin, std::int64_t end) {
    for (const Resampling& image : images) {
      Resampler<T> resampler(x, y, image, adds);
      if (is_last) {
        resampler.run(0, begin, end);
        continue;
      }
      for (std::int64_t c = begin; c < end; ++c) resampler.run(c, 0, y.shape(2));
    }
  });
}

}  // namespace

void resample(const Array& x, const Array& y, const std::vector<Resampling>& images) {
  if (y.size() == 0) return;
  const bool adds = !writes_all(images, y);
  if (adds && size_of(x.dtype()) < size_of(Dtype::float32)) {  // sums are rounded once
    const Array sums = empty_like(y, Dtype::float32);
    resample(cast(x, Dtype::float32), sums, images);
    return copy(sums, y);
  }
  const GilRelease work(x.size() + y.size());
  if (adds) fill(y, 0);
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) resample_images<T>(x, y, images, adds);
  });
}

}  // namespace renga::sampling_cpu
