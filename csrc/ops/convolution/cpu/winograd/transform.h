// Winograd transforms along one axis. The outputs of a tile are coefficients of a product of
// polynomials, which is evaluated at some points and interpolated. Columns are transformed first,
// then rows. F(4, 3) along both axes computes 16 outputs with 36 multiplications instead of 144.
//
// The points are +-a, +-b and infinity, and 0 if their number is even. They were the best of those
// tried: with the usual 0, +-1, +-2 and infinity the float32 error is twice as large. All constants
// but the reciprocals are exact.
//
// Sources: Winograd, Arithmetic Complexity of Computations (1980); Lavin and Gray, Fast Algorithms
// for Convolutional Neural Networks (2016); on points: Barabasz et al., Error Analysis and
// Improving the Accuracy of Winograd Convolution (2020).
#pragma once

namespace renga::convolution::winograd {

// Each transform is a matrix of `to` rows and `from` columns, applied by apply(in, out) to arrays
// of vectors V. Those of gradients are transposes: OutputGrad of Output, WeightGrad of Weight.
// `extent` is the kernel's. A tile's input starts at its first output minus the padding; its first
// `skipped` elements are known to be 0. Everything is inlined, to be compiled for the instruction
// set of its caller.

// The values at a, -a, b and -b, from their even and odd parts.
template <class V>
[[gnu::always_inline]] inline void put_pairs(const V& even_a, const V& odd_a, const V& even_b,
                                             const V& odd_b, V* u) {
  u[0] = even_a + odd_a;
  u[1] = even_a - odd_a;
  u[2] = even_b + odd_b;
  u[3] = even_b - odd_b;
}

// What F(4, 3) and F(4, 2) have in common: the points +-a, +-b and infinity, after 0 if their
// number is even. Pairs has a and b.
template <class Pairs, int kernel_extent>
struct FourOf : Pairs {
  using Pairs::a, Pairs::b;
  static constexpr int tile = 4, extent = kernel_extent, points = tile + extent - 1, skipped = 0;
  static constexpr float aa = a * a, bb = b * b;
  static constexpr bool has_zero = points % 2 == 0;
  static constexpr int first = has_zero ? 1 : 0;  // of the pairs

  struct Input {
    static constexpr int from = points, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&d)[from], V (&u)[to]) {
      constexpr int i = first;
      const V even_a = d[i + 3] - bb * d[i + 1], odd_a = a * (d[i + 2] - bb * d[i]);
      const V even_b = d[i + 3] - aa * d[i + 1], odd_b = b * (d[i + 2] - aa * d[i]);
      if constexpr (has_zero) u[0] = d[4] - (aa + bb) * d[2] + (aa * bb) * d[0];
      put_pairs(even_a, odd_a, even_b, odd_b, u + first);
      u[to - 1] = d[i + 4] - (aa + bb) * d[i + 2] + (aa * bb) * d[i];
    }
  };

  struct Output {
    static constexpr int from = points, to = tile;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&m)[from], V (&y)[to]) {
      constexpr int i = first;
      const V even_a = m[i] + m[i + 1], odd_a = a * (m[i] - m[i + 1]);
      const V even_b = m[i + 2] + m[i + 3], odd_b = b * (m[i + 2] - m[i + 3]);
      y[0] = even_a + even_b;
      if constexpr (has_zero) y[0] = m[0] + y[0];
      y[1] = odd_a + odd_b;
      y[2] = aa * even_a + bb * even_b;
      y[3] = aa * odd_a + (bb * odd_b + m[from - 1]);
    }
  };

  struct OutputGrad {
    static constexpr int from = tile, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&g)[from], V (&u)[to]) {
      const V even_a = g[0] + aa * g[2], odd_a = a * (g[1] + aa * g[3]);
      const V even_b = g[0] + bb * g[2], odd_b = b * (g[1] + bb * g[3]);
      if constexpr (has_zero) u[0] = g[0];
      put_pairs(even_a, odd_a, even_b, odd_b, u + first);
      u[to - 1] = g[3];
    }
  };
};

struct PairsOfThree {
  static constexpr float a = 0.625f, b = 1.5f;
};
struct FourOfThree : FourOf<PairsOfThree, 3> {
  // 1 / (p - q) over all other points q, for each point p.
  static constexpr float at_zero = 1 / (aa * bb), at_a = 1 / (2 * aa * (aa - bb)),
                         at_b = 1 / (2 * bb * (bb - aa));

  struct Weight {
    static constexpr int from = extent, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&w)[from], V (&u)[to]) {
      const V even_a = at_a * (w[0] + aa * w[2]), odd_a = (at_a * a) * w[1];
      const V even_b = at_b * (w[0] + bb * w[2]), odd_b = (at_b * b) * w[1];
      u[0] = at_zero * w[0];
      put_pairs(even_a, odd_a, even_b, odd_b, u + first);
      u[5] = w[2];
    }
  };

  struct WeightGrad {
    static constexpr int from = points, to = extent;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&g)[from], V (&w)[to]) {
      const V even_a = at_a * (g[1] + g[2]), odd_a = (at_a * a) * (g[1] - g[2]);
      const V even_b = at_b * (g[3] + g[4]), odd_b = (at_b * b) * (g[3] - g[4]);
      w[0] = at_zero * g[0] + (even_a + even_b);
      w[1] = odd_a + odd_b;
      w[2] = aa * even_a + (bb * even_b + g[5]);
    }
  };
};

