// Convolution's three kernels against the sum that defines them, in float64.
#include "ops/convolution/convolution.h"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "autograd/backward.h"
#include "tensor/views.h"

namespace renga {
namespace {

// A row-major array of doubles with four axes, and the sum that defines a convolution of it.
struct Tensor {
  std::array<std::int64_t, 4> shape;
  std::vector<double> values;

  explicit Tensor(const Shape& s) : shape{s[0], s[1], s[2], s[3]} {
    values.assign(static_cast<std::size_t>(s.product()), 0.0);
  }
  double& at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return values[static_cast<std::size_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d)];
  }
};

Tensor tensor_of(const Array& x) {
  Tensor t(x.shape());
  const Array wide = contiguous(cast(x, Dtype::float64));
  std::copy_n(wide.as<double>(), wide.size(), t.values.begin());
  return t;
}

// Calls visit(x element, W element, y element) for each product of the sum.
template <class Visit>
void each_product(Tensor& x, Tensor& W, Tensor& y, const Window& w, const Visit& visit) {
  const std::int64_t per_group = y.shape[1] / w.groups;
  for (std::int64_t n = 0; n < y.shape[0]; ++n)
    for (std::int64_t o = 0; o < y.shape[1]; ++o)
      for (std::int64_t r = 0; r < y.shape[2]; ++r)
        for (std::int64_t c = 0; c < y.shape[3]; ++c)
          for (std::int64_t i = 0; i < W.shape[1]; ++i)
            for (std::int64_t kr = 0; kr < W.shape[2]; ++kr)
              for (std::int64_t kc = 0; kc < W.shape[3]; ++kc) {
                const std::int64_t row = r * w.stride[0] - w.pad[0] + kr * w.dilate[0];
                const std::int64_t column = c * w.stride[1] - w.pad[1] + kc * w.dilate[1];
                if (row < 0 || column < 0 || row >= x.shape[2] || column >= x.shape[3]) continue;
                visit(x.at(n, o / per_group * W.shape[1] + i, row, column), W.at(o, i, kr, kc),
                      y.at(n, o, r, c));
              }
}

Array random_array(const Shape& shape, Dtype dtype, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  const Array x = empty(shape, Dtype::float64);
  for (std::int64_t i = 0; i < x.size(); ++i) x.as<double>()[i] = draw(engine);
  return cast(x, dtype);
}

double largest_difference(const Array& a, Tensor b) {
  Tensor t = tensor_of(a);
  double most = 0;
  for (std::size_t i = 0; i < t.values.size(); ++i) {
    most = std::max(most, std::abs(t.values[i] - b.values[i]));
  }
  return most;
}

struct Case {
  Shape x, W;
  Window window;
  bool cover_all = false;
};

const Case cases[] = {
    {{2, 3, 7, 6}, {4, 3, 3, 3}, {{1, 1}, {1, 1}}},
    {{2, 16, 9, 8}, {32, 16, 3, 3}, {{2, 2}, {1, 1}}},
    {{2, 4, 9, 10}, {6, 2, 3, 2}, {{2, 3}, {2, 1}, {1, 2}, 2}, true},
    {{3, 8, 7, 7}, {8, 1, 3, 3}, {{1, 1}, {1, 1}, {2, 2}, 8}},
    {{2, 5, 6, 6}, {7, 5, 1, 1}, {{2, 2}, {0, 0}}},
    {{1, 2, 3, 3}, {2, 2, 2, 2}, {{1, 1}, {3, 3}}},
};

