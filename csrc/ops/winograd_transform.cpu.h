// The transforms of Winograd's convolutions. In one dimension, the outputs of a tile are products
// of polynomials, taken at some points and interpolated; in two dimensions rows are transformed and
// then columns. F(4x4, 3x3) makes 16 outputs from 36 multiplications in place of 144.
//
// Points lie at +-a, +-b and infinity, and at 0 where their number is even. With the usual 0, +-1,
// +-2 and infinity the float32 result is twice as far from the exact one as with these, which were
// the best of those tried; all constants but the reciprocals are exact.
//
// Sources: Winograd, Arithmetic Complexity of Computations (1980); Lavin and Gray, Fast Algorithms
// for Convolutional Neural Networks (2016); on points: Barabasz et al., Error Analysis and
// Improving the Accuracy of Winograd Convolution (2020).
#pragma once

#include <array>

namespace renga::winograd {

// A scheme has five transforms, each a matrix of `to` rows and `from` columns. Those of gradients
// are transposes: OutputGrad of Output, FilterGrad of Filter. A tile's input starts at its first
// output less the padding, of which the first `skipped` elements are known to be 0.

// F(4, 3): points 0, +-a, +-b, infinity.
struct ThreeTaps {
  static constexpr int tile = 4, taps = 3, points = 6, skipped = 0;
  static constexpr float a = 0.625f, b = 1.5f, aa = a * a, bb = b * b;
  // 1 / (p - q) over all other points q, for each point p.
  static constexpr float at_zero = 1 / (aa * bb), at_a = 1 / (2 * aa * (aa - bb)),
                         at_b = 1 / (2 * bb * (bb - aa));

  struct Input {
    static constexpr int from = points, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& d) {
      const V even_a = fnma(V(bb), d[2], d[4]), odd_a = V(a) * fnma(V(bb), d[1], d[3]);
      const V even_b = fnma(V(aa), d[2], d[4]), odd_b = V(b) * fnma(V(aa), d[1], d[3]);
      return {fma(V(aa * bb), d[0], fnma(V(aa + bb), d[2], d[4])),
              even_a + odd_a,
              even_a - odd_a,
              even_b + odd_b,
              even_b - odd_b,
              fma(V(aa * bb), d[1], fnma(V(aa + bb), d[3], d[5]))};
    }
  };

  struct Filter {
    static constexpr int from = taps, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& w) {
      const V even_a = V(at_a) * fma(V(aa), w[2], w[0]), odd_a = V(at_a * a) * w[1];
      const V even_b = V(at_b) * fma(V(bb), w[2], w[0]), odd_b = V(at_b * b) * w[1];
      return {V(at_zero) * w[0], even_a + odd_a, even_a - odd_a,
              even_b + odd_b,    even_b - odd_b, w[2]};
    }
  };

  struct Output {
    static constexpr int from = points, to = tile;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& m) {
      const V even_a = m[1] + m[2], odd_a = V(a) * (m[1] - m[2]);
      const V even_b = m[3] + m[4], odd_b = V(b) * (m[3] - m[4]);
      return {m[0] + (even_a + even_b), odd_a + odd_b, fma(V(aa), even_a, V(bb) * even_b),
              fma(V(aa), odd_a, fma(V(bb), odd_b, m[5]))};
    }
  };

  struct OutputGrad {
    static constexpr int from = tile, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& gy) {
      const V even_a = fma(V(aa), gy[2], gy[0]), odd_a = V(a) * fma(V(aa), gy[3], gy[1]);
      const V even_b = fma(V(bb), gy[2], gy[0]), odd_b = V(b) * fma(V(bb), gy[3], gy[1]);
      return {gy[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, gy[3]};
    }
  };

  struct FilterGrad {
    static constexpr int from = points, to = taps;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& g) {
      const V even_a = V(at_a) * (g[1] + g[2]), odd_a = V(at_a * a) * (g[1] - g[2]);
      const V even_b = V(at_b) * (g[3] + g[4]), odd_b = V(at_b * b) * (g[3] - g[4]);
      return {fma(V(at_zero), g[0], even_a + even_b), odd_a + odd_b,
              fma(V(aa), even_a, fma(V(bb), even_b, g[5]))};
    }
  };
};

