// A recurrent layer over whole sequences, whatever its cell.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// What a layer knows of its cell. Of a step's states the first is the output h.
struct Cell {
  const char* op;    // the layer's name
  const char* name;  // that of its node in the graph
  int gates;         // each has N columns of `seen` and of `hidden`
  int kept;          // columns that the backward pass needs of a step, in N
  // Whether `hidden` enters otherwise than added to `seen`, and has gradients of its own; h then
  // goes into the next h directly, too.
  bool apart;
  void (*step)(const Array& seen, const Array& hidden, std::span<const Array> before,
               const Array& kept, std::span<const Array> after);
  // Turns gradients of the states after the step into those before it, but for what comes through
  // `hidden`. `ghidden` is `gseen` unless apart.
  void (*step_back)(const Array& kept, std::span<const Array> before,
                    std::span<const Array> gstates, const Array& gseen, const Array& ghidden);
  // The same step of operations that record themselves.
  std::vector<Variable> (*compose)(const Variable& seen, const Variable& hidden,
                                   std::span<const Variable> before);
};

// The gradients of compose(xs) as a part of the graph: for second derivatives of what was computed
// by other means. `gys` may be undefined.
using Compose = std::function<std::vector<Variable>(std::span<const Variable>)>;
std::vector<Variable> recorded_gradients(const Compose& compose, std::span<const Variable> xs,
                                         std::span<const Variable> gys);

// The outputs of all steps and the last states. `operands` are what the gates see of the inputs,
// the first states, the weights from the last output to the gates and, for some cells, their bias.
std::vector<Variable> recurrent_layer(const Cell& cell, const std::vector<Variable>& operands,
                                      int n_states, const std::vector<std::int64_t>& lengths,
                                      bool backwards);

}  // namespace renga
