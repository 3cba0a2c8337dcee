// Winograd's convolutions of images and their gradients with respect to filters, for any scheme.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "ops/winograd_tiles.cpu.h"
#include "tensor/array.h"

namespace renga::winograd {

template <class Scheme>
inline constexpr std::int64_t kSquare = Scheme::points* Scheme::points;

// Work that is always worth a thread of its own.
inline constexpr std::int64_t kDear = 1 << 20;

inline Array buffer(std::int64_t floats) { return empty({floats}, Dtype::float32); }

// Tiles are convolved in blocks, whose transformed inputs should stay in the cache of a core.
inline std::int64_t block_rows(const Tiles& tiles, std::int64_t channels) {
  const std::int64_t all = (tiles.count + kPanelRows - 1) / kPanelRows * kPanelRows;
  return std::clamp<std::int64_t>(all, kPanelRows,
                                  std::clamp<std::int64_t>(2048 / channels, 32, 64));
}

template <class Scheme>
Pair inner_pad(const Pair& pad) {
  return {pad[0] - Scheme::skipped, pad[1] - Scheme::skipped};
}

// A part of what is convolved: images, how far before each output its window starts, and filters.
struct Source {
  Images x;
  Pair pad;
  Filters W;
};

// y = the sum of the sources' convolutions, which are alike in channels, as a sequence of blocks of
// tiles times panels of outputs.
template <class Scheme>
class Convolution {
 public:
  Convolution(const std::vector<Source>& sources, const Images& y)
      : sources_(sources),
        y_(y),
        tiles_(y, Scheme::tile),
        inputs_{kSquare<Scheme>, block_rows(tiles_, channels()), channels() / kPanel},
        filters_{kSquare<Scheme>, channels(), 1},
        outputs_{kSquare<Scheme>, inputs_.rows, 1},
        blocks_((tiles_.count + inputs_.rows - 1) / inputs_.rows) {}

  void run() const {
    if (blocks_ * inputs_.rows > y_.channels) {
      by_blocks();
    } else {
      by_panels();
    }
  }

