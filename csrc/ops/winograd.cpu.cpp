#include "ops/winograd.cpu.h"

#include <algorithm>

#include "ops/winograd_passes.cpu.h"
#include "tensor/views.h"

namespace renga {
namespace {

using winograd::Convolution;
using winograd::Filters;
using winograd::Images;
using winograd::Source;
using winograd::ThreeTaps;
using winograd::ThreeTapsOnTwo;
using winograd::TwoTaps;
using winograd::WeightGrad;

Array channels_last(const Array& x) { return transpose_view(x, {0, 2, 3, 1}); }

// Of an array (N, H, W, C), row-major.
Images images(const Array& x) {
  const std::int64_t rows = x.shape(1), columns = x.shape(2), channels = x.shape(3);
  return {x.as<float>(),
          x.shape(0),
          {rows, columns},
          channels,
          rows * columns * channels,
          {columns * channels, channels}};
}

// Every second row and column of the padded images, as a convolution of stride 2 meets them.
// `pad` counts pixels of this phase, of which those in the padding are left out.
struct Phase {
  Phase(const Images& x, const Window& window, int row, int column) : x(x) {
    const std::array phase{row, column};
    for (int axis : {0, 1}) {
      pad[axis] = std::max<std::int64_t>(0, (window.pad[axis] - phase[axis] + 1) / 2);
      const std::int64_t first = 2 * pad[axis] + phase[axis] - window.pad[axis];
      this->x.data += first * x.pixel_step[axis];
      this->x.extents[axis] = std::max<std::int64_t>(0, (x.extents[axis] - first + 1) / 2);
      this->x.pixel_step[axis] *= 2;
    }
  }

  Images x;
  Pair pad{};
};

// W's taps, `step` apart, of a phase. W is row-major.
Filters filters(const Array& W, std::int64_t step = 1, int row = 0, int column = 0) {
  const std::int64_t columns = W.shape(3), taps = W.shape(2) * columns;
  return {W.as<float>() + row * columns + column,
          W.shape(1),
          W.shape(0),
          taps,
          W.shape(1) * taps,
          {step * columns, step}};
}

// The filters by which the gradient of y becomes that of x: the last tap comes first.
Filters turned(const Filters& W, int taps) {
  return {W.data + (taps - 1) * (W.tap_step[0] + W.tap_step[1]),
          W.outputs,
          W.inputs,
          W.output_step,
          W.input_step,
          {-W.tap_step[0], -W.tap_step[1]}};
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

void forward(const Images& x, const Array& W, const Images& y, const Window& window) {
  if (is_halved(window)) {
    std::vector<Source> phases;
    each_phase([&](int row, int column) {
      const Phase phase(x, window, row, column);
      phases.push_back({phase.x, phase.pad, filters(W, 2, row, column)});
    });
    Convolution<TwoTaps>(phases, y).run();
  } else if (is_pair(x.extents, y.extents, window)) {
    Convolution<ThreeTapsOnTwo>({{x, pads(window), filters(W)}}, y).run();
  } else {
    Convolution<ThreeTaps>({{x, pads(window), filters(W)}}, y).run();
  }
}

void input_grad(const Images& gy, const Array& W, const Images& gx, const Window& window) {
  const Pair pad{2 - window.pad[0], 2 - window.pad[1]};
  if (is_halved(window)) {
    each_phase([&](int row, int column) {
      const Phase phase(gx, window, row, column);
      const Pair before{1 - phase.pad[0], 1 - phase.pad[1]};
      const Filters taps = turned(filters(W, 2, row, column), 2);
      Convolution<TwoTaps>({{gy, before, taps}}, phase.x).run();
    });
  } else if (is_pair(gx.extents, gy.extents, window)) {
    Convolution<ThreeTapsOnTwo>({{gy, pad, turned(filters(W), 3)}}, gx).run();
  } else {
    Convolution<ThreeTaps>({{gy, pad, turned(filters(W), 3)}}, gx).run();
  }
}

void weight_grad(const Images& gy, const Images& x, const Array& gW, const Window& window) {
  if (is_halved(window)) {
    each_phase([&](int row, int column) {
      const Phase phase(x, window, row, column);
      WeightGrad<TwoTaps>(phase.x, gy, filters(gW, 2, row, column), phase.pad).run();
    });
  } else if (is_pair(x.extents, gy.extents, window)) {
    WeightGrad<ThreeTapsOnTwo>(x, gy, filters(gW), pads(window)).run();
  } else {
    WeightGrad<ThreeTaps>(x, gy, filters(gW), pads(window)).run();
  }
}

using Pass = void (*)(const Images&, const Array&, const Images&, const Window&);

// Runs a pass from images in any order of memory to some in any other.
void run(Pass pass, const Array& x, const Array& W, const Array& y, const Window& window) {
  const Array from = contiguous(channels_last(x)), to = channels_last(y);
  const Array dense = to.is_contiguous() ? to : empty(to.shape(), to.dtype());
  pass(images(from), contiguous(W), images(dense), window);
  if (!to.is_contiguous()) copy(dense, to);
}

}  // namespace

bool winograd_convolves(const Shape& W, const Window& window) {
  const bool whole = window.stride == Dims{1, 1} && W[2] == 3 && W[3] == 3;
  const bool halved = window.stride == Dims{2, 2} && W[2] == 4 && W[3] == 4;
  return (whole || halved) && window.dilate == Dims{1, 1} && window.groups == 1 &&
         std::max(window.pad[0], window.pad[1]) <= 2 && W[0] % kPanel == 0 && W[1] % kPanel == 0;
}

WinogradScheme winograd_scheme(const Shape& x, const Window& window) {
  using winograd::kSquare;
  if (is_halved(window)) return {TwoTaps::tile, 4 * kSquare<TwoTaps>};
  if (is_pair({x[2], x[3]}, {x[2], x[3]}, window))
    return {ThreeTapsOnTwo::tile, kSquare<ThreeTapsOnTwo>};
  return {ThreeTaps::tile, kSquare<ThreeTaps>};
}

void winograd_forward(const Array& x, const Array& W, const Array& y, const Window& window) {
  run(forward, x, W, y, window);
}

void winograd_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window) {
  run(input_grad, gy, W, gx, window);
}

void winograd_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  const Array from_y = contiguous(channels_last(gy)), from_x = contiguous(channels_last(x));
  weight_grad(images(from_y), images(from_x), gW, window);
}

}  // namespace renga
