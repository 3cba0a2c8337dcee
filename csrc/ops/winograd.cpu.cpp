#include "ops/winograd.cpu.h"

#include <algorithm>

#include "devices/parallel.h"
#include "ops/winograd_tiles.cpu.h"
#include "ops/winograd_transform.cpu.h"
#include "tensor/views.h"

namespace renga {
namespace {

using winograd::Filters;
using winograd::Images;
using winograd::Layout;
using winograd::Tiles;
constexpr int kSquare = winograd::kPoints * winograd::kPoints;

// Work that is always worth a thread of its own.
constexpr std::int64_t kDear = 1 << 20;

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

Array buffer(std::int64_t floats) { return empty({floats}, Dtype::float32); }

// Of an array (N, H, W, C), row-major.
Images images(const Array& x) {
  return {x.as<float>(), x.shape(0), {x.shape(1), x.shape(2)}, x.shape(3)};
}

Array channels_last(const Array& x) { return transpose_view(x, {0, 2, 3, 1}); }

Filters filters(const Array& W) {
  return {W.as<float>(), W.shape(1), W.shape(0), 9, W.shape(1) * 9, 1};
}

// The filters by which the gradient of y becomes that of x.
Filters turned(const Array& W) {
  return {W.as<float>() + 8, W.shape(0), W.shape(1), W.shape(1) * 9, 9, -1};
}

// Tiles are convolved in blocks, whose transformed inputs should stay in the cache of a core.
std::int64_t block_rows(const Tiles& tiles, std::int64_t channels) {
  return std::min(round_up(tiles.count, kPanelRows),
                  std::clamp<std::int64_t>(4096 / channels, 32, 64));
}

// The convolution of x with W, as a sequence of blocks of tiles times panels of outputs.
class Convolution {
 public:
  Convolution(const Images& x, const Filters& W, const Images& y, const Pair& pad)
      : x_(x),
        W_(W),
        y_(y),
        pad_(pad),
        tiles_(y),
        inputs_{block_rows(tiles_, x.channels), x.panels()},
        filters_{W.inputs, 1},
        outputs_{inputs_.rows, 1},
        blocks_((tiles_.count + inputs_.rows - 1) / inputs_.rows) {}

  void run() const {
    if (blocks_ * inputs_.rows > W_.outputs) {
      by_blocks();
    } else {
      by_panels();
    }
  }

 private:
  // Many tiles: all filters are transformed first, and then tiles block by block.
  void by_blocks() const {
    const Array filters = buffer(W_.panels() * filters_.size());
    parallel_for(W_.panels(), kDear, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) transform_filters(begin, filters);
    });
    parallel_for(blocks_, kDear, [&](std::int64_t begin, std::int64_t end) {
      const Array inputs = buffer(inputs_.size()), outputs = buffer(outputs_.size());
      for (; begin < end; ++begin) {
        transform_inputs(begin, inputs.as<float>());
        for (std::int64_t panel = 0; panel < W_.panels(); ++panel) {
          multiply(inputs.as<float>(), filters.as<float>() + panel * filters_.size(), begin, panel,
                   outputs.as<float>());
        }
      }
    });
  }

  // Many filters: all tiles are transformed first, and then filters panel by panel.
  void by_panels() const {
    const Array inputs = buffer(blocks_ * inputs_.size());
    parallel_for(blocks_, kDear, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) {
        transform_inputs(begin, inputs.as<float>() + begin * inputs_.size());
      }
    });
    parallel_for(W_.panels(), kDear, [&](std::int64_t begin, std::int64_t end) {
      const Array filters = buffer(filters_.size()), outputs = buffer(outputs_.size());
      for (; begin < end; ++begin) {
        winograd::transform_filters(W_, begin, filters_, filters.as<float>());
        for (std::int64_t block = 0; block < blocks_; ++block) {
          multiply(inputs.as<float>() + block * inputs_.size(), filters.as<float>(), block, begin,
                   outputs.as<float>());
        }
      }
    });
  }

  void transform_filters(std::int64_t panel, const Array& to) const {
    winograd::transform_filters(W_, panel, filters_, to.as<float>() + panel * filters_.size());
  }
  void transform_inputs(std::int64_t block, float* to) const {
    winograd::transform_inputs(x_, tiles_, pad_, block * inputs_.rows, inputs_, to);
  }
  void multiply(const float* inputs, const float* filters, std::int64_t block, std::int64_t panel,
                float* outputs) const {
    for (int p = 0; p < kSquare; ++p) {
      multiply_panels(inputs + p * inputs_.point(), inputs_.panel(), inputs_.panels,
                      filters + p * filters_.point(), outputs + p * outputs_.point(), inputs_.rows);
    }
    transform_outputs(outputs, outputs_, tiles_, block * inputs_.rows, panel, y_);
  }

  const Images x_;
  const Filters W_;
  const Images y_;
  const Pair pad_;
  const Tiles tiles_;
  const Layout inputs_, filters_, outputs_;
  const std::int64_t blocks_;
};