 private:
  // Many tiles: all filters are transformed first, and then tiles block by block.
  void by_blocks() const {
    const Array filters = buffer(y_.panels() * filters_.size());
    parallel_for(y_.panels(), kDear, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) {
        transform_filters(begin, filters.as<float>() + begin * filters_.size());
      }
    });
    parallel_for(blocks_, kDear, [&](std::int64_t begin, std::int64_t end) {
      const Array inputs = buffer(inputs_.size()), outputs = buffer(outputs_.size());
      for (; begin < end; ++begin) {
        transform_inputs(begin, inputs.as<float>());
        for (std::int64_t panel = 0; panel < y_.panels(); ++panel) {
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
    parallel_for(y_.panels(), kDear, [&](std::int64_t begin, std::int64_t end) {
      const Array filters = buffer(filters_.size()), outputs = buffer(outputs_.size());
      for (; begin < end; ++begin) {
        transform_filters(begin, filters.as<float>());
        for (std::int64_t block = 0; block < blocks_; ++block) {
          multiply(inputs.as<float>() + block * inputs_.size(), filters.as<float>(), block, begin,
                   outputs.as<float>());
        }
      }
    });
  }

  std::int64_t channels() const {
    return static_cast<std::int64_t>(sources_.size()) * sources_.front().x.channels;
  }

  void transform_filters(std::int64_t panel, float* to) const {
    for (const Source& source : sources_) {
      winograd::transform_filters<Scheme>(source.W, panel, filters_, to);
      to += source.x.channels * kPanel;
    }
  }
  void transform_inputs(std::int64_t block, float* to) const {
    for (const Source& source : sources_) {
      transform_tiles<typename Scheme::Input>(source.x, tiles_, inner_pad<Scheme>(source.pad),
                                              block * inputs_.rows, inputs_.rows, inputs_, to);
      to += source.x.panels() * inputs_.panel();
    }
  }
  void multiply(const float* inputs, const float* filters, std::int64_t block, std::int64_t panel,
                float* outputs) const {
    for (int p = 0; p < kSquare<Scheme>; ++p) {
      multiply_panels(inputs + p * inputs_.point(), inputs_.panel(), inputs_.panels,
                      filters + p * filters_.point(), outputs + p * outputs_.point(), inputs_.rows);
    }
    transform_outputs<Scheme>(outputs, outputs_, tiles_, block * inputs_.rows, panel, y_);
  }

  const std::vector<Source> sources_;
  const Images y_;
  const Tiles tiles_;
  const Layout inputs_, filters_, outputs_;
  const std::int64_t blocks_;
};

// The gradient of W: for each pair of a panel of inputs and one of outputs, products summed over
// the tiles. These come strip by strip, short enough for the cache, one after the other whatever
// the number of threads, so that it does not change the sums.
template <class Scheme>
class WeightGrad {
 public:
  WeightGrad(const Images& x, const Images& gy, const Filters& gW, const Pair& pad)
      : x_(x),
        gy_(gy),
        gW_(gW),
        pad_(inner_pad<Scheme>(pad)),
        tiles_(gy, Scheme::tile),
        strips_((tiles_.count + kStrip - 1) / kStrip),
        inputs_{kSquare<Scheme>, std::min(kStrip, tiles_.count), x.panels()},
        grads_{kSquare<Scheme>, inputs_.rows, gy.panels()} {}

  void run() const {
    const std::int64_t pairs = x_.panels() * gW_.panels();
    const Array inputs = buffer(inputs_.size()), grads = buffer(grads_.size());
    const Array sums = buffer(strips_ > 1 ? pairs * sums_.size() : 0);
    for (std::int64_t strip = 0; strip < strips_; ++strip) {
      parallel_for(rows(strip), kDear, [&](std::int64_t begin, std::int64_t end) {
        transform(strip, begin, end, inputs.as<float>(), grads.as<float>());
      });
      parallel_for(pairs, kDear, [&](std::int64_t begin, std::int64_t end) {
        const Array own = buffer(strips_ > 1 ? 0 : sums_.size());
        for (; begin < end; ++begin) {
          float* const to = strips_ > 1 ? sums.as<float>() + begin * sums_.size() : own.as<float>();
          const std::int64_t input = begin % x_.panels(), output = begin / x_.panels();
          accumulate(strip, inputs.as<float>() + input * inputs_.panel(),
                     grads.as<float>() + output * grads_.panel(), to);
          if (strip + 1 == strips_) transform_filter_grads<Scheme>(to, sums_, input, output, gW_);
        }
      });
    }
  }

 private:
  static constexpr std::int64_t kStrip = 64;  // tiles

  std::int64_t rows(std::int64_t strip) const {
    return std::min(kStrip, tiles_.count - strip * kStrip);
  }

  // The tiles `begin` to `end` of a strip.
  void transform(std::int64_t strip, std::int64_t begin, std::int64_t end, float* inputs,
                 float* grads) const {
    const std::int64_t first = strip * kStrip + begin, count = end - begin, at = begin * kPanel;
    transform_tiles<typename Scheme::Input>(x_, tiles_, pad_, first, count, inputs_, inputs + at);
    transform_tiles<typename Scheme::OutputGrad>(gy_, tiles_, {0, 0}, first, count, grads_,
                                                 grads + at);
  }

  void accumulate(std::int64_t strip, const float* inputs, const float* grads, float* to) const {
    for (int p = 0; p < kSquare<Scheme>; ++p) {
      multiply_transposed_panel(inputs + p * inputs_.point(), grads + p * grads_.point(),
                                rows(strip), to + p * sums_.point(), strip > 0);
    }
  }

  const Images x_, gy_;
  const Filters gW_;
  const Pair pad_;
  const Tiles tiles_;
  const std::int64_t strips_;
  const Layout sums_{kSquare<Scheme>, kPanel, 1};
  const Layout inputs_, grads_;
};

}  // namespace renga::winograd
