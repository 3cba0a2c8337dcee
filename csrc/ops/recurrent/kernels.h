// The kernels of a device from its `map_units`: map_units(operands, cell) calls the cell for every
// unit, with the operands' elements, results first.
#pragma once

#include <array>

#include "ops/recurrent/cells.h"
#include "ops/recurrent/recurrent.h"
#include "tensor/views.h"

namespace renga {

inline Array gate(const Array& gates, int k) { return select_view(gates, 0, k); }

template <class Map>
struct CellKernels {
  static void lstm(const Array& gates, const Array& hidden, const Array& c_prev,
                   const Array& active, const Array& c, const Array& h) {
    if (!hidden.defined()) {
      const std::array<Array, 7> operands{
          c, h, c_prev, gate(gates, 0), gate(gates, 1), gate(gates, 2), gate(gates, 3)};
      return Map::map_units(operands, cells::Lstm{});
    }
    const std::array<Array, 15> operands{c,
                                         h,
                                         gate(active, 0),
                                         gate(active, 1),
                                         gate(active, 2),
                                         gate(active, 3),
                                         c_prev,
                                         gate(gates, 0),
                                         gate(gates, 1),
                                         gate(gates, 2),
                                         gate(gates, 3),
                                         gate(hidden, 0),
                                         gate(hidden, 1),
                                         gate(hidden, 2),
                                         gate(hidden, 3)};
    Map::map_units(operands, cells::LstmStep{});
  }

  static void lstm_grad(const Array& gates, bool active, const Array& c_prev, const Array& gc,
                        const Array& gh, const Array& ggates, const Array& gc_prev) {
    const std::array<Array, 12> operands{gc_prev,
                                         gate(ggates, 0),
                                         gate(ggates, 1),
                                         gate(ggates, 2),
                                         gate(ggates, 3),
                                         c_prev,
                                         gate(gates, 0),
                                         gate(gates, 1),
                                         gate(gates, 2),
                                         gate(gates, 3),
                                         gc,
                                         gh};
    if (active) return Map::map_units(operands, cells::LstmGrad<true>{});
    Map::map_units(operands, cells::LstmGrad<false>{});
  }

  static void gru(const Array& input, const Array& hidden, const Array& h_prev, const Array& saved,
                  const Array& h) {
    const std::array<Array, 12> operands{h,
                                         gate(saved, 0),
                                         gate(saved, 1),
                                         gate(saved, 2),
                                         gate(saved, 3),
                                         h_prev,
                                         gate(input, 0),
                                         gate(input, 1),
                                         gate(input, 2),
                                         gate(hidden, 0),
                                         gate(hidden, 1),
                                         gate(hidden, 2)};
    Map::map_units(operands, cells::Gru{});
  }

  static void gru_grad(const Array& saved, const Array& h_prev, const Array& gh,
                       const Array& ginput, const Array& ghidden, const Array& gh_prev) {
    const std::array<Array, 13> operands{gh_prev,
                                         gate(ginput, 0),
                                         gate(ginput, 1),
                                         gate(ginput, 2),
                                         gate(ghidden, 0),
                                         gate(ghidden, 1),
                                         gate(ghidden, 2),
                                         h_prev,
                                         gate(saved, 0),
                                         gate(saved, 1),
                                         gate(saved, 2),
                                         gate(saved, 3),
                                         gh};
    Map::map_units(operands, cells::GruGrad{});
  }

  static constexpr RecurrentKernels table{lstm, lstm_grad, gru, gru_grad};
};

}  // namespace renga
