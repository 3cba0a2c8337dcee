// Images of which each pixel gathers what its taps meet in another image, channel by channel.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "ops/convolution/cpu/index_map.h"
#include "simd/vector_group.h"

namespace renga::depthwise {

using simd::add_product, simd::dispatch, simd::load_group, simd::store_group;

// Filters in blocks of channels, tap after tap, so that what is multiplied together lies together:
// as rows of channels, taps would meet each other in the same lines of the cache.
class Filters {
 public:
  // From (C, 1, kh, kw).
  explicit Filters(const Array& W)
      : taps_(W.shape(2) * W.shape(3)),
        packed_(zeros({(W.shape(0) + kBlock - 1) / kBlock * kBlock * taps_}, Dtype::float32)) {
    const Array dense = contiguous(W);
    const float* from = dense.as<const float>();
    for (std::int64_t c = 0; c < W.shape(0); ++c) {
      for (std::int64_t tap = 0; tap < taps_; ++tap) packed_.as<float>()[at(c, tap)] = *from++;
    }
  }

  template <class Target, int count>
  [[gnu::always_inline]] void load(std::int64_t c, std::int64_t tap,
                                   simd::VectorGroup<Target, count>& x) const {
    const float* const from = packed_.as<const float>();
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      x.vectors[i] = simd::load_floats<Target>(from + at(c + i * Target::width, tap));
    }
  }
  void load(std::int64_t c, std::int64_t tap, float& x) const {
    x = packed_.as<const float>()[at(c, tap)];
  }

 private:
  static constexpr std::int64_t kBlock = 16;
  std::int64_t at(std::int64_t c, std::int64_t tap) const {
    return (c / kBlock * taps_ + tap) * kBlock + c % kBlock;
  }

  std::int64_t taps_;
  Array packed_;
};

// Each pixel of the result as a sum over the pixels of the factor that its taps meet. Images are
// (N, H, W, C), row-major.
template <class Pixel>
class Gathering {
 public:
  // In a row, columns `period` apart meet the same taps, `step` apart in the factor, but at the
  // ends.
  Gathering(const Array& factor, const Filters& filters, const TapMeetings& meetings,
            std::int64_t period, std::int64_t step, const Array& result, const Array& bias)
      : factor_(factor),
        filters_(filters),
        down_(meetings.down),
        across_(meetings.across),
        period_(period),
        step_(step),
        result_(result),
        bias_(bias) {
    for (std::int64_t w = 0; w < columns(); ++w) regular_.push_back(is_regular(w));
  }

  void run() const {
    const std::int64_t cost = columns() * channels() * down_.taps() * across_.taps();
    parallel_for(result_.shape(0) * result_.shape(1), cost,
                 [&](std::int64_t begin, std::int64_t end) {
                   Met met;
                   for (; begin < end; ++begin) gather_row(begin, met);
                 });
  }

 private:
  // Columns that are gathered together.
  static constexpr int kTogether = 4;

  struct Tap {
    const Pixel* pixels;
    std::int64_t number;  // among all, of a row's first one
    bool is_new;          // to the row, which the row before has not met
  };
  // What a row, and what its pixels at one column meet.
  struct Met {
    std::vector<Tap> rows, taps;
    std::vector<const Pixel*> newest;  // the last one of each new row
  };

  std::int64_t columns() const { return result_.shape(2); }
  std::int64_t channels() const { return result_.shape(3); }

  bool is_regular(std::int64_t w) const {
    for (int j = 1; j < kTogether; ++j) {
      if (w + j * period_ >= columns()) return false;
      for (std::int64_t k = 0; k < across_.taps(); ++k) {
        const std::int64_t first = across_.at(w)[k], at = across_.at(w + j * period_)[k];
        if (first == Meetings::kNone ? at != first : at != first + j * step_) return false;
      }
    }
    return true;
  }

  void gather_row(std::int64_t row, Met& met) const {
    const std::int64_t image = row / result_.shape(1), h = row % result_.shape(1);
    const std::int64_t* const before = h > 0 ? down_.at(h - 1) : nullptr;
    met.rows.clear();
    for (std::int64_t k = 0; k < down_.taps(); ++k) {
      const std::int64_t at = down_.at(h)[k];
      if (at == Meetings::kNone) continue;
      const bool is_new = before == nullptr ||
                          std::find(before, before + down_.taps(), at) == before + down_.taps();
      met.rows.push_back({factor_.as<const Pixel>() +
                              (image * factor_.shape(1) + at) * factor_.shape(2) * channels(),
                          k * across_.taps(), is_new});
    }
    Pixel* const to = result_.as<Pixel>() + row * columns() * channels();
    for (std::int64_t phase = 0; phase < period_; ++phase) {
      for (std::int64_t w = phase; w < columns();) {
        meet(w, met);
        if (regular_[static_cast<std::size_t>(w)]) {
          gather<kTogether>(met, to + w * channels());
          w += kTogether * period_;
        } else {
          gather<1>(met, to + w * channels());
          w += period_;
        }
      }
    }
  }

  // What is met at a column.
  void meet(std::int64_t w, Met& met) const {
    met.taps.clear();
    met.newest.clear();
    for (const Tap& from : met.rows) {
      std::int64_t newest = 0;
      for (std::int64_t k = 0; k < across_.taps(); ++k) {
        const std::int64_t at = across_.at(w)[k];
        if (at == Meetings::kNone) continue;
        met.taps.push_back({from.pixels + at * channels(), from.number + k, from.is_new});
        newest = std::max(newest, at);
      }
      if (from.is_new) met.newest.push_back(from.pixels + newest * channels());
    }
  }

  // So many columns from `to` on, of which the first meets this.
  template <int together>
  void gather(const Met& met, Pixel* to) const {
    const std::int64_t result_step = period_ * channels(), factor_step = step_ * channels();
    const std::int64_t between = step_ > 1 ? channels() : 0;
    dispatch<float>([&, to ](auto target) __attribute__((always_inline)) {
      simd::for_each_group<decltype(target), 4 / together>(
          channels(), [&](std::int64_t c, auto x) __attribute__((always_inline)) {
            using X = decltype(x);
            X sums[together];
#pragma GCC unroll 4
            for (int j = 0; j < together; ++j) load_group(bias_.as<const float>() + c, sums[j]);
            for (const Tap& tap : met.taps) {
              X weight;
              filters_.load(c, tap.number, weight);
#pragma GCC unroll 4
              for (int j = 0; j < together; ++j) {
                X pixel;
                load_group(tap.pixels + j * factor_step + c, pixel);
                add_product(pixel, weight, sums[j]);
              }
            }
            // The columns that come next are too far apart for the hardware to see them coming.
            if (together > 1) {
              for (const Pixel* newest : met.newest) {
#pragma GCC unroll 4
                for (int j = together; j < 2 * together; ++j) {
                  __builtin_prefetch(newest + j * factor_step + c);
                  __builtin_prefetch(newest + j * factor_step + c - between);
                }
              }
            }
#pragma GCC unroll 4
            for (int j = 0; j < together; ++j) {
              if (together > 1) __builtin_prefetch(to + (together + j) * result_step + c, 1);
              store_group(sums[j], to + j * result_step + c);
            }
          });
    });
  }

  const Array factor_;
  const Filters& filters_;
  const Meetings &down_, &across_;
  const std::int64_t period_, step_;
  const Array result_, bias_;
  std::vector<bool> regular_;  // from a column on
};

}  // namespace renga::depthwise
