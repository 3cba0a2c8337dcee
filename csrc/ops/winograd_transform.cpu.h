// The transforms of Winograd's convolution F(4x4, 3x3): in one dimension 4 outputs of a filter of 3
// taps are polynomials multiplied at 6 points, 0, +-a, +-b and infinity, and interpolated; in two
// dimensions rows are transformed and then columns, so that 36 multiplications make 16 outputs.
//
// With the usual a = 1, b = 2 the float32 result is twice as far from the exact one as with these,
// which were the best of those tried (relative error with 512 channels 6e-7 against 1.4e-6); all
// constants but the reciprocals are exact.
//
// Sources: Winograd, Arithmetic Complexity of Computations (1980); Lavin and Gray, Fast Algorithms
// for Convolutional Neural Networks (2016); on points: Barabasz et al., Error Analysis and
// Improving the Accuracy of Winograd Convolution (2020).
#pragma once

#include <array>

namespace renga::winograd {

inline constexpr int kTile = 4;    // outputs of a tile, in each direction
inline constexpr int kTaps = 3;    // of the filter
inline constexpr int kPoints = 6;  // also the inputs that a tile needs

inline constexpr float a = 0.625f, b = 1.5f;
inline constexpr float aa = a * a, bb = b * b;
// 1 / (p - q) over all other points q, for each point p.
inline constexpr float at_zero = 1 / (aa * bb), at_a = 1 / (2 * aa * (aa - bb)),
                       at_b = 1 / (2 * bb * (bb - aa));

// Each transform is a matrix; those of gradients are the transposes of the forward ones.
struct Input {
  static constexpr int from = kPoints, to = kPoints;
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
  static constexpr int from = kTaps, to = kPoints;
  template <class V>
  static std::array<V, to> apply(const std::array<V, from>& w) {
    const V even_a = V(at_a) * fma(V(aa), w[2], w[0]), odd_a = V(at_a * a) * w[1];
    const V even_b = V(at_b) * fma(V(bb), w[2], w[0]), odd_b = V(at_b * b) * w[1];
    return {V(at_zero) * w[0], even_a + odd_a, even_a - odd_a,
            even_b + odd_b,    even_b - odd_b, w[2]};
  }
};

struct Output {
  static constexpr int from = kPoints, to = kTile;
  template <class V>
  static std::array<V, to> apply(const std::array<V, from>& m) {
    const V even_a = m[1] + m[2], odd_a = V(a) * (m[1] - m[2]);
    const V even_b = m[3] + m[4], odd_b = V(b) * (m[3] - m[4]);
    return {m[0] + (even_a + even_b), odd_a + odd_b, fma(V(aa), even_a, V(bb) * even_b),
            fma(V(aa), odd_a, fma(V(bb), odd_b, m[5]))};
  }
};

// Output transposed: the gradient of a tile of outputs, at the points.
struct OutputGrad {
  static constexpr int from = kTile, to = kPoints;
  template <class V>
  static std::array<V, to> apply(const std::array<V, from>& gy) {
    const V even_a = fma(V(aa), gy[2], gy[0]), odd_a = V(a) * fma(V(aa), gy[3], gy[1]);
    const V even_b = fma(V(bb), gy[2], gy[0]), odd_b = V(b) * fma(V(bb), gy[3], gy[1]);
    return {gy[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, gy[3]};
  }
};

// Filter transposed: the gradient of the taps.
struct FilterGrad {
  static constexpr int from = kPoints, to = kTaps;
  template <class V>
  static std::array<V, to> apply(const std::array<V, from>& g) {
    const V even_a = V(at_a) * (g[1] + g[2]), odd_a = V(at_a * a) * (g[1] - g[2]);
    const V even_b = V(at_b) * (g[3] + g[4]), odd_b = V(at_b * b) * (g[3] - g[4]);
    return {fma(V(at_zero), g[0], even_a + even_b), odd_a + odd_b,
            fma(V(aa), even_a, fma(V(bb), even_b, g[5]))};
  }
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
