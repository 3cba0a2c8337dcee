// Winograd's convolutions of images and their gradients with respect to filters, for any scheme,
// images of any float type and products of float32 or bfloat16 numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "ops/convolution/cpu/winograd/filters.h"
#include "ops/convolution/packed_weight_cache.h"
#include "tensor/array.h"

namespace renga::winograd {

// Work that is always worth a thread of its own.
inline constexpr std::int64_t kDear = 1 << 20;

template <class Number>
Array buffer(std::int64_t size) {
  return empty({size}, dtype_of<Number>);
}

// Tiles are convolved in blocks, whose transformed inputs should stay in the cache of a core.
inline std::int64_t block_rows(const Tiles& tiles, std::int64_t channels) {
  const std::int64_t all = (tiles.count + kPanelRows - 1) / kPanelRows * kPanelRows;
  return std::clamp<std::int64_t>(all, kPanelRows,
                                  std::clamp<std::int64_t>(2048 / channels, 32, 64));
}

template <class Scheme>
Pair inner_pad(const Pair& pad) {
  return {pad[0] - Scheme::Down::skipped, pad[1] - Scheme::Across::skipped};
}

// A part of what is convolved: images, how far before each output its window starts, and which taps
// of the filters belong to it.
template <class Pixel>
struct Source {
  Images<Pixel> x;
  Pair pad;
  Taps taps;
};

template <class Pixel>
std::vector<Taps> taps_of(const std::vector<Source<Pixel>>& sources) {
  std::vector<Taps> taps;
  for (const Source<Pixel>& source : sources) taps.push_back(source.taps);
  return taps;
}

// y = the sum of the sources' convolutions, which are alike in channels, and of the bias, if it is
// not null; of several ys, each is the convolution of one source. It is a sequence of blocks of
// tiles times panels of outputs.
template <class Scheme, class Number, class Pixel>
class Convolution {
 public:
  Convolution(const std::vector<Source<Pixel>>& sources, const Filters& W,
              const std::vector<Images<Pixel>>& ys, const float* bias, FilterForms* forms)
      : taps_(taps_of(sources)),
        W_(W),
        bias_(bias),
        forms_(forms),
        filters_{Scheme::points, W.inputs * (std::ssize(sources) / std::ssize(ys)), 1} {
    const auto parts = std::ssize(sources) / std::ssize(ys);
    for (std::int64_t i = 0; i < std::ssize(ys); ++i) {
      results_.emplace_back(sources.begin() + i * parts, sources.begin() + (i + 1) * parts, ys[i]);
    }
  }

  void run() const {
    const Result& result = results_.front();
    if (result.blocks * result.inputs.rows > result.y.channels) {
      by_blocks();
    } else {
      by_panels();
    }
  }

 private:
  using Sources = typename std::vector<Source<Pixel>>::const_iterator;

  struct Result {
    Result(Sources begin, Sources end, const Images<Pixel>& y)
        : sources(begin, end),
          y(y),
          tiles(Tiles::of<Scheme>(y)),
          inputs{Scheme::points, block_rows(tiles, channels()), channels() / kPanel},
          outputs{Scheme::points, inputs.rows, 1},
          blocks((tiles.count + inputs.rows - 1) / inputs.rows) {}

    // Of all its sources.
    std::int64_t channels() const { return std::ssize(sources) * sources.front().x.channels; }

    void transform_inputs(std::int64_t block, Number* to) const {
      for (const Source<Pixel>& source : sources) {
        transform_tiles<typename Scheme::Down::Input, typename Scheme::Across::Input, false>(
            source.x, tiles, inner_pad<Scheme>(source.pad), block * inputs.rows, inputs.rows,
            inputs, to);
        to += source.x.panels() * inputs.panel();
      }
    }

    const std::vector<Source<Pixel>> sources;
    const Images<Pixel> y;
    const Tiles tiles;
    const Layout<Number> inputs;
    const Layout<float> outputs;
    const std::int64_t blocks;
  };

  // Many tiles: all filters are transformed first, and then tiles block by block.
  void by_blocks() const {
    const Array filters = forms_ != nullptr ? kept_filters() : all_filters();
    const Number* own = filters.as<Number>();
    for (const Result& result : results_) {
      parallel_for(result.blocks, kDear, [&](std::int64_t begin, std::int64_t end) {
        const Array inputs = buffer<Number>(result.inputs.size());
        const Array outputs = buffer<float>(result.outputs.size());
        for (; begin < end; ++begin) {
          result.transform_inputs(begin, inputs.as<Number>());
          for (std::int64_t panel = 0; panel < panels(); ++panel) {
            multiply(result, inputs.as<Number>(), own + panel * panel_size(), begin, panel,
                     outputs.as<float>());
          }
        }
      });
      own += filters_.size();
    }
  }

