#include "ops/matmul/cpu/bfloat16_matmul.h"

#include <array>

#include "devices/cpu/onednn.h"
#include "devices/parallel.h"
#include "devices/single_thread.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/cpu/bfloat16_operands.h"
#include "ops/matmul/cpu/selection.h"
#include "simd/tile_unit.h"

namespace renga {
namespace {

dnnl::memory::data_type bfloat16_or_float(const Array& x) {
  return x.dtype() == Dtype::bfloat16 ? dnnl::memory::data_type::bf16
                                      : dnnl::memory::data_type::f32;
}

// c (+)= a b of one matrix each, with operands rounded to bfloat16; c = a b + bias if that is
// defined.
onednn::Plan bfloat16_plan(const Matrix& a, const Matrix& b, const Array& bias, const Array& c,
                           const Sizes& size, bool accumulate) {
  using dnnl::memory, onednn::Operand;
  const auto external = [&](const Matrix& x, std::int64_t rows, std::int64_t columns) {
    return memory::desc({rows, columns}, bfloat16_or_float(x.array),
                        x.transposed ? memory::dims{1, x.leading} : memory::dims{x.leading, 1});
  };
  const memory::desc left = external(a, size.m, size.k), right = external(b, size.k, size.n);
  const memory::desc to({size.m, size.n}, bfloat16_or_float(c), memory::format_tag::ab);
  const memory::desc added =
      bias.defined() ? memory::desc({1, size.n}, bfloat16_or_float(bias), memory::format_tag::ab)
                     : memory::desc();
  const auto rounded = [](const memory::desc& x) {
    return memory::desc(x.get_dims(), memory::data_type::bf16, memory::format_tag::any);
  };
  dnnl::primitive_attr attributes = onednn::own_scratchpad();
  if (accumulate) {
    dnnl::post_ops add;
    add.append_sum();
    attributes.set_post_ops(add);
  }
  const dnnl::matmul::primitive_desc product(onednn::engine(), rounded(left), rounded(right), added,
                                             to, attributes);
  std::vector<Operand> operands{Operand::input(DNNL_ARG_SRC, left, product.src_desc(),
                                               left_operand_move(left, product.src_desc())),
                                Operand::input(DNNL_ARG_WEIGHTS, right, product.weights_desc(),
                                               right_operand_move(right, product.weights_desc())),
                                Operand::output(DNNL_ARG_DST, to, product.dst_desc())};
  if (bias.defined()) operands.push_back(Operand::input(DNNL_ARG_BIAS, added, added));
  return onednn::Plan(dnnl::matmul(product), product.scratchpad_desc(), std::move(operands));
}

onednn::Plans& plans = *new onednn::Plans;  // never destroyed, like the engine

}  // namespace

void multiply_bfloat16(const Array& a, const Array& b, const Array& c, const Epilogue& epilogue,
                       PackedWeightCache* cache) {
  if (simd::has_tiles()) return multiply_on_tiles(a, b, c, epilogue, cache);
  const auto& [bias, accumulate] = epilogue;
  const Matrix left = as_matrix(a), right = as_matrix(b);
  const Array row = bias.defined() ? contiguous(bias) : bias;
  const Sizes size = sizes_of(a, c);
  const std::int64_t each = size.m * size.n, count = c.size() / each;
  const auto multiply = [&](std::int64_t begin, std::int64_t end) {
    const auto dtype_of = [](const Array& x) {
      return x.defined() ? static_cast<std::int64_t>(x.dtype()) : -1;
    };
    const auto plan =
        plans.get({size.m, size.n, size.k, left.transposed, left.leading, right.transposed,
                   right.leading, dtype_of(a), dtype_of(b), dtype_of(row), dtype_of(c), accumulate},
                  [&] { return bfloat16_plan(left, right, row, c, size, accumulate); });
    for (std::int64_t i = begin; i < end; ++i) {
      std::array<void*, 4> data{left.data(i), right.data(i), c.data() + i * each * c.itemsize()};
      if (row.defined()) data[3] = row.data();
      plan->run(data);
    }
  };
  if (!shares_out_pairs(count, each * size.k)) return multiply(0, count);
  parallel_for(count, each * size.k, [&](std::int64_t begin, std::int64_t end) {
    const SingleThread alone;
    multiply(begin, end);
  });
}

Bfloat16Split::Bfloat16Split(const Array& x) : high(cast(x, Dtype::bfloat16)) {
  low = cast(apply("bf16x3", Binary::subtract, x, high), Dtype::bfloat16);
}

void multiply_bf16x3(const Array& a, const Array& b, const Array& c, bool accumulate) {
  if (simd::has_tiles()) return multiply_bf16x3_on_tiles(a, b, c, accumulate);
  const Bfloat16Split a_split(a), b_split(b);
  multiply_bfloat16(a_split.low, b_split.high, c, {{}, accumulate});
  multiply_bfloat16(a_split.high, b_split.low, c, {{}, true});
  multiply_bfloat16(a_split.high, b_split.high, c, {{}, true});
}

}  // namespace renga
