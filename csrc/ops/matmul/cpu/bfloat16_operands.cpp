#include "ops/matmul/cpu/bfloat16_operands.h"

#include <algorithm>

#include "devices/rounding.h"
#include "ops/matmul/cpu/bfloat16_packing.h"
#include "simd/cpu_features.h"
#include "tensor/streaming.cpu.h"

namespace renga {
namespace {

using dnnl::memory;

// A product multiplies so much for each number of a large operand that it can read it from memory.
constexpr std::int64_t kLeastStreamed = std::int64_t{1} << 18;

onednn::Move move(const memory::desc& outside, const PackedSource& x, const PackedLayout& y) {
  if (!simd::has_bfloat16_dot_product()) return {};
  const bool is_float = outside.get_data_type() == memory::data_type::f32;
  return [=](const void* from, void* to) {
    PackedLayout layout = y;
    layout.streams =
        y.depth * y.width >= kLeastStreamed && y.depth % 32 == 0 && starts_cache_line(to);
    auto* const halves = static_cast<bfloat16*>(to);
    if (is_float) return pack_bfloat16(static_cast<const float*>(from), x, halves, layout);
    pack_bfloat16(static_cast<const bfloat16*>(from), x, halves, layout);
  };
}

}  // namespace

onednn::Move left_operand_move(const memory::desc& outside, const memory::desc& inside) {
  const auto size = inside.get_dims(), steps = outside.get_strides();
  if (inside.get_inner_nblks() != 0 || inside.get_strides() != memory::dims{size[1], 1}) return {};
  const bool by_rows = steps[1] == 1;
  const PackedSource x{size[1], size[0], by_rows, by_rows ? steps[0] : steps[1]};
  return move(outside, x, {.depth = size[1], .width = size[0], .panel = 0, .step = size[1]});
}

onednn::Move right_operand_move(const memory::desc& outside, const memory::desc& inside) {
  const auto size = inside.get_dims(), padded = inside.get_padded_dims(),
             steps = outside.get_strides(), inside_steps = inside.get_strides(),
             blocks = inside.get_inner_blks(), axes = inside.get_inner_idxs();
  if (inside.get_data_type() != memory::data_type::bf16 || axes.size() < 2) return {};
  if (std::any_of(size.begin() + 2, size.end(), [](auto n) { return n != 1; })) return {};
  // Numbers that follow each other in depth adjoin, so that axis is the innermost one. Products
  // have blocks of 16 pairs, convolutions of one: the same where the depth is a multiple of both.
  const auto depth = static_cast<std::size_t>(axes.back());
  if (depth > 1) return {};
  const std::size_t width = 1 - depth;
  const auto axis = [](std::size_t i) { return static_cast<memory::dim>(i); };
  const std::int64_t panel = blocks[blocks.size() - 2];
  const bool by_pairs =
      blocks == memory::dims{panel, 2} && axes == memory::dims{axis(width), axis(depth)};
  const bool by_blocks = blocks == memory::dims{16, panel, 2} &&
                         axes == memory::dims{axis(depth), axis(width), axis(depth)};
  if (!by_pairs && !by_blocks) return {};
  if (panel % 16 != 0 || padded[depth] % 32 != 0) return {};
  if (inside_steps[depth] != (by_pairs ? 2 : 32) * panel) return {};
  if (inside_steps[width] != padded[depth] * panel) return {};
  const bool along_depth = steps[depth] == 1;
  const PackedSource x{size[depth], size[width], along_depth,
                       along_depth ? steps[width] : steps[depth]};
  return move(outside, x,
              {.depth = padded[depth],
               .width = padded[width],
               .panel = panel,
               .step = padded[depth] * panel});
}

}  // namespace renga
