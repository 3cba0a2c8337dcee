// The passes of Winograd convolution, for any scheme, images of any float type and products of
// float32 or bfloat16 numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/convolution/cpu/winograd/blocks.h"
#include "ops/convolution/cpu/winograd/weights.h"
#include "ops/matmul/packed_weight_cache.h"
#include "tensor/array.h"

namespace renga::convolution::winograd {

// A cost for which parallel_for always uses several threads.
inline constexpr std::int64_t kExpensive = 1 << 20;

template <class Number>
Array buffer(std::int64_t size) {
  return empty({size}, dtype_of<Number>);
}

template <class Scheme>
Pair inner_pad(const Pair& pad) {
  return {pad[0] - Scheme::Down::skipped, pad[1] - Scheme::Across::skipped};
}

// An input of a convolution: images, how far before each output its window starts, and the kernel
// offsets that it is convolved with.
template <class Pixel>
struct Source {
  Images<Pixel> x;
  Pair pad;
  KernelOffsets offsets;
};

template <class Pixel>
std::vector<KernelOffsets> offsets_of(const std::vector<Source<Pixel>>& sources) {
  std::vector<KernelOffsets> offsets;
  for (const Source<Pixel>& source : sources) offsets.push_back(source.offsets);
  return offsets;
}

// The same once for each source with the first inputs of a kernel.
template <class Pixel>
std::vector<KernelOffsets> offsets_of_kernels(const std::vector<Source<Pixel>>& sources,
                                              const Weights& W) {
  const std::int64_t sharing = W.inputs / sources.front().x.channels;
  std::vector<KernelOffsets> offsets;
  for (std::int64_t i = 0; i < std::ssize(sources); i += sharing) {
    offsets.push_back(sources[static_cast<std::size_t>(i)].offsets);
  }
  return offsets;
}

// One y: the sum of the convolutions of all sources, which have equally many channels, and of the
// bias unless it is null. Where these are fewer than the weights' inputs, sources share the offsets
// of a kernel, and each has the next of its inputs. Several ys: each is the convolution of one
// source. Computed for blocks of tiles and panels of output channels.
template <class Scheme, class Number, class Pixel>
class Convolution {
 public:
  Convolution(const std::vector<Source<Pixel>>& sources, const Weights& W,
              const std::vector<Images<Pixel>>& ys, const float* bias, PackedWeightCache* cache)
      : offsets_(offsets_of_kernels(sources, W)),
        W_(W),
        bias_(bias),
        cache_(cache),
        packed_{Scheme::points, W.inputs * (std::ssize(offsets_) / std::ssize(ys)), 1} {
    const auto per_result = std::ssize(sources) / std::ssize(ys);
    for (std::int64_t i = 0; i < std::ssize(ys); ++i) {
      results_.emplace_back(sources.begin() + i * per_result,
                            sources.begin() + (i + 1) * per_result, ys[i]);
    }
  }

