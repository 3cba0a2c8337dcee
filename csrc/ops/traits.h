// Traits are what is known of an operation without running it: for planners, profilers and
// exporters.
#pragma once

#include <cstdint>
#include <optional>

namespace renga {

// Which elements of the operands an element of the results is computed from. Axis 0 is that of
// samples, axis 1 that of channels. Slices of the operands give a slice of the results.
enum class Locality : std::uint8_t {
  none,         // any elements
  pointwise,    // those at its position; results have the shape to which the operands broadcast
  planewise,    // those of its sample and channel
  channelwise,  // those of its channel, if `axis` is not given
  batchwise,    // those of its sample
  along_axis,   // those at its position along all axes but those that `axis` names
};

constexpr bool is_channelwise(Locality locality) {
  return locality == Locality::pointwise || locality == Locality::planewise ||
         locality == Locality::channelwise;
}
constexpr bool is_batchwise(Locality locality) {
  return locality == Locality::pointwise || locality == Locality::planewise ||
         locality == Locality::batchwise;
}

// Products says how many products of two numbers are summed.
enum class Products : std::uint8_t {
  none,
  matmul,       // m k n for each pair of matrices
  per_output,   // the size of W[0] for each element of the result
  per_input,    // the size of W[0] for each element of the first operand
  weight_grad,  // the size of gW[0], of the result, for each element of the first operand
  attention,    // queries times keys, and these weights times values
};

// The floating-point operations of an operation's formula, in all the sum of these. An arithmetic
// operation, a comparison and an elementary function (exp, sin, ...) count as one each. What is
// done once for a sum (adding a bias, dividing for a mean) and random numbers are not counted.
struct Flops {
  int per_output = 0;  // for each element of the first result
  int per_input = 0;   // for each element of the first operand
  int per_window = 0;  // for each element of the window, for each element of the first result
  Products products = Products::none;  // each counts as two, with its addition
};

struct Traits {
  Locality locality = Locality::none;
  // The number of operands of which `locality` speaks, if not all. The others are parameters.
  std::optional<int> inputs = {};
  Flops flops = {};
  // The operator of ONNX with these operands and no attributes.
  const char* onnx = nullptr;
};

// The traits of a pointwise operation with so many operations for each element of the result.
constexpr Traits pointwise(int flops, const char* onnx = nullptr) {
  return {.locality = Locality::pointwise, .flops = {.per_output = flops}, .onnx = onnx};
}
// The traits of an operation along an axis with so many operations for each element of its operand.
constexpr Traits along_axis(int flops = 0) {
  return {.locality = Locality::along_axis, .flops = {.per_input = flops}};
}
// The traits of a layer that sums products of each sample with the same weights.
constexpr Traits weighted(Products products) {
  return {.locality = Locality::batchwise, .inputs = 1, .flops = {.products = products}};
}

}  // namespace renga