  // Many filters: all tiles are transformed first, and then filters panel by panel, unless they are
  // kept.
  void by_panels() const {
    const Array kept = forms_ != nullptr ? kept_filters() : Array();
    std::vector<Array> inputs;
    for (const Result& result : results_) {
      inputs.push_back(buffer<Number>(result.blocks * result.inputs.size()));
      Number* const to = inputs.back().template as<Number>();
      parallel_for(result.blocks, kDear, [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) {
          result.transform_inputs(begin, to + begin * result.inputs.size());
        }
      });
    }
    parallel_for(panels(), kDear, [&](std::int64_t begin, std::int64_t end) {
      const Array own = kept.defined() ? kept : buffer<Number>(panel_size());
      for (; begin < end; ++begin) {
        Number* filters = own.as<Number>();
        if (kept.defined()) {
          filters += begin * panel_size();
        } else {
          transform_filters(begin, filters);
        }
        multiply_all(inputs, filters, begin);
      }
    });
  }

  // All blocks by one panel of filters.
  void multiply_all(const std::vector<Array>& inputs, const Number* filters,
                    std::int64_t panel) const {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      const Array outputs = buffer<float>(result.outputs.size());
      for (std::int64_t block = 0; block < result.blocks; ++block) {
        multiply(result, inputs[i].template as<Number>() + block * result.inputs.size(), filters,
                 block, panel, outputs.as<float>());
      }
      filters += filters_.size();
    }
  }

  Array all_filters() const {
    const Array filters = buffer<Number>(panels() * panel_size());
    parallel_for(panels(), kDear, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) {
        transform_filters(begin, filters.as<Number>() + begin * panel_size());
      }
    });
    return filters;
  }
  // What the transformed filters depend on besides the scheme, which their points tell.
  Array kept_filters() const {
    FilterForms::Key key{Scheme::points, sizeof(Number), W_.input_step, W_.output_step};
    for (const Taps& taps : taps_) key.insert(key.end(), {taps.first, taps.down, taps.across});
    return forms_->get(key, [this] { return all_filters(); });
  }

  // Of outputs.
  std::int64_t panels() const { return results_.front().y.panels(); }
  // One of their panels of filters, those of one result behind those of the other.
  std::int64_t panel_size() const { return std::ssize(results_) * filters_.size(); }

  void transform_filters(std::int64_t panel, Number* to) const {
    const std::int64_t part_step = results_.size() > 1 ? filters_.size() : W_.inputs * kPanel;
    winograd::transform_filters<Scheme>(W_, taps_, part_step, panel, filters_, to);
  }
  void multiply(const Result& result, const Number* inputs, const Number* filters,
                std::int64_t block, std::int64_t panel, float* outputs) const {
    for (int p = 0; p < Scheme::points; ++p) {
      multiply_panels(inputs + p * result.inputs.point(), result.inputs.panel(),
                      result.inputs.panels, filters + p * filters_.point(),
                      outputs + p * result.outputs.point(), result.inputs.rows);
    }
    transform_outputs<Scheme>(outputs, result.outputs, result.tiles, block * result.inputs.rows,
                              panel, result.y, bias_);
  }

  const std::vector<Taps> taps_;
  const Filters W_;
  const float* const bias_;
  FilterForms* const forms_;
  const Layout<Number> filters_;  // of a result
  std::vector<Result> results_;
};

// The gradients of the filters of sources that are alike in channels, from one gradient of y: for
// each pair of a panel of inputs and one of outputs, products summed over the tiles. These come in
// blocks, short enough for the cache, one after the other whatever the number of threads, so that
// it does not change the sums.
template <class Scheme, class Number, class Pixel>
class WeightGrad {
 public:
  WeightGrad(const std::vector<Source<Pixel>>& sources, const Filters& gW, const Images<Pixel>& gy)
      : sources_(sources),
        taps_(taps_of(sources)),
        gW_(gW),
        gy_(gy),
        tiles_(Tiles::of<Scheme>(gy)),
        inputs_{Scheme::points, block(), sources.front().x.panels()},
        grads_{Scheme::points, block(), gy.panels()} {}

  void run() const {
    const Array inputs = buffer<Number>(parts() * inputs_.size());
    const Array grads = buffer<Number>(grads_.size());
    if (tiles_.count <= block()) {
      by_pairs(inputs.as<Number>(), grads.as<Number>());
    } else {
      by_blocks(inputs.as<Number>(), grads.as<Number>());
    }
  }

 private:
  // One block: the sums of a pair of panels are complete, and transformed, before the next pair's.
  void by_pairs(Number* inputs, Number* grads) const {
    const std::int64_t rows = transform(0, inputs, grads);
    parallel_for(pairs(), kDear, [&](std::int64_t begin, std::int64_t end) {
      const Array sums = buffer<float>(parts() * sums_.size());
      for (; begin < end; ++begin) {
        for (std::int64_t point = 0; point < Scheme::points; ++point) {
          accumulate(rows, point, begin, inputs, grads, sums.as<float>(), false, inputs_.point(),
                     grads_.point());
        }
        finish(begin, sums.as<float>());
      }
    });
  }