// F(4, 2): points +-a, +-b, infinity.
struct TwoTaps {
  static constexpr int tile = 4, taps = 2, points = 5, skipped = 0;
  static constexpr float a = 0.375f, b = 1.25f, aa = a * a, bb = b * b;
  static constexpr float at_a = 1 / (2 * a * (aa - bb)), at_b = 1 / (2 * b * (bb - aa));

  struct Input {
    static constexpr int from = points, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& d) {
      const V even_a = fnma(V(bb), d[1], d[3]), odd_a = V(a) * fnma(V(bb), d[0], d[2]);
      const V even_b = fnma(V(aa), d[1], d[3]), odd_b = V(b) * fnma(V(aa), d[0], d[2]);
      return {even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b,
              fma(V(aa * bb), d[0], fnma(V(aa + bb), d[2], d[4]))};
    }
  };

  struct Filter {
    static constexpr int from = taps, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& w) {
      const V even_a = V(at_a * a) * w[1], odd_a = V(at_a) * w[0];
      const V even_b = V(at_b * b) * w[1], odd_b = V(at_b) * w[0];
      return {even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, w[1]};
    }
  };

  struct Output {
    static constexpr int from = points, to = tile;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& m) {
      const V even_a = m[0] + m[1], odd_a = V(a) * (m[0] - m[1]);
      const V even_b = m[2] + m[3], odd_b = V(b) * (m[2] - m[3]);
      return {even_a + even_b, odd_a + odd_b, fma(V(aa), even_a, V(bb) * even_b),
              fma(V(aa), odd_a, fma(V(bb), odd_b, m[4]))};
    }
  };

  struct OutputGrad {
    static constexpr int from = tile, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& gy) {
      const V even_a = fma(V(aa), gy[2], gy[0]), odd_a = V(a) * fma(V(aa), gy[3], gy[1]);
      const V even_b = fma(V(bb), gy[2], gy[0]), odd_b = V(b) * fma(V(bb), gy[3], gy[1]);
      return {even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, gy[3]};
    }
  };

  struct FilterGrad {
    static constexpr int from = points, to = taps;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& g) {
      return {fma(V(at_a), g[0] - g[1], V(at_b) * (g[2] - g[3])),
              fma(V(at_a * a), g[0] + g[1], fma(V(at_b * b), g[2] + g[3], g[4]))};
    }
  };
};

// 3 taps on an image of 2 pixels padded by 1: all but the two pixels is 0, and three
// multiplications do, y0 = w1 x0 + w2 x1 and y1 = w0 x0 + w1 x1 having w1 (x0 + x1) in common.
struct ThreeTapsOnTwo {
  static constexpr int tile = 2, taps = 3, points = 3, skipped = 1;

  struct Input {
    static constexpr int from = 2, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& d) {
      return {d[0] + d[1], d[1], d[0]};
    }
  };

  struct Filter {
    static constexpr int from = taps, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& w) {
      return {w[1], w[2] - w[1], w[0] - w[1]};
    }
  };

  struct Output {
    static constexpr int from = points, to = tile;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& m) {
      return {m[0] + m[1], m[0] + m[2]};
    }
  };

  struct OutputGrad {
    static constexpr int from = tile, to = points;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& gy) {
      return {gy[0] + gy[1], gy[0], gy[1]};
    }
  };

  struct FilterGrad {
    static constexpr int from = points, to = taps;
    template <class V>
    static std::array<V, to> apply(const std::array<V, from>& g) {
      return {g[2], g[0] - g[1] - g[2], g[1]};
    }
  };
};

// Rows, then columns: load(i, j) gives the square's elements and store(i, j, v) takes the result's.
template <class Transform, class V, class Load, class Store>
void transform_square(const Load& load, const Store& store) {
  std::array<std::array<V, Transform::from>, Transform::to> half;
  for (int j = 0; j < Transform::from; ++j) {
    std::array<V, Transform::from> column;
    for (int i = 0; i < Transform::from; ++i) column[i] = load(i, j);
    const std::array<V, Transform::to> image = Transform::apply(column);
    for (int i = 0; i < Transform::to; ++i) half[i][j] = image[i];
  }
  for (int i = 0; i < Transform::to; ++i) {
    const std::array<V, Transform::to> row = Transform::apply(half[i]);
    for (int j = 0; j < Transform::to; ++j) store(i, j, row[j]);
  }
}

}  // namespace renga::winograd
