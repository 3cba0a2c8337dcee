#include "ops/convolution/cpu/gemm.h"

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/index_map.h"
#include "ops/matmul/cpu/packed_gemm.h"
#include "simd/float_vector.h"

namespace renga {
namespace {

using simd::dispatch, simd::Floats, simd::load_floats, simd::store_floats;

// Channels of a result. What a tap makes of a pixel is read as so many numbers, of which those past
// the last channel are another tap's, and count for nothing.
constexpr std::int64_t kMost = 16;

std::int64_t panels_for(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

// The filters as a matrix: rows are channels of the factor, columns those of the result, tap after
// tap. No tap's columns lie in two panels.
class Taps {
 public:
  // W is seen as (rows, channels, taps), the last without gaps, the others so many numbers apart.
  Taps(const Array& W, std::int64_t rows, std::int64_t channels, std::int64_t row_step,
       std::int64_t channel_step)
      : channels_(channels),
        rows_(panels_for(rows, kPanel) * kPanel),
        panels_(panels_for(W.shape(2) * W.shape(3), kPanel / channels)),
        matrix_(zeros({panels_ * rows_ * kPanel}, Dtype::float32)) {
    const float* from = W.as<float>();
    for (std::int64_t tap = 0; tap < W.shape(2) * W.shape(3); ++tap) {
      float* to = matrix_.as<float>() + offset(tap, rows_ * kPanel);
      for (std::int64_t r = 0; r < rows; ++r, to += kPanel) {
        for (std::int64_t c = 0; c < channels; ++c) {
          to[c] = from[r * row_step + c * channel_step + tap];
        }
      }
    }
  }

  std::int64_t channels() const { return channels_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t panels() const { return panels_; }
  const float* panel(std::int64_t p) const { return matrix_.as<float>() + p * rows_ * kPanel; }
  // Where a tap's columns begin among panels of `size` numbers.
  std::int64_t offset(std::int64_t tap, std::int64_t size) const {
    const std::int64_t together = kPanel / channels_;
    return tap / together * size + tap % together * channels_;
  }

 private:
  std::int64_t channels_, rows_, panels_;
  Array matrix_;
};

// Both images are (N, H, W, C), row-major.
template <class Pixel>
class Folding {
 public:
  Folding(const Array& factor, const Taps& taps, const TapMeetings& meetings, const Array& result,
          const Array& b)
      : factor_(factor),
        taps_(taps),
        down_(meetings.down),
        across_(meetings.across),
        result_(result) {
    for (std::int64_t tap = 0; tap < down_.taps() * across_.taps(); ++tap) {
      offsets_.push_back(taps.offset(tap, positions() * kPanel));
    }
    if (!b.defined()) return;
    const Array bias = contiguous(cast(b, Dtype::float32));
    std::copy_n(bias.as<float>(), taps.channels(), bias_);
  }

  void run() const {
    const std::int64_t rows = result_.shape(0) * result_.shape(1);
    const std::int64_t cost = row_size() * taps_.rows() / kMost;
    parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
      Products products(*this);
      for (; begin < end; ++begin) fold(begin, products);
    });
  }

 private:
  // Positions of a row of the factor, in whole groups, and the numbers that all taps make of them.
  std::int64_t positions() const { return panels_for(factor_.shape(2), kPanelRows) * kPanelRows; }
  std::int64_t row_size() const { return taps_.panels() * positions() * kPanel; }

  // The products of the rows that were asked for last, as many as one row of the result meets.
  class Products {
   public:
    explicit Products(const Folding& of)
        : of_(of),
          tags_(static_cast<std::size_t>(span()), -1),
          left_(zeros({of.taps_.rows() * of.positions()}, Dtype::float32)),
          rows_(zeros({span() * of.row_size() + kMost}, Dtype::float32)),
          line_(empty({of.result_.shape(2) * of.taps_.channels() + kMost}, Dtype::float32)) {}

    // Of a row of an image of the factor.
    const float* of(std::int64_t image, std::int64_t row) {
      const std::int64_t tag = image * of_.factor_.shape(1) + row, slot = tag % span();
      float* const to = rows_.as<float>() + slot * of_.row_size();
      std::int64_t& held = tags_[static_cast<std::size_t>(slot)];
      if (held != tag) multiply(tag, to);
      held = tag;
      return to;
    }
    // For a row of the result, and a little beyond.
    float* line() const { return line_.as<float>(); }

   private:
    std::int64_t span() const { return of_.down_.span(); }

    void multiply(std::int64_t row, float* to) const {
      const std::int64_t positions = of_.positions(), panel = positions * kPanel;
      const std::int64_t columns = of_.factor_.shape(2), channels = of_.factor_.shape(3);
      const Pixel* from = of_.factor_.template as<const Pixel>() + row * columns * channels;
      float* const left = left_.as<float>();
      for (std::int64_t i = 0; i < columns; ++i, from += channels) {
        for (std::int64_t c = 0; c < channels; c += kPanel) {
          std::transform(from + c, from + std::min(c + kPanel, channels),
                         left + c * positions + i * kPanel,
                         [](Pixel number) { return static_cast<float>(number); });
        }
      }
      for (std::int64_t p = 0; p < of_.taps_.panels(); ++p) {
        multiply_panels(left, panel, of_.taps_.rows() / kPanel, of_.taps_.panel(p), to + p * panel,
                        positions);
      }
    }

    const Folding& of_;
    std::vector<std::int64_t> tags_;
    const Array left_, rows_, line_;
  };

  void fold(std::int64_t row, Products& products) const {
    struct Met {
      const float* products;
      const std::int64_t* offsets;  // of a row of taps
    };
    std::vector<Met> met;
    const std::int64_t extent = result_.shape(1), taps = across_.taps();
    for (std::int64_t k = 0; k < down_.taps(); ++k) {
      const std::int64_t at = down_.at(row % extent)[k];
      if (at == Meetings::kNone) continue;
      met.push_back({products.of(row / extent, at), offsets_.data() + k * taps});
    }
    float* const line = products.line();
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      constexpr int width = Target::width, vectors = kMost / width;
      for (std::int64_t w = 0; w < result_.shape(2); ++w) {
        Floats<Target> sums[vectors];
        for (int v = 0; v < vectors; ++v) sums[v] = load_floats<Target>(bias_ + v * width);
        const std::int64_t* const at = across_.at(w);
        for (const Met& from : met) {
          for (std::int64_t k = 0; k < taps; ++k) {
            if (at[k] == Meetings::kNone) continue;
            const float* const numbers = from.products + from.offsets[k] + at[k] * kPanel;
            for (int v = 0; v < vectors; ++v) sums[v] += load_floats<Target>(numbers + v * width);
          }
        }
        // The next pixel overwrites what is too much.
        float* const to = line + w * taps_.channels();
        for (int v = 0; v < vectors; ++v) store_floats<Target>(sums[v], to + v * width);
      }
    });
    const std::int64_t numbers = result_.shape(2) * taps_.channels();
    std::transform(line, line + numbers, result_.as<Pixel>() + row * numbers,
                   [](float number) { return Pixel(number); });
  }

