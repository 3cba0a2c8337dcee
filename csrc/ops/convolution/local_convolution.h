// Convolution of parts of images, for images that are spread over ranks: what one part of the
// larger image and one part of the smaller one have to do with each other.
#pragma once

#include <optional>

#include "ops/list.h"
#include "ops/shape/window.h"

namespace renga {

// Images are (N, channels, extents...), x a part of the larger one and y of the smaller one, or of
// their gradients. `window.pad` tells how far before x the first window of y begins; what windows
// see outside of x counts as zeros, however much that is at the end; x ends where they do or
// before. No history is kept.

Array convolution_part(const Array& x, const Array& W, const std::optional<Array>& b,
                       const Window& window, const Dims& extents);
// The transpose, and b (I,).
Array convolution_part_input_grad(const Array& gy, const Array& W, const std::optional<Array>& b,
                                  const Window& window, const Dims& extents);
Array convolution_part_weight_grad(const Array& gy, const Array& x, const Window& window,
                                   const Dims& kernel);

template <class Visit>
void list_convolution_parts_ops(Visit&& visit) {
  const Arg x{"x"}, W{"W"}, gy{"gy"}, window{"window"};
  visit(Op{"convolution_part", "(N, I, d1, ...), (O, I/groups, k1, ...), (O,) -> (N, O, extents)",
           "What a part of an image adds to a part of its convolution, and b."},
        &convolution_part, x, W, Arg{"b"}, window, Arg{"extents"});
  visit(Op{"convolution_part_input_grad",
           "(N, O, d1', ...), (O, I/groups, k1, ...), (I,) -> (N, I, extents)",
           "What a part of gy adds to a part of gx, and b."},
        &convolution_part_input_grad, gy, W, Arg{"b"}, window, Arg{"extents"});
  visit(Op{"convolution_part_weight_grad",
           "(N, O, d1', ...), (N, I, d1, ...) -> (O, I/groups, kernel)",
           "What a part of gy and a part of x add to gW."},
        &convolution_part_weight_grad, gy, x, window, Arg{"kernel"});
}

}  // namespace renga
