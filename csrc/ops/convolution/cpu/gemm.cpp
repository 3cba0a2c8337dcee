// Convolution to images of few channels by matrix products: each row of the input image is
// multiplied by the weights of all kernel offsets at once, and each pixel of the result adds up the
// products that belong to it (col2im). Kernels that vectorize over the output channels would leave
// most of a vector empty. Products and sums are in float32. Results do not depend on the number of
// threads.
#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/index_map.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/matmul/cpu/packed_gemm.h"
#include "simd/float_vector.h"

namespace renga::convolution {
namespace {

using simd::dispatch_for, simd::Floats, simd::load_floats, simd::store_floats;

// The most output channels. A pixel's products at a kernel offset are read as so many numbers;
// those past the last channel belong to another offset and are ignored.
constexpr std::int64_t kMostChannels = 16;

// The weights as the right operand of a packed GEMM: rows are input channels, columns are output
// channels, kernel offset after kernel offset. The columns of an offset lie in one panel.
class PackedWeights {
 public:
  // W seen as (inputs, channels, offsets): the last without gaps, the others so many numbers apart.
  PackedWeights(const Array& W, std::int64_t inputs, std::int64_t channels, std::int64_t input_step,
                std::int64_t channel_step)
      : channels_(channels),
        rows_(round_up(inputs, kPanel)),
        panels_(divide_up(W.shape(2) * W.shape(3), kPanel / channels)),
        matrix_(zeros({panels_ * rows_ * kPanel}, Dtype::float32)) {
    const float* from = W.as<float>();
    for (std::int64_t offset = 0; offset < W.shape(2) * W.shape(3); ++offset) {
      float* to = matrix_.as<float>() + column_of(offset, rows_ * kPanel);
      for (std::int64_t r = 0; r < inputs; ++r, to += kPanel) {
        for (std::int64_t c = 0; c < channels; ++c) {
          to[c] = from[r * input_step + c * channel_step + offset];
        }
      }
    }
  }

  std::int64_t channels() const { return channels_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t panels() const { return panels_; }
  const float* panel(std::int64_t p) const { return matrix_.as<float>() + p * rows_ * kPanel; }
  // Returns where the columns of a kernel offset begin among panels of `panel_size` numbers.
  std::int64_t column_of(std::int64_t offset, std::int64_t panel_size) const {
    const std::int64_t per_panel = kPanel / channels_;
    return offset / per_panel * panel_size + offset % per_panel * channels_;
  }

 private:
  std::int64_t channels_, rows_, panels_;
  Array matrix_;
};

// Both images are (N, H, W, C), row-major.
template <class Pixel>
class Col2imGemm {
 public:
  Col2imGemm(const Array& input, const PackedWeights& weights, const IndexMap& map,
             const Array& result, const Array& bias)
      : input_(input),
        weights_(weights),
        row_map_(map.rows),
        column_map_(map.columns),
        result_(result) {
    for (std::int64_t offset = 0; offset < row_map_.offsets() * column_map_.offsets(); ++offset) {
      product_columns_.push_back(weights.column_of(offset, positions() * kPanel));
    }
    if (bias.defined()) std::copy_n(bias.as<float>(), weights.channels(), bias_);
  }

  void run() const {
    const std::int64_t rows = result_.shape(0) * result_.shape(1);
    const std::int64_t cost = row_size() * weights_.rows() / kMostChannels;
    parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
      RowProducts products(*this);
      for (; begin < end; ++begin) add_up(begin, products);
    });
  }

 private:
  // Pixels in a row of the input, in whole groups of rows of a panel; and the products of a row.
  std::int64_t positions() const { return round_up(input_.shape(2), kPanelRows); }
  std::int64_t row_size() const { return weights_.panels() * positions() * kPanel; }

  // The products of the latest rows of the input, as many as one row of the result reads.
  class RowProducts {
   public:
    explicit RowProducts(const Col2imGemm& gemm)
        : gemm_(gemm),
          rows_held_(static_cast<std::size_t>(span()), -1),
          left_(zeros({gemm.weights_.rows() * gemm.positions()}, Dtype::float32)),
          products_(zeros({span() * gemm.row_size() + kMostChannels}, Dtype::float32)),
          line_(empty({gemm.result_.shape(2) * gemm.weights_.channels() + kMostChannels},
                      Dtype::float32)) {}

    const float* of(std::int64_t image, std::int64_t row) {
      const std::int64_t global = image * gemm_.input_.shape(1) + row, slot = global % span();
      float* const to = products_.as<float>() + slot * gemm_.row_size();
      std::int64_t& held = rows_held_[static_cast<std::size_t>(slot)];
      if (held != global) multiply(global, to);
      held = global;
      return to;
    }
    // A buffer for a row of the result in float32, and a little beyond.
    float* line() const { return line_.as<float>(); }

   private:
    std::int64_t span() const { return gemm_.row_map_.span(); }