  const Array factor_;
  const Taps& taps_;
  const Meetings &down_, &across_;
  const Array result_;
  std::vector<std::int64_t> offsets_;
  alignas(64) float bias_[kMost] = {};
};

void convolve(const Array& factor, const Taps& taps, const TapMeetings& meetings,
              const Array& result, const Array& b) {
  const ChannelsLastTarget to(result);
  const Array from = contiguous(channels_last(factor));
  if (from.dtype() == Dtype::bfloat16) {
    Folding<bfloat16>(from, taps, meetings, to.dense(), b).run();
  } else {
    Folding<float>(from, taps, meetings, to.dense(), b).run();
  }
  to.finish();
}

}  // namespace

bool gemm_convolves(std::int64_t channels, const Window& window) {
  return channels <= kMost && window.groups == 1;
}

std::int64_t gemm_width(std::int64_t channels, std::int64_t taps) {
  return panels_for(taps, kPanel / channels) * kPanel;
}

void gemm_forward(const Array& x, const Array& given, const Array& y, const Window& window, Factors,
                  const Array& b, FilterForms*) {
  const Array W = contiguous(given);
  const std::int64_t size = W.shape(2) * W.shape(3);
  convolve(x, Taps(W, W.shape(1), W.shape(0), size, W.shape(1) * size),
           meetings_forward(x, W, y, window), y, b);
}

void gemm_input_grad(const Array& gy, const Array& given, const Array& gx, const Window& window,
                     Factors, const Array& b, FilterForms*) {
  const Array W = contiguous(given);
  const std::int64_t size = W.shape(2) * W.shape(3);
  convolve(gy, Taps(W, W.shape(0), W.shape(1), W.shape(1) * size, size),
           meetings_back(gx, W, gy, window), gx, b);
}

}  // namespace renga
