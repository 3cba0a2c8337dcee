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
template <class Operand, std::size_t... N>
std::array<Operand, (N + ...)> joined(const std::array<Operand, N>&... groups) {
  std::array<Operand, (N + ...)> all;
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

// The n gates of x, in blocks along axis 1, with an axis of their own in front.
inline Array gates_of(const Array& x, int n) {
  return transpose_view(reshape_view(x, {x.shape(0), n, x.shape(1) / n}), {1, 0, 2});
}

// Contiguous rows, so many bytes apart.
struct UnitRows {
  std::byte* data;
  std::int64_t step;
};

// The first n gates of `total` in blocks along the rows of x.
template <std::size_t n>
std::array<UnitRows, n> rows_of_gates(const Array& x, std::int64_t total) {
  std::array<UnitRows, n> gates;
  const std::int64_t bytes = x.shape(1) / total * x.itemsize();
  for (std::size_t k = 0; k < n; ++k) {
    gates[k] = {x.data() + static_cast<std::int64_t>(k) * bytes, x.strides()[0]};
  }
  return gates;
}
inline std::array<UnitRows, 1> rows_of_units(const Array& x) { return rows_of_gates<1>(x, 1); }

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

  static void lstm_rows(const Array& gates, const Array& hidden, const Array& c_prev,
                        const Array& activated, const Array& c, const Array& h) {
    if constexpr (requires { Map::maps_rows; }) {
      Map::map_rows(
          c,
          joined(rows_of_units(c), rows_of_units(h), rows_of_gates<4>(activated, 4),
                 rows_of_units(c_prev), rows_of_gates<4>(gates, 4), rows_of_gates<4>(hidden, 4)),
          cells::Lstm<true, true>{});
    } else {
      lstm(gates_of(gates, 4), gates_of(hidden, 4), c_prev, gates_of(activated, 4), c, h);
    }
  }

  static void lstm_rows_grad(const Array& activated, const Array& c_prev, const Array& gc,
                             const Array& gh, const Array& ggates, const Array& gc_prev) {
    if constexpr (requires { Map::maps_rows; }) {
      Map::map_rows(
          gc,
          joined(rows_of_units(gc_prev), rows_of_gates<4>(ggates, 4), rows_of_units(c_prev),
                 rows_of_gates<4>(activated, 4), rows_of_units(gc), rows_of_units(gh)),
          cells::LstmGrad{});
    } else {
      lstm_grad(gates_of(activated, 4), c_prev, gc, gh, gates_of(ggates, 4), gc_prev);
    }
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

  static constexpr RecurrentKernels table{lstm,           lstm_grad, lstm_rows,
                                          lstm_rows_grad, gru,       gru_grad};
};

}  // namespace renga
