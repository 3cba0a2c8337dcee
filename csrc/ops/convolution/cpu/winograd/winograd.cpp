#include "ops/convolution/cpu/winograd/winograd.h"

#include <algorithm>

#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/winograd/passes.h"

namespace renga {
namespace {

using winograd::Filters;
using winograd::Images;
using winograd::Source;
using winograd::Taps;

using TwoByTwo = winograd::Scheme<winograd::PairOfThree, winograd::PairOfThree>;
using Halved = winograd::Scheme<winograd::FourOfTwo, winograd::FourOfTwo>;
// Products of bfloat16 numbers are so coarse that the transforms must not amplify their errors as
// much as those of F(4, 3) along both axes do.
template <class Number>
using Whole = winograd::Scheme<
    winograd::FourOfThree,
    std::conditional_t<std::is_same_v<Number, float>, winograd::FourOfThree, winograd::TwoOfThree>>;

// Of an array (N, H, W, C), row-major.
template <class Pixel>
Images<Pixel> images(const Array& x) {
  const std::int64_t rows = x.shape(1), columns = x.shape(2), channels = x.shape(3);
  return {x.as<Pixel>(),
          x.shape(0),
          {rows, columns},
          channels,
          rows * columns * channels,
          {columns * channels, channels}};
}

// Every second row and column of the padded images, as a convolution of stride 2 meets them.
// `pad` counts pixels of this phase, of which those in the padding are left out.
template <class Pixel>
struct Phase {
  Phase(const Images<Pixel>& x, const Window& window, int row, int column) : x(x) {
    const std::array phase{row, column};
    for (int axis : {0, 1}) {
      pad[axis] = std::max<std::int64_t>(0, (window.pad[axis] - phase[axis] + 1) / 2);
      const std::int64_t first = 2 * pad[axis] + phase[axis] - window.pad[axis];
      this->x.data += first * x.pixel_step[axis];
      this->x.extents[axis] = std::max<std::int64_t>(0, (x.extents[axis] - first + 1) / 2);
      this->x.pixel_step[axis] *= 2;
    }
  }

  Images<Pixel> x;
  Pair pad{};
};

// W is row-major.
Filters filters(const Array& W) {
  const std::int64_t size = W.shape(2) * W.shape(3);
  return {W.as<float>(), W.shape(1), W.shape(0), size, W.shape(1) * size};
}

// The filters by which the gradient of y becomes that of x, with turned taps.
Filters exchanged(const Filters& W) {
  return {W.data, W.outputs, W.inputs, W.output_step, W.input_step};
}

constexpr Taps kWhole{0, 3, 1};

// Of filters of 4 by 4, those that meet a phase's pixels.
Taps taps_of_phase(int row, int column) { return {4 * row + column, 8, 2}; }

// The last tap comes first.
Taps turned(const Taps& taps, int count) {
  return {taps.at(count - 1, count - 1), -taps.down, -taps.across};
}

// Calls body(phase's row, phase's column) for each.
template <class Body>
void each_phase(const Body& body) {
  for (int row : {0, 1}) {
    for (int column : {0, 1}) body(row, column);
  }
}

Pair pads(const Window& window) { return {window.pad[0], window.pad[1]}; }

bool is_halved(const Window& window) { return window.stride[0] == 2; }

// An image of 2 by 2 pixels to which the padding adds nothing, made of another one.
bool is_pair(const Pair& x, const Pair& y, const Window& window) {
  return x == Pair{2, 2} && y == x && window.pad == Dims{1, 1};
}

// One convolution, on images of Pixel and products of Number.
template <class Pixel, class Number>
class Pass {
 public:
  Pass(const Array& x, const Array& W, const Array& y, const Window& window, const float* bias,
       FilterForms* forms)
      : x_(images<Pixel>(x)),
        y_(images<Pixel>(y)),
        W_(W),
        window_(window),
        bias_(bias),
        forms_(forms) {}

  void forward() const {
    if (is_halved(window_)) {
      std::vector<Source<Pixel>> phases;
      each_phase([&](int row, int column) {
        const Phase phase(x_, window_, row, column);
        phases.push_back({phase.x, phase.pad, taps_of_phase(row, column)});
      });
      convolve<Halved>(phases, filters(W_), {y_});
    } else if (is_pair(x_.extents, y_.extents, window_)) {
      convolve<TwoByTwo>({{x_, pads(window_), kWhole}}, filters(W_), {y_});
    } else {
      convolve<Whole<Number>>({{x_, pads(window_), kWhole}}, filters(W_), {y_});
    }
  }