// The gradient of W: for each pair of a panel of inputs and one of outputs, products summed over
// the tiles. These come in blocks of strips, one after the other whatever the number of threads, so
// that it does not change the sums.
class WeightGrad {
 public:
  WeightGrad(const Images& x, const Images& gy, const Filters& gW, const Pair& pad)
      : x_(x),
        gy_(gy),
        gW_(gW),
        pad_(pad),
        tiles_(gy),
        strips_((tiles_.count + kStrip - 1) / kStrip),
        block_(std::clamp<std::int64_t>(kBlock / (strip(x) + strip(gy)), 1, strips_)) {}

  void run() const {
    const std::int64_t pairs = x_.panels() * gW_.panels();
    const Array inputs = buffer(block_ * strip(x_)), grads = buffer(block_ * strip(gy_));
    const Array sums = buffer(strips_ > block_ ? pairs * sums_.size() : 0);
    for (std::int64_t first = 0; first < strips_; first += block_) {
      const std::int64_t last = std::min(first + block_, strips_);
      parallel_for(2 * (last - first), kDear, [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) transform(first, begin, inputs, grads);
      });
      parallel_for(pairs, kDear, [&](std::int64_t begin, std::int64_t end) {
        const Array own = buffer(strips_ > block_ ? 0 : sums_.size());
        for (; begin < end; ++begin) {
          float* const to =
              strips_ > block_ ? sums.as<float>() + begin * sums_.size() : own.as<float>();
          const std::int64_t input = begin % x_.panels(), output = begin / x_.panels();
          for (std::int64_t s = first; s < last; ++s) {
            accumulate(inputs.as<float>() + (s - first) * strip(x_), input,
                       grads.as<float>() + (s - first) * strip(gy_), output, s, to);
          }
          if (last == strips_) transform_filter_grads(to, sums_, input, output, gW_);
        }
      });
    }
  }

 private:
  static constexpr std::int64_t kStrip = 64;       // tiles
  static constexpr std::int64_t kBlock = 4 << 20;  // floats

  static std::int64_t strip(const Images& x) { return Layout{kStrip, x.panels()}.size(); }
  Layout layout(const Images& x, std::int64_t s) const {
    return {std::min(kStrip, tiles_.count - s * kStrip), x.panels()};
  }

  // Of the strips of a block, the even tasks transform x and the odd ones gy.
  void transform(std::int64_t first, std::int64_t task, const Array& inputs,
                 const Array& grads) const {
    const std::int64_t s = first + task / 2;
    if (task % 2 == 0) {
      transform_inputs(x_, tiles_, pad_, s * kStrip, layout(x_, s),
                       inputs.as<float>() + (s - first) * strip(x_));
    } else {
      transform_output_grads(gy_, tiles_, s * kStrip, layout(gy_, s),
                             grads.as<float>() + (s - first) * strip(gy_));
    }
  }

  void accumulate(const float* inputs, std::int64_t input, const float* grads, std::int64_t output,
                  std::int64_t s, float* to) const {
    const Layout from_x = layout(x_, s), from_y = layout(gy_, s);
    for (int p = 0; p < kSquare; ++p) {
      multiply_transposed_panel(inputs + p * from_x.point() + input * from_x.panel(),
                                grads + p * from_y.point() + output * from_y.panel(), from_x.rows,
                                to + p * sums_.point(), s > 0);
    }
  }

  const Images x_, gy_;
  const Filters gW_;
  const Pair pad_;
  const Tiles tiles_;
  const Layout sums_{kPanel, 1};
  const std::int64_t strips_, block_;
};

// y = the convolution of x with W.
void convolve(const Array& x, const Filters& W, const Array& y, const Pair& pad) {
  const Array from = contiguous(channels_last(x)), to = channels_last(y);
  const Array dense = to.is_contiguous() ? to : empty(to.shape(), to.dtype());
  Convolution(images(from), W, images(dense), pad).run();
  if (!to.is_contiguous()) copy(dense, to);
}

}  // namespace

bool winograd_convolves(const Shape& W, const Window& window) {
  return W[2] == 3 && W[3] == 3 && window.stride == Pair{1, 1} && window.dilate == Pair{1, 1} &&
         window.groups == 1 && std::max(window.pad[0], window.pad[1]) <= 2 && W[0] % kPanel == 0 &&
         W[1] % kPanel == 0;
}

void winograd_forward(const Array& x, const Array& W, const Array& y, const Window& window) {
  const Array weights = contiguous(W);
  convolve(x, filters(weights), y, window.pad);
}

void winograd_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window) {
  const Array weights = contiguous(W);
  convolve(gy, turned(weights), gx, {2 - window.pad[0], 2 - window.pad[1]});
}

void winograd_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  const Array from_x = contiguous(channels_last(x)), from_y = contiguous(channels_last(gy));
  WeightGrad(images(from_x), images(from_y), filters(gW), window.pad).run();
}

}  // namespace renga