  void run() const {
    const Result& result = results_.front();
    if (result.has_many_tiles()) {
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
          blocks(tiles.count, channels(), has_many_tiles()),
          inputs{Scheme::points, blocks.most_rows(), channels() / kPanel},
          outputs{Scheme::points, inputs.rows, 1} {}

    // Whether there are more tiles to transform than kernels for each input channel.
    bool has_many_tiles() const { return tiles.count > y.channels; }

    // The input channels of all sources.
    std::int64_t channels() const { return std::ssize(sources) * sources.front().x.channels; }

    void transform_inputs(std::int64_t block, Number* to) const {
      for (const Source<Pixel>& source : sources) {
        transform(source, source.x, block, to);
        to += source.x.panels() * inputs.panel();
      }
    }
    // One of inputs.panels panels of channels.
    void transform_panel(std::int64_t block, std::int64_t panel, Number* to) const {
      const std::int64_t each = sources.front().x.panels();
      const Source<Pixel>& source = sources[static_cast<std::size_t>(panel / each)];
      Images<Pixel> x = source.x;
      x.data += panel % each * kPanel;
      x.channels = kPanel;
      transform(source, x, block, to + panel * inputs.panel());
    }
    void transform(const Source<Pixel>& source, const Images<Pixel>& x, std::int64_t block,
                   Number* to) const {
      transform_tiles<typename Scheme::Down::Input, typename Scheme::Across::Input, false>(
          x, tiles, inner_pad<Scheme>(source.pad), blocks.first(block), blocks.rows(block), inputs,
          to);
    }

    const std::vector<Source<Pixel>> sources;
    const Images<Pixel> y;
    const Tiles tiles;
    const Blocks blocks;
    const Layout<Number> inputs;
    const Layout<float> outputs;
  };

  // This way suits many tiles: all weights are transformed first, then tiles block by block.
  void by_blocks() const {
    const Array cached = cached_weights();
    const Array packed = cached.defined() ? cached : pack_weights();
    const Number* weights = packed.as<Number>();
    for (const Result& result : results_) {
      parallel_for(result.blocks.count(), kExpensive, [&](std::int64_t begin, std::int64_t end) {
        const Array inputs = buffer<Number>(result.inputs.size());
        const Array outputs = buffer<float>(result.outputs.size());
        for (; begin < end; ++begin) {
          result.transform_inputs(begin, inputs.as<Number>());
          for (std::int64_t panel = 0; panel < panels(); ++panel) {
            multiply(result, inputs.as<Number>(), weights + panel * panel_size(), begin, panel,
                     outputs.as<float>());
          }
        }
      });
      weights += packed_.size();
    }
  }

  // This way suits many weights: all tiles are transformed first, then weights panel by panel,
  // unless they are cached.
  void by_panels() const {
    const Array cached = cached_weights();
    std::vector<Array> inputs;
    for (const Result& result : results_) {
      inputs.push_back(buffer<Number>(result.blocks.count() * result.inputs.size()));
      Number* const to = inputs.back().template as<Number>();
      // Threads share out panels of channels, as there may be a single block.
      const std::int64_t each = result.inputs.panels;
      const std::int64_t parts = result.blocks.count() * each;
      parallel_for(parts, kExpensive, [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) {
          const std::int64_t block = begin / each;
          result.transform_panel(block, begin % each, to + block * result.inputs.size());
        }
      });
    }
    parallel_for(panels(), kExpensive, [&](std::int64_t begin, std::int64_t end) {
      const Array packed = cached.defined() ? cached : buffer<Number>(panel_size());
      for (; begin < end; ++begin) {
        Number* weights = packed.as<Number>();
        if (cached.defined()) {
          weights += begin * panel_size();
        } else {
          transform_weights(begin, weights);
        }
        multiply_all(inputs, weights, begin);
      }
    });
  }

  // Multiplies all blocks of tiles by one panel of weights.
  void multiply_all(const std::vector<Array>& inputs, const Number* weights,
                    std::int64_t panel) const {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      const Array outputs = buffer<float>(result.outputs.size());
      for (std::int64_t block = 0; block < result.blocks.count(); ++block) {
        multiply(result, inputs[i].template as<Number>() + block * result.inputs.size(), weights,
                 block, panel, outputs.as<float>());
      }
      weights += packed_.size();
    }
  }

