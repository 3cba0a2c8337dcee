// The operands of bfloat16 products, rounded and brought to the layouts that oneDNN multiplies.
#pragma once

#include "devices/cpu/onednn.h"

namespace renga {

// These return the move that brings a matrix of float32 or bfloat16 numbers to `inside`, which is
// the layout of a product's left operand (rows) or right one (panels of pairs of rows), which the
// weights of pointwise convolutions are, too. oneDNN's own reorders take three to five times as
// long. The move is empty where `inside` is another layout, and on machines without instructions
// for bfloat16.
onednn::Move left_operand_move(const dnnl::memory::desc& outside, const dnnl::memory::desc& inside);
onednn::Move right_operand_move(const dnnl::memory::desc& outside,
                                const dnnl::memory::desc& inside);

}  // namespace renga