    void multiply(std::int64_t row, float* to) const {
      const std::int64_t positions = gemm_.positions(), panel = positions * kPanel;
      const std::int64_t columns = gemm_.input_.shape(2), channels = gemm_.input_.shape(3);
      const Pixel* from = gemm_.input_.template as<const Pixel>() + row * columns * channels;
      float* const left = left_.as<float>();
      for (std::int64_t i = 0; i < columns; ++i, from += channels) {
        for (std::int64_t c = 0; c < channels; c += kPanel) {
          std::transform(from + c, from + std::min(c + kPanel, channels),
                         left + c * positions + i * kPanel,
                         [](Pixel number) { return static_cast<float>(number); });
        }
      }
      for (std::int64_t p = 0; p < gemm_.weights_.panels(); ++p) {
        packed_gemm(left, panel, gemm_.weights_.rows() / kPanel, gemm_.weights_.panel(p),
                    to + p * panel, positions);
      }
    }

    const Col2imGemm& gemm_;
    std::vector<std::int64_t> rows_held_;
    const Array left_, products_, line_;
  };

  // The products of a row of the input, and where those of each column's offset begin.
  struct Source {
    const float* products;
    const std::int64_t* columns;
  };

  void add_up(std::int64_t row, RowProducts& products) const {
    std::vector<Source> sources;
    const std::int64_t extent = result_.shape(1), offsets = column_map_.offsets();
    for (std::int64_t k = 0; k < row_map_.offsets(); ++k) {
      const std::int64_t input = row_map_.inputs_of(row % extent)[k];
      if (input == AxisIndexMap::kOutside) continue;
      sources.push_back({products.of(row / extent, input), product_columns_.data() + k * offsets});
    }
    float* const line = products.line();
    add_columns(sources, line);
    const std::int64_t numbers = result_.shape(2) * weights_.channels();
    std::transform(line, line + numbers, result_.as<Pixel>() + row * numbers,
                   [](float number) { return Pixel(number); });
  }

  void add_columns(const std::vector<Source>& sources, float* line) const {
    const std::int64_t offsets = column_map_.offsets();
    dispatch_for<float>([&](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      constexpr std::int64_t width = Target::width, vectors = kMostChannels / width;
      for (std::int64_t w = 0; w < result_.shape(2); ++w) {
        Floats<Target> sums[vectors];
        for (std::int64_t v = 0; v < vectors; ++v) sums[v] = load_floats<Target>(bias_ + v * width);
        const std::int64_t* const inputs = column_map_.inputs_of(w);
        for (const Source& source : sources) {
          for (std::int64_t k = 0; k < offsets; ++k) {
            if (inputs[k] == AxisIndexMap::kOutside) continue;
            const float* const numbers = source.products + source.columns[k] + inputs[k] * kPanel;
            for (int v = 0; v < vectors; ++v) sums[v] += load_floats<Target>(numbers + v * width);
          }
        }
        // The next pixel overwrites what lies past the last channel.
        float* const to = line + w * weights_.channels();
        for (int v = 0; v < vectors; ++v) store_floats<Target>(sums[v], to + v * width);
      }
    });
  }

  const Array input_;
  const PackedWeights& weights_;
  const AxisIndexMap &row_map_, &column_map_;
  const Array result_;
  std::vector<std::int64_t> product_columns_;  // by kernel offset
  alignas(64) float bias_[kMostChannels] = {};
};

PackedWeights pack(const Problem& problem) {
  const Array W = contiguous(problem.W);
  const std::int64_t size = W.shape(2) * W.shape(3);
  if (problem.pass == Pass::forward) {
    return PackedWeights(W, W.shape(1), W.shape(0), size, W.shape(1) * size);
  }
  return PackedWeights(W, W.shape(0), W.shape(1), W.shape(1) * size, size);
}

bool supports(const Problem& problem) {
  return is_common(problem) && problem.pass != Pass::weight_grad && problem.window.groups == 1 &&
         output_channels(problem) <= kMostChannels;
}

// Computes all kernel offsets for every row, in whole panels. Adding up (col2im) costs `add` per
// product that reaches the result.
double cost(const Problem& problem) {
  constexpr double add = 20;
  const Array &input = problem.first(), &result = problem.result(), &W = problem.W;
  const std::int64_t channels = output_channels(problem);
  const std::int64_t columns = round_up(input.shape(3), kPanelRows);
  const std::int64_t depth = round_up(channel_pairs(problem) / channels, kPanel);
  const std::int64_t width = divide_up(W.shape(2) * W.shape(3), kPanel / channels) * kPanel;
  const auto rows = static_cast<double>(input.shape(0) * input.shape(2));
  const std::int64_t added = result.shape(0) * reads_inside(problem);
  return rows * static_cast<double>(columns * depth * width) + add * static_cast<double>(added);
}

void run(const Problem& problem, const Epilogue& epilogue) {
  const PackedWeights weights = pack(problem);
  const IndexMap map = problem.pass == Pass::forward ? map_y_to_x(problem) : map_x_to_y(problem);
  const ChannelsLastOutput output(problem.result());
  const Array input = dense_channels_last(problem.first());
  if (input.dtype() == Dtype::bfloat16) {
    Col2imGemm<bfloat16>(input, weights, map, output.dense(), epilogue.bias).run();
  } else {
    Col2imGemm<float>(input, weights, map, output.dense(), epilogue.bias).run();
  }
  output.finish();
}

}  // namespace

constinit const Algorithm kGemm{
    .name = "gemm", .supports = supports, .cost = cost, .run = run, .adds_bias = true};

}  // namespace renga::convolution