  Array pack_weights() const {
    const Array packed = buffer<Number>(panels() * panel_size());
    parallel_for(panels(), kExpensive, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) {
        transform_weights(begin, packed.as<Number>() + begin * panel_size());
      }
    });
    return packed;
  }
  // The array is undefined where weights are not kept. The key holds all that the packed weights
  // depend on; the number of points identifies the scheme.
  Array cached_weights() const {
    if (cache_ == nullptr) return Array();
    PackedWeightCache::Key key{Scheme::points, sizeof(Number), W_.input_step, W_.output_step};
    for (const KernelOffsets& offsets : offsets_) {
      key.insert(key.end(), {offsets.first, offsets.row_step, offsets.column_step});
    }
    return cache_->get(key, [this] { return pack_weights(); });
  }

  // Returns the number of panels of output channels.
  std::int64_t panels() const { return results_.front().y.panels(); }
  // Counts the packed weights for one of these panels, those of each result in turn.
  std::int64_t panel_size() const { return std::ssize(results_) * packed_.size(); }

  void transform_weights(std::int64_t panel, Number* to) const {
    const std::int64_t source_step = results_.size() > 1 ? packed_.size() : W_.inputs * kPanel;
    winograd::transform_weights<Scheme>(W_, offsets_, source_step, panel, packed_, to);
  }
  void multiply(const Result& result, const Number* inputs, const Number* weights,
                std::int64_t block, std::int64_t panel, float* outputs) const {
    for (int p = 0; p < Scheme::points; ++p) {
      multiply_point(result, p, result.blocks.rows(block), inputs + p * result.inputs.point(),
                     weights + p * packed_.point(), outputs + p * result.outputs.point());
    }
    transform_outputs<Scheme>(outputs, result.outputs, result.tiles, result.blocks.first(block),
                              result.blocks.rows(block), panel, result.y, bias_);
  }

  // Sources without weights at this point are skipped.
  void multiply_point(const Result& result, int point, std::int64_t rows, const Number* inputs,
                      const Number* weights, float* outputs) const {
    const std::int64_t size = result.inputs.panel();
    const std::int64_t panels = result.sources.front().x.panels();  // of each source
    const auto is_skipped = [&](const Source<Pixel>& source) {
      return source.offsets.template are_zero_at<Scheme>(point);
    };
    bool any = false;
    for (auto first = result.sources.begin(), end = first; end != result.sources.end();) {
      first = std::find_if_not(end, result.sources.end(), is_skipped);
      end = std::find_if(first, result.sources.end(), is_skipped);
      if (first == end) break;
      const std::int64_t before = (first - result.sources.begin()) * panels;
      packed_gemm(inputs + before * size, size, (end - first) * panels,
                  weights + before * kPanel * kPanel, outputs, rows, any);
      any = true;
    }
    if (!any) std::fill_n(outputs, rows * kPanel, 0.0f);
  }

  const std::vector<KernelOffsets> offsets_;
  const Weights W_;
  const float* const bias_;
  PackedWeightCache* const cache_;
  const Layout<Number> packed_;  // the weights of one result
  std::vector<Result> results_;
};

// The weight gradients of sources with equally many channels, from one gradient of y: for each pair
// of a panel of input and one of output channels, products summed over the tiles. Tiles are cut
// into blocks that fit the cache, which are added up in order: the sums do not depend on the number
// of threads.
template <class Scheme, class Number, class Pixel>
class WeightGrad {
 public:
  WeightGrad(const std::vector<Source<Pixel>>& sources, const Weights& gW, const Images<Pixel>& gy,
             bool add)
      : add_(add),
        sources_(sources),
        offsets_(offsets_of(sources)),
        gW_(gW),
        gy_(gy),
        tiles_(Tiles::of<Scheme>(gy)),
        inputs_{Scheme::points, block(), sources.front().x.panels()},
        grads_{Scheme::points, block(), gy.panels()} {}

  void run() const {
    const Array inputs = buffer<Number>(source_count() * inputs_.size());
    const Array grads = buffer<Number>(grads_.size());
    if (tiles_.count <= block()) {
      by_pairs(inputs.as<Number>(), grads.as<Number>());
    } else {
      by_blocks(inputs.as<Number>(), grads.as<Number>());
    }
  }

 private:
  // This way is for a single block: each pair of panels is summed and transformed before the next.
  void by_pairs(Number* inputs, Number* grads) const {
    const std::int64_t rows = transform(0, inputs, grads);
    parallel_for(pairs(), kExpensive, [&](std::int64_t begin, std::int64_t end) {
      const Array sums = buffer<float>(source_count() * sums_.size());
      for (; begin < end; ++begin) {
        for (std::int64_t point = 0; point < Scheme::points; ++point) {
          accumulate(rows, point, begin, inputs, grads, sums.as<float>(), false, inputs_.point(),
                     grads_.point());
        }
        finish(begin, sums.as<float>());
      }
    });
  }