  void input_grad() const {
    const Filters W = exchanged(filters(W_));
    const Pair pad{2 - window_.pad[0], 2 - window_.pad[1]};
    if (is_halved(window_)) {
      std::vector<Source<Pixel>> sources;
      std::vector<Images<Pixel>> phases;
      each_phase([&](int row, int column) {
        const Phase phase(x_, window_, row, column);
        const Pair before{1 - phase.pad[0], 1 - phase.pad[1]};
        sources.push_back({y_, before, turned(taps_of_phase(row, column), 2)});
        phases.push_back(phase.x);
      });
      convolve<Halved>(sources, W, phases);
    } else if (is_pair(x_.extents, y_.extents, window_)) {
      convolve<TwoByTwo>({{y_, pad, turned(kWhole, 3)}}, W, {x_});
    } else {
      convolve<Whole<Number>>({{y_, pad, turned(kWhole, 3)}}, W, {x_});
    }
  }

  void weight_grad() const {
    if (is_halved(window_)) {
      std::vector<Source<Pixel>> phases;
      each_phase([&](int row, int column) {
        const Phase phase(x_, window_, row, column);
        phases.push_back({phase.x, phase.pad, taps_of_phase(row, column)});
      });
      correlate<Halved>(phases);
    } else if (is_pair(x_.extents, y_.extents, window_)) {
      correlate<TwoByTwo>({{x_, pads(window_), kWhole}});
    } else {
      correlate<Whole<Number>>({{x_, pads(window_), kWhole}});
    }
  }

 private:
  template <class Scheme>
  void convolve(const std::vector<Source<Pixel>>& sources, const Filters& W,
                const std::vector<Images<Pixel>>& to) const {
    winograd::Convolution<Scheme, Number, Pixel>(sources, W, to, bias_, forms_).run();
  }
  template <class Scheme>
  void correlate(const std::vector<Source<Pixel>>& sources) const {
    winograd::WeightGrad<Scheme, Number, Pixel>(sources, filters(W_), y_).run();
  }

  const Images<Pixel> x_, y_;
  const Array& W_;
  const Window& window_;
  const float* bias_;
  FilterForms* forms_;
};

// Calls body(Pass of the operands' types). Images are (N, H, W, C), row-major.
template <class Body>
void run(const Array& x, const Array& W, const Array& y, const Window& window, Factors factors,
         const Array& b, FilterForms* forms, const Body& body) {
  const Array dense = b.defined() ? contiguous(cast(b, Dtype::float32)) : Array();
  const float* const bias = b.defined() ? dense.as<const float>() : nullptr;
  const auto run_on = [&]<class Pixel>(Type<Pixel>) {
    if (factors == Factors::bfloat16) {
      body(Pass<Pixel, bfloat16>(x, W, y, window, bias, forms));
    } else {
      body(Pass<Pixel, float>(x, W, y, window, bias, forms));
    }
  };
  x.dtype() == Dtype::bfloat16 ? run_on(Type<bfloat16>{}) : run_on(Type<float>{});
}

}  // namespace

bool winograd_convolves(const Shape& W, const Window& window) {
  const bool whole = window.stride == Dims{1, 1} && W[2] == 3 && W[3] == 3;
  const bool halved = window.stride == Dims{2, 2} && W[2] == 4 && W[3] == 4;
  return (whole || halved) && window.dilate == Dims{1, 1} && window.groups == 1 &&
         std::max(window.pad[0], window.pad[1]) <= 2 && W[0] % kPanel == 0 && W[1] % kPanel == 0;
}

WinogradScheme winograd_scheme(const Shape& x, const Window& window, Factors factors) {
  const auto describe = []<class S>(Type<S>, std::int64_t parts) {
    return WinogradScheme{S::Down::tile, S::Across::tile, parts * S::points};
  };
  if (is_halved(window)) return describe(Type<Halved>{}, 4);
  if (is_pair({x[2], x[3]}, {x[2], x[3]}, window)) return describe(Type<TwoByTwo>{}, 1);
  if (factors == Factors::bfloat16) return describe(Type<Whole<bfloat16>>{}, 1);
  return describe(Type<Whole<float>>{}, 1);
}

void winograd_forward(const Array& x, const Array& W, const Array& y, const Window& window,
                      Factors factors, const Array& b, FilterForms* forms) {
  const ChannelsLastTarget to(y);
  run(contiguous(channels_last(x)), contiguous(W), to.dense(), window, factors, b, forms,
      [](const auto& pass) { pass.forward(); });
  to.finish();
}

void winograd_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                         Factors factors, const Array& b, FilterForms* forms) {
  const ChannelsLastTarget to(gx);
  run(to.dense(), contiguous(W), contiguous(channels_last(gy)), window, factors, b, forms,
      [](const auto& pass) { pass.input_grad(); });
  to.finish();
}

void winograd_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                          Factors factors) {
  run(contiguous(channels_last(x)), gW, contiguous(channels_last(gy)), window, factors, Array(),
      nullptr, [](const auto& pass) { pass.weight_grad(); });
}

}  // namespace renga
