// The formulas of recurrent cells, for the kernels of all devices: V is a vector or a number.
// Cells read `in` and write `out`.
#pragma once

#include "ops/elementwise/maps.h"

namespace renga::cells {

// in: c_prev, the gates a, i, f, o and, if `adds`, what is added to them. out: c, h and, if
// `keeps`, the activated gates.
template <bool adds, bool keeps>
struct Lstm {
  static constexpr int inputs = adds ? 9 : 5, outputs = keeps ? 6 : 2;
  template <class V>
  RENGA_INLINE static V gate(const V* in, int k) {
    if constexpr (adds) {
      return in[1 + k] + in[5 + k];
    } else {
      return in[1 + k];
    }
  }
  template <class V>
  RENGA_INLINE void operator()(const V* in, V* out) const {
    using namespace maps;
    const V a = tanh(gate(in, 0)), i = logistic(gate(in, 1));
    const V f = logistic(gate(in, 2)), o = logistic(gate(in, 3));
    if constexpr (keeps) {
      out[2] = a;
      out[3] = i;
      out[4] = f;
      out[5] = o;
    }
    out[0] = a * i + f * in[0];
    out[1] = o * tanh(out[0]);
  }
};

// in: c_prev, the activated gates, gc and gh. out: gc_prev and the gradients of the gates before
// their activation.
struct LstmGrad {
  static constexpr int inputs = 7, outputs = 5;
  template <class V>
  RENGA_INLINE void operator()(const V* in, V* out) const {
    using namespace maps;
    const V one(1), c_prev = in[0], a = in[1], i = in[2], f = in[3], o = in[4], gh = in[6];
    const V y = tanh(V(a * i + f * c_prev));
    const V gc = in[5] + gh * o * (one - y * y);
    out[0] = gc * f;
    out[1] = gc * i * (one - a * a);
    out[2] = gc * a * i * (one - i);
    out[3] = gc * c_prev * f * (one - f);
    out[4] = gh * y * o * (one - o);
  }
};

// in: h_prev, the gates r, z, a of the input and of the last output. out: h, r, z, a and the a part
// of the last output.
struct Gru {
  static constexpr int inputs = 7, outputs = 5;
  template <class V>
  RENGA_INLINE void operator()(const V* in, V* out) const {
    using namespace maps;
    const V r = logistic(V(in[1] + in[4])), z = logistic(V(in[2] + in[5]));
    const V a = tanh(V(in[3] + r * in[6]));
    out[1] = r;
    out[2] = z;
    out[3] = a;
    out[4] = in[6];
    out[0] = a + z * (in[0] - a);
  }
};

// in: h_prev, the four saved by Gru, gh. out: gh_prev, and the gradients of the gates of the input
// and of the last output.
struct GruGrad {
  static constexpr int inputs = 6, outputs = 7;
  template <class V>
  RENGA_INLINE void operator()(const V* in, V* out) const {
    const V one(1), r = in[1], z = in[2], a = in[3], gh = in[5];
    const V ga = gh * (one - z) * (one - a * a);
    const V gr = ga * in[4] * r * (one - r);
    const V gz = gh * (in[0] - a) * z * (one - z);
    out[0] = gh * z;
    out[1] = out[4] = gr;
    out[2] = out[5] = gz;
    out[3] = ga;
    out[6] = ga * r;
  }
};

}  // namespace renga::cells