  // Point by point: all panels of a point stay in the L2 cache.
  void by_blocks(Number* inputs, Number* grads) const {
    const std::int64_t size = source_count() * sums_.size();  // of a pair
    const Array sums = buffer<float>(pairs() * size);
    for (std::int64_t first = 0; first < tiles_.count; first += block()) {
      const std::int64_t rows = transform(first, inputs, grads);
      parallel_for(
          Scheme::points * grads_.panels, kExpensive, [&](std::int64_t begin, std::int64_t end) {
            for (; begin < end; ++begin) {
              const std::int64_t pair = begin % grads_.panels * inputs_.panels;
              for (std::int64_t input = 0; input < inputs_.panels; ++input) {
                accumulate(rows, begin / grads_.panels, pair + input, inputs, grads,
                           sums.as<float>() + (pair + input) * size, first > 0, inputs_.panel(), 0);
              }
            }
          });
    }
    parallel_for(pairs(), kExpensive, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) finish(begin, sums.as<float>() + begin * size);
    });
  }

  std::int64_t source_count() const { return static_cast<std::int64_t>(sources_.size()); }
  // A pair has a panel of output channels and one of input channels; the latter varies faster.
  std::int64_t pairs() const { return grads_.panels * inputs_.panels; }
  static std::int64_t padded_rows(std::int64_t rows) { return round_up(rows, kInterleave<Number>); }
  // The number of tiles in a block.
  std::int64_t block() const {
    const std::int64_t channels = source_count() * sources_.front().x.channels + gy_.channels;
    const std::int64_t fit =
        kBlockBytes / (Scheme::points * channels * static_cast<int>(sizeof(Number)));
    return std::min(padded_rows(tiles_.count), std::max<std::int64_t>(64, fit / 64 * 64));
  }

  // Transforms the block of tiles from `first` on; returns the number of rows.
  std::int64_t transform(std::int64_t first, Number* inputs, Number* grads) const {
    const std::int64_t rows = padded_rows(std::min(block(), tiles_.count - first));
    parallel_for(rows / kInterleave<Number>, kExpensive, [&](std::int64_t begin, std::int64_t end) {
      transform_rows(first, begin * kInterleave<Number>, end * kInterleave<Number>, inputs, grads);
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

  // The products of a block at one point and one pair of panels, added to the sums or in their
  // place. `next_inputs` and `next_grads` are the distances to the operands of the next call.
  void accumulate(std::int64_t rows, std::int64_t point, std::int64_t pair, const Number* inputs,
                  const Number* grads, float* sums, bool add, std::int64_t next_inputs,
                  std::int64_t next_grads) const {
    inputs += point * inputs_.point() + pair % inputs_.panels * inputs_.panel();
    grads += point * grads_.point() + pair / inputs_.panels * grads_.panel();
    sums += point * sums_.point();
    for (std::int64_t source = 0; source < source_count(); ++source) {
      if (offsets_[source].template are_zero_at<Scheme>(static_cast<int>(point))) continue;
      const bool last = source + 1 == source_count();
      const Number* const current = inputs + source * inputs_.size();
      packed_gemm_transposed(current, grads, rows, sums + source * sums_.size(), add,
                             last ? inputs + next_inputs : current + inputs_.size(),
                             last ? grads + next_grads : grads);
    }
  }

  void finish(std::int64_t pair, const float* sums) const {
    transform_weight_grads<Scheme>(sums, sums_.size(), sums_, offsets_, pair % inputs_.panels,
                                   pair / inputs_.panels, gW_, add_);
  }

  static constexpr std::int64_t kBlockBytes = 4 << 20;

  const bool add_;  // to gW, instead of overwriting it
  const std::vector<Source<Pixel>> sources_;
  const std::vector<KernelOffsets> offsets_;
  const Weights gW_;
  const Images<Pixel> gy_;
  const Tiles tiles_;
  const Layout<float> sums_{Scheme::points, kPanel, 1};
  const Layout<Number> inputs_, grads_;
};

}  // namespace renga::convolution::winograd
