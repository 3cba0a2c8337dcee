// Recurrent networks: the cell of an LSTM, and layers over whole sequences.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// Steps of cells. Gates are along axis 0 and otherwise have the state's shape; `hidden` is their
// contribution from the last output. Results may overwrite operands.
struct RecurrentKernels {
  // Gates a, i, f, o: c = tanh(a) sigmoid(i) + c_prev sigmoid(f), h = tanh(c) sigmoid(o). If they
  // are defined, `hidden` is added to `gates`, and the activated gates are written to `activated`.
  void (*lstm)(const Array& gates, const Array& hidden, const Array& c_prev, const Array& activated,
               const Array& c, const Array& h);
  // `ggates` is the gradient before activation.
  void (*lstm_grad)(const Array& activated, const Array& c_prev, const Array& gc, const Array& gh,
                    const Array& ggates, const Array& gc_prev);
  // These are lstm and lstm_grad for gates in blocks along the contiguous rows of matrices, as
  // layers have them.
  void (*lstm_rows)(const Array& gates, const Array& hidden, const Array& c_prev,
                    const Array& activated, const Array& c, const Array& h);
  void (*lstm_rows_grad)(const Array& activated, const Array& c_prev, const Array& gc,
                         const Array& gh, const Array& ggates, const Array& gc_prev);
  // Gates r, z, a: a = tanh(input + r hidden), h = a + z (h_prev - a). `saved` is r, z, a and the a
  // part of `hidden`.
  void (*gru)(const Array& input, const Array& hidden, const Array& h_prev, const Array& saved,
              const Array& h);
  void (*gru_grad)(const Array& saved, const Array& h_prev, const Array& gh, const Array& ginput,
                   const Array& ghidden, const Array& gh_prev);
};
extern KernelTable<RecurrentKernels> recurrent_kernels;

// The gates a, i, f, o alternate along axis 1 of x, to which `hidden` is added (it may broadcast).
// Samples that x no longer has keep their cells.
std::tuple<Variable, Variable> lstm(const Variable& c_prev, const Variable& x,
                                    const std::optional<Variable>& hidden = {});

// A layer over the steps of sequences sorted by length, longest first. Step t has lengths[t]
// sequences; its rows of x, the projected inputs, follow those of step t - 1. The layer adds the
// last output times W, whose rows are gates like x's columns. Returns the outputs of all steps and
// the last states.
using Lengths = std::vector<std::int64_t>;
std::tuple<Variable, Variable, Variable> lstm_layer(const Variable& x, const Variable& h,
                                                    const Variable& c, const Variable& w,
                                                    const Lengths& lengths, bool backwards = false);
std::tuple<Variable, Variable> gru_layer(const Variable& x, const Variable& h, const Variable& w,
                                         const Variable& b, const Lengths& lengths,
                                         bool backwards = false);
// `activation` is "tanh" or "relu".
std::tuple<Variable, Variable> rnn_layer(const Variable& x, const Variable& h, const Variable& w,
                                         const Lengths& lengths, bool backwards = false,
                                         const std::string& activation = "tanh");

template <class Visit>
void list_recurrent_ops(Visit&& visit) {
  constexpr Traits cell{.locality = Locality::batchwise, .flops = {.per_output = 18}};
  const auto layer = [](int flops) {
    return Traits{.flops = {.per_output = flops, .products = Products::per_input}};
  };
  const Default backwards{"backwards", false};
  visit(Op{"lstm", "(B, C, ...), (N, 4C, ...), (N, 4C, ...) -> (B, C, ...), (N, C, ...)",
           "One step of long short-term memory: cell and output, with a, i, f, o alternating in "
           "x + hidden.",
           cell},
        &lstm, Arg{"c_prev"}, Arg{"x"}, Default<std::optional<Variable>>{"hidden", std::nullopt});
  visit(Op{"lstm_layer", "(rows, 4N), (B, N), (B, N), (4N, N) -> (rows, N), (B, N), (B, N)",
           "LSTM over sorted sequences: outputs, last output, last cell; gates a, i, f, o.",
           layer(18)},
        &lstm_layer, Arg{"x"}, Arg{"h"}, Arg{"c"}, Arg{"W"}, Arg{"lengths"}, backwards);
  visit(Op{"gru_layer", "(rows, 3N), (B, N), (3N, N), (3N,) -> (rows, N), (B, N)",
           "Gated recurrent units over sorted sequences: outputs, last output; gates r, z, a.",
           layer(17)},
        &gru_layer, Arg{"x"}, Arg{"h"}, Arg{"W"}, Arg{"b"}, Arg{"lengths"}, backwards);
  visit(Op{"rnn_layer", "(rows, N), (B, N), (N, N) -> (rows, N), (B, N)",
           "h = activation(x + W h) over sorted sequences: outputs, last output.", layer(1)},
        &rnn_layer, Arg{"x"}, Arg{"h"}, Arg{"W"}, Arg{"lengths"}, backwards,
        Default{"activation", std::string("tanh")});
}

}  // namespace renga
