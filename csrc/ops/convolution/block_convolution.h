// Convolution of local blocks of images that are sharded over ranks.
#pragma once

#include <optional>

#include "ops/list.h"
#include "ops/shape/window.h"

namespace renga {

// Images are (N, channels, extents...); x is a block of the larger image and y of the smaller one,
// or of their gradients. `window.pad` is the distance from the first window of y to the first
// element of x. Outside of x, windows read zeros, also past its end. Nothing is recorded in the
// graph.

Array block_convolution(const Array& x, const Array& W, const std::optional<Array>& b,
                        const Window& window, const Dims& extents);
// The transpose; b is (I,).
Array block_convolution_input_grad(const Array& gy, const Array& W, const std::optional<Array>& b,
                                   const Window& window, const Dims& extents);
Array block_convolution_weight_grad(const Array& gy, const Array& x, const Window& window,
                                    const Dims& kernel);

template <class Visit>
void list_block_convolution_ops(Visit&& visit) {
  const Arg x{"x"}, W{"W"}, gy{"gy"}, window{"window"};
  visit(Op{"block_convolution", "(N, I, d1, ...), (O, I/groups, k1, ...), (O,) -> (N, O, extents)",
           "Contribution of a block of x to a block of y, plus b.", weighted(Products::per_output)},
        &block_convolution, x, W, Arg{"b"}, window, Arg{"extents"});
  visit(
      Op{"block_convolution_input_grad",
         "(N, O, d1', ...), (O, I/groups, k1, ...), (I,) -> (N, I, extents)",
         "Contribution of a block of gy to a block of gx, plus b.", weighted(Products::per_input)},
      &block_convolution_input_grad, gy, W, Arg{"b"}, window, Arg{"extents"});
  visit(Op{"block_convolution_weight_grad",
           "(N, O, d1', ...), (N, I, d1, ...) -> (O, I/groups, kernel)",
           "Contribution of a block of gy and a block of x to gW.",
           {.flops = {.products = Products::weight_grad}}},
        &block_convolution_weight_grad, gy, x, window, Arg{"kernel"});
}

}  // namespace renga