struct PairsOfTwo {
  static constexpr float a = 0.375f, b = 1.25f;
};
struct FourOfTwo : FourOf<PairsOfTwo, 2> {
  static constexpr float at_a = 1 / (2 * a * (aa - bb)), at_b = 1 / (2 * b * (bb - aa));

  struct Weight {
    static constexpr int from = extent, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&w)[from], V (&u)[to]) {
      const V even_a = (at_a * a) * w[1], odd_a = at_a * w[0];
      const V even_b = (at_b * b) * w[1], odd_b = at_b * w[0];
      put_pairs(even_a, odd_a, even_b, odd_b, u);
      u[4] = w[1];
    }
  };

  struct WeightGrad {
    static constexpr int from = points, to = extent;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&g)[from], V (&w)[to]) {
      w[0] = at_a * (g[0] - g[1]) + at_b * (g[2] - g[3]);
      w[1] = (at_a * a) * (g[0] + g[1]) + ((at_b * b) * (g[2] + g[3]) + g[4]);
    }
  };
};

// F(2, 3): points 0, +-1, infinity.
struct TwoOfThree {
  static constexpr int tile = 2, extent = 3, points = 4, skipped = 0;

  struct Input {
    static constexpr int from = points, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&d)[from], V (&u)[to]) {
      u[0] = d[0] - d[2];
      u[1] = d[1] + d[2];
      u[2] = d[2] - d[1];
      u[3] = d[3] - d[1];
    }
  };

  struct Weight {
    static constexpr int from = extent, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&w)[from], V (&u)[to]) {
      const V even = 0.5f * (w[0] + w[2]), odd = 0.5f * w[1];
      u[0] = w[0];
      u[1] = even + odd;
      u[2] = even - odd;
      u[3] = w[2];
    }
  };

  struct Output {
    static constexpr int from = points, to = tile;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&m)[from], V (&y)[to]) {
      y[0] = m[0] + (m[1] + m[2]);
      y[1] = m[1] - m[2] + m[3];
    }
  };

  struct OutputGrad {
    static constexpr int from = tile, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&g)[from], V (&u)[to]) {
      u[0] = g[0];
      u[1] = g[0] + g[1];
      u[2] = g[0] - g[1];
      u[3] = g[1];
    }
  };

  struct WeightGrad {
    static constexpr int from = points, to = extent;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&g)[from], V (&w)[to]) {
      const V even = 0.5f * (g[1] + g[2]), odd = 0.5f * (g[1] - g[2]);
      w[0] = g[0] + even;
      w[1] = odd;
      w[2] = even + g[3];
    }
  };
};

// A kernel of extent 3 on 2 pixels padded by 1. All but the two pixels are 0, and three
// multiplications suffice: y0 = w1 x0 + w2 x1 and y1 = w0 x0 + w1 x1 have w1 (x0 + x1) in common.
struct PairOfThree {
  static constexpr int tile = 2, extent = 3, points = 3, skipped = 1;

  struct Input {
    static constexpr int from = 2, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&d)[from], V (&u)[to]) {
      u[0] = d[0] + d[1];
      u[1] = d[1];
      u[2] = d[0];
    }
  };

  struct Weight {
    static constexpr int from = extent, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&w)[from], V (&u)[to]) {
      u[0] = w[1];
      u[1] = w[2] - w[1];
      u[2] = w[0] - w[1];
    }
  };

  struct Output {
    static constexpr int from = points, to = tile;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&m)[from], V (&y)[to]) {
      y[0] = m[0] + m[1];
      y[1] = m[0] + m[2];
    }
  };

  struct OutputGrad {
    static constexpr int from = tile, to = points;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&g)[from], V (&u)[to]) {
      u[0] = g[0] + g[1];
      u[1] = g[0];
      u[2] = g[1];
    }
  };

  struct WeightGrad {
    static constexpr int from = points, to = extent;
    template <class V>
    [[gnu::always_inline]] static void apply(const V (&g)[from], V (&w)[to]) {
      w[0] = g[2];
      w[1] = g[0] - g[1] - g[2];
      w[2] = g[1];
    }
  };
};

// A scheme for images: one down the rows and one across the columns. Schemes for fewer offsets take
// a part of a kernel of `kernel_extent` by `kernel_extent`.
template <class DownScheme, class AcrossScheme, int kernel_extent = DownScheme::extent>
struct Scheme {
  using Down = DownScheme;
  using Across = AcrossScheme;
  static_assert(Down::extent == Across::extent);
  static constexpr int extent = Down::extent, points = Down::points * Across::points;
  static constexpr int kernel_size = kernel_extent * kernel_extent;
  // Whether a part may have fewer offsets than the scheme takes.
  static constexpr bool has_gaps = kernel_extent % extent != 0;
};

// Transforms the columns and then the rows of a rectangle. load(i, j, v) reads its elements and
// store(i, j, v) writes the result's.
template <class Down, class Across, class V, class Load, class Store>
[[gnu::always_inline]] inline void transform_square(const Load& load, const Store& store) {
  V half[Down::to][Across::from];
#pragma GCC unroll 8
  for (int j = 0; j < Across::from; ++j) {
    V column[Down::from], image[Down::to];
#pragma GCC unroll 8
    for (int i = 0; i < Down::from; ++i) load(i, j, column[i]);
    Down::apply(column, image);
#pragma GCC unroll 8
    for (int i = 0; i < Down::to; ++i) half[i][j] = image[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < Down::to; ++i) {
    V row[Across::to];
    Across::apply(half[i], row);
#pragma GCC unroll 8
    for (int j = 0; j < Across::to; ++j) store(i, j, row[j]);
  }
}

}  // namespace renga::convolution::winograd
