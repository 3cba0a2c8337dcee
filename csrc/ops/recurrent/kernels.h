// The kernels of a device from its `map_units`: map_units(operands, cell) calls the cell for every
// unit, with the operands' elements, results first.
#pragma once

#include <algorithm>
#include <array>

#include "ops/recurrent/cells.h"
#include "ops/recurrent/recurrent.h"
#include "tensor/views.h"

namespace renga {

// The operands of a cell, one group after another.
template <std::size_t... N>
std::array<Array, (N + ...)> joined(const std::array<Array, N>&... groups) {
  std::array<Array, (N + ...)> all;
  auto to = all.begin();
  ((to = std::ranges::copy(groups, to).out), ...);
  return all;
}

// The first n gates of `gates`.
template <std::size_t n>
std::array<Array, n> gate_views(const Array& gates) {
  std::array<Array, n> parts;
  for (std::size_t k = 0; k < n; ++k) parts[k] = select_view(gates, 0, static_cast<int>(k));
  return parts;
}

template <class Map>
struct CellKernels {
  static void lstm(const Array& gates, const Array& hidden, const Array& c_prev,
                   const Array& activated, const Array& c, const Array& h) {
    const auto in = joined(std::array{c_prev}, gate_views<4>(gates));
    const std::array out{c, h};
    if (hidden.defined()) {
      const auto all = joined(in, gate_views<4>(hidden));
      if (!activated.defined()) return Map::map_units(joined(out, all), cells::Lstm<true, false>{});
      return Map::map_units(joined(out, gate_views<4>(activated), all), cells::Lstm<true, true>{});
    }
    if (!activated.defined()) return Map::map_units(joined(out, in), cells::Lstm<false, false>{});
    Map::map_units(joined(out, gate_views<4>(activated), in), cells::Lstm<false, true>{});
  }

  static void lstm_grad(const Array& activated, const Array& c_prev, const Array& gc,
                        const Array& gh, const Array& ggates, const Array& gc_prev) {
    Map::map_units(joined(std::array{gc_prev}, gate_views<4>(ggates), std::array{c_prev},
                          gate_views<4>(activated), std::array{gc, gh}),
                   cells::LstmGrad{});
  }

  static void gru(const Array& input, const Array& hidden, const Array& h_prev, const Array& saved,
                  const Array& h) {
    Map::map_units(joined(std::array{h}, gate_views<4>(saved), std::array{h_prev},
                          gate_views<3>(input), gate_views<3>(hidden)),
                   cells::Gru{});
  }

  static void gru_grad(const Array& saved, const Array& h_prev, const Array& gh,
                       const Array& ginput, const Array& ghidden, const Array& gh_prev) {
    Map::map_units(joined(std::array{gh_prev}, gate_views<3>(ginput), gate_views<3>(ghidden),
                          std::array{h_prev}, gate_views<4>(saved), std::array{gh}),
                   cells::GruGrad{});
  }

  static constexpr RecurrentKernels table{lstm, lstm_grad, gru, gru_grad};
};

}  // namespace renga
