// A recurrent layer over whole sequences, for any cell.
#pragma once

#include <span>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// A cell as layers see it. The first of its states is the output h. The gates of a step are
// computed from `input`, the projected inputs (gates * N columns), and `hidden`, h times W plus
// bias.
struct Cell {
  const char* op;    // the layer's operation
  const char* name;  // the name of its node in the graph
  int gates;         // columns of `input` and `hidden`, in N
  int saved;         // columns that the backward pass needs of a step, in N
  // Whether `hidden` is not only added to `input`. Then it has gradients of its own, and h also
  // enters the next h directly.
  bool separate_hidden;
  void (*step)(const Array& input, const Array& hidden, std::span<const Array> before,
               const Array& saved, std::span<const Array> after);
  // Replaces the gradients of the states after the step by those before it, without the
  // contribution through `hidden`. `ghidden` is `ginput` unless separate_hidden.
  void (*step_backward)(const Array& saved, std::span<const Array> before,
                        std::span<const Array> gstates, const Array& ginput, const Array& ghidden);
  // Computes the same step with operations that are recorded.
  std::vector<Variable> (*compose)(const Variable& input, const Variable& hidden,
                                   std::span<const Variable> before);
};

// Returns the outputs of all steps and the last states. `operands` are the projected inputs, the
// initial states, the weights W from h to the gates and, for some cells, their bias.
std::vector<Variable> recurrent_layer(const Cell& cell, const std::vector<Variable>& operands,
                                      int n_states, const std::vector<std::int64_t>& lengths,
                                      bool backwards);

}  // namespace renga