  // Point by point, as all panels of a point stay in the nearest cache but one.
  void by_blocks(Number* inputs, Number* grads) const {
    const std::int64_t size = parts() * sums_.size();  // of a pair
    const Array sums = buffer<float>(pairs() * size);
    for (std::int64_t first = 0; first < tiles_.count; first += block()) {
      const std::int64_t rows = transform(first, inputs, grads);
      parallel_for(
          Scheme::points * grads_.panels, kDear, [&](std::int64_t begin, std::int64_t end) {
            for (; begin < end; ++begin) {
              const std::int64_t pair = begin % grads_.panels * inputs_.panels;
              for (std::int64_t input = 0; input < inputs_.panels; ++input) {
                accumulate(rows, begin / grads_.panels, pair + input, inputs, grads,
                           sums.as<float>() + (pair + input) * size, first > 0, inputs_.panel(), 0);
              }
            }
          });
    }
    parallel_for(pairs(), kDear, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) finish(begin, sums.as<float>() + begin * size);
    });
  }

  std::int64_t parts() const { return static_cast<std::int64_t>(sources_.size()); }
  // Of a panel of outputs and, which vary faster, one of inputs.
  std::int64_t pairs() const { return grads_.panels * inputs_.panels; }
  static std::int64_t stacked(std::int64_t rows) {
    return (rows + kStack<Number> - 1) / kStack<Number> * kStack<Number>;
  }
  // Tiles in a block.
  std::int64_t block() const {
    const std::int64_t channels = parts() * sources_.front().x.channels + gy_.channels;
    const std::int64_t fit =
        kBytes / (Scheme::points * channels * static_cast<int>(sizeof(Number)));
    return std::min(stacked(tiles_.count), std::max<std::int64_t>(64, fit / 64 * 64));
  }

  // The block of tiles from `first` on; returns how many rows they make.
  std::int64_t transform(std::int64_t first, Number* inputs, Number* grads) const {
    const std::int64_t rows = stacked(std::min(block(), tiles_.count - first));
    parallel_for(rows / kStack<Number>, kDear, [&](std::int64_t begin, std::int64_t end) {
      transform_rows(first, begin * kStack<Number>, end * kStack<Number>, inputs, grads);
    });
    return rows;
  }
  void transform_rows(std::int64_t first, std::int64_t begin, std::int64_t end, Number* inputs,
                      Number* grads) const {
    using Down = typename Scheme::Down;
    using Across = typename Scheme::Across;
    first += begin;
    for (const Source<Pixel>& source : sources_) {
      transform_tiles<typename Down::Input, typename Across::Input, true>(
          source.x, tiles_, inner_pad<Scheme>(source.pad), first, end - begin, inputs_,
          inputs + begin * kPanel);
      inputs += inputs_.size();
    }
    transform_tiles<typename Down::OutputGrad, typename Across::OutputGrad, true>(
        gy_, tiles_, {0, 0}, first, end - begin, grads_, grads + begin * kPanel);
  }

  // A block's products at one point, of one pair of panels, added to its sums or in their place.
  // The next ones' operands lie so far behind these.
  void accumulate(std::int64_t rows, std::int64_t point, std::int64_t pair, const Number* inputs,
                  const Number* grads, float* sums, bool add, std::int64_t next_inputs,
                  std::int64_t next_grads) const {
    inputs += point * inputs_.point() + pair % inputs_.panels * inputs_.panel();
    grads += point * grads_.point() + pair / inputs_.panels * grads_.panel();
    sums += point * sums_.point();
    for (std::int64_t part = 0; part < parts(); ++part) {
      const bool last = part + 1 == parts();
      const Number* const own = inputs + part * inputs_.size();
      multiply_transposed_panel(own, grads, rows, sums + part * sums_.size(), add,
                                last ? inputs + next_inputs : own + inputs_.size(),
                                last ? grads + next_grads : grads);
    }
  }

  void finish(std::int64_t pair, const float* sums) const {
    transform_filter_grads<Scheme>(sums, sums_.size(), sums_, taps_, pair % inputs_.panels,
                                   pair / inputs_.panels, gW_);
  }

  static constexpr std::int64_t kBytes = 4 << 20;

  const std::vector<Source<Pixel>> sources_;
  const std::vector<Taps> taps_;
  const Filters gW_;
  const Images<Pixel> gy_;
  const Tiles tiles_;
  const Layout<float> sums_{Scheme::points, kPanel, 1};
  const Layout<Number> inputs_, grads_;
};

}  // namespace renga::winograd