void check_case(const Case& c, Dtype dtype, double tolerance) {
  const Array x = random_array(c.x, dtype, 1), W = random_array(c.W, dtype, 2);
  const Variable vx(x, true), vW(W, true);
  const Variable y = convolution_2d(vx, vW, {}, c.window, c.cover_all);
  const Array gy = random_array(y.shape(), dtype, 3);

  Tensor tx = tensor_of(x), tW = tensor_of(W), ty(y.shape());
  each_product(tx, tW, ty, c.window, [](double a, double w, double& sum) { sum += a * w; });
  CHECK(largest_difference(y.array(), ty) < tolerance);

  const Variable start(gy);
  const auto grads = grad({&y, 1}, std::array{vx, vW}, {&start, 1}, {}, {});
  Tensor tgy = tensor_of(gy), tgx(c.x), tgW(c.W);
  each_product(tgx, tW, tgy, c.window, [](double& sum, double w, double g) { sum += w * g; });
  each_product(tx, tgW, tgy, c.window, [](double a, double& sum, double g) { sum += a * g; });
  CHECK(largest_difference(grads[0].array(), tgx) < tolerance);
  CHECK(largest_difference(grads[1].array(), tgW) < tolerance);
}

}  // namespace

TEST_CASE("convolution and its gradients are the sums that define them") {
  for (const Case& c : cases) {
    CAPTURE(c.W);
    check_case(c, Dtype::float64, 1e-12);
    check_case(c, Dtype::float32, 1e-4);
    check_case(c, Dtype::bfloat16, 0.3);
    check_case(c, Dtype::float16, 0.05);
  }
}

TEST_CASE("convolution reads any strides and keeps channels last") {
  const Array x = random_array({2, 7, 6, 3}, Dtype::float32, 1);
  const Array image = slice_view(transpose_view(x, {0, 3, 1, 2}), 2, 6, 7, -1);
  const Variable W(random_array({4, 3, 3, 3}, Dtype::float32, 2));
  const Variable y = convolution_2d(Variable(image), W);
  const Variable plain = convolution_2d(Variable(contiguous(image)), W);
  CHECK(largest_difference(y.array(), tensor_of(plain.array())) < 1e-6);
  CHECK(memory_order(y.array()) == Axes{0, 2, 3, 1});
}

TEST_CASE("deconvolution is the transpose of convolution, bias added") {
  const Window window{{2, 3}, {1, 0}, {1, 1}, 2};
  const Array W = random_array({4, 3, 3, 2}, Dtype::float64, 1);
  const Array x = random_array({2, 4, 4, 3}, Dtype::float64, 2);
  const Array b = random_array({6}, Dtype::float64, 3);
  const Variable y = deconvolution_2d(Variable(x), Variable(W), Variable(b), window, Dims{8, 9});
  Tensor tx = tensor_of(x), tW = tensor_of(W), ty(y.shape());
  each_product(ty, tW, tx, window, [](double& sum, double w, double a) { sum += a * w; });
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t c = 0; c < 6; ++c)
      for (std::int64_t i = 0; i < 72; ++i) ty.at(n, c, i / 9, i % 9) += b.as<double>()[c];
  CHECK(largest_difference(y.array(), ty) < 1e-12);
}

TEST_CASE("convolution of no images") {
  const Variable x(empty({0, 3, 5, 5}, Dtype::float32), true);
  const Variable W(random_array({4, 3, 3, 3}, Dtype::float32, 2), true);
  const Variable y = convolution_2d(x, W);
  CHECK(y.shape() == Shape{0, 4, 3, 3});
  const Variable start(y.array());
  const auto grads = grad({&y, 1}, std::array{W}, {&start, 1}, {}, {});
  CHECK(largest_difference(grads[0].array(), Tensor(W.shape())) == 0);
}

TEST_CASE("convolution refuses operands that do not fit") {
  const Variable x(zeros({1, 3, 5, 5}, Dtype::float32));
  const auto W = [](const Shape& shape) { return Variable(zeros(shape, Dtype::float32)); };
  CHECK_THROWS_AS(convolution_2d(x, W({4, 2, 3, 3})), InvalidType);
  CHECK_THROWS_AS(convolution_2d(x, W({4, 3, 7, 7})), InvalidType);
  CHECK_THROWS_AS(convolution_2d(x, W({4, 3, 3, 3}), W({3})), InvalidType);
  CHECK_THROWS_AS(convolution_2d(x, W({4, 3, 3, 3}), {}, {{0, 1}}), std::invalid_argument);
  CHECK_THROWS_AS(deconvolution_2d(x, W({3, 4, 3, 3}), {}, {{3, 3}}, Dims{20, 15}), InvalidType);
}

}  // namespace renga
