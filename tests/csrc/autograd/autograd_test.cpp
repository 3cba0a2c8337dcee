#include <doctest/doctest.h>

#include <cmath>

#include "autograd/backward.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/matmul/matmul.h"
#include "ops/reduction/reduction.h"

using namespace renga;

namespace {

Variable leaf(double value) { return Variable(full({}, value, Dtype::float64), true); }

double value(const Variable& x) { return item(x.array()); }

Variable gradient(const Variable& y, const Variable& x, bool create_graph = false) {
  GradOptions options;
  options.create_graph = create_graph;
  return grad({&y, 1}, {&x, 1}, {}, {}, options)[0];
}

}  // namespace

TEST_CASE("derivatives of any order") {
  const Variable x = leaf(0.7);
  Variable y = sin(x);
  const double expected[] = {std::cos(0.7), -std::sin(0.7), -std::cos(0.7), std::sin(0.7)};
  for (double e : expected) {
    y = gradient(y, x, true);
    CHECK(value(y) == doctest::Approx(e));
  }
}

TEST_CASE("backward adds to leaves and leaves nothing in between") {
  const Variable x = leaf(3);
  const Variable y = multiply(x, x), z = add(y, x);
  backward({&z, 1}, {});
  CHECK(value(x.body()->grad) == 7);
  CHECK_FALSE(y.body()->grad.defined());
  backward({&z, 1}, {});
  CHECK(value(x.body()->grad) == 14);
  BackwardOptions keep;
  keep.retain_grad = true;
  backward({&z, 1}, keep);
  CHECK(value(y.body()->grad) == 1);
}

TEST_CASE("a chain of 100000 nodes goes forth, back and away without recursion") {
  const Variable x = leaf(1);
  {
    Variable h = x;
    for (int i = 0; i < 100000; ++i) h = add(h, 1.0);
    backward({&h, 1}, {});
    CHECK(value(h) == 100001);
  }
  CHECK(value(x.body()->grad) == 1);
}

TEST_CASE("a freed output enters the graph again for the second derivative") {
  const Variable x = leaf(0.3);
  const Variable g = gradient(sum(exp(x)), x, true);
  CHECK(value(gradient(g, x)) == doctest::Approx(std::exp(0.3)));
}

TEST_CASE("a hook hears of each leaf once, when its gradient is complete") {
  const Variable x = leaf(2), w = leaf(5), unused = leaf(1);
  std::vector<std::pair<const VariableBody*, double>> heard;
  PassContext context;
  const int number = context.add_hook(
      [&](const Variable& v) { heard.emplace_back(v.body().get(), value(v.body()->grad)); });
  const Variable y = multiply(multiply(x, w), w), z = add(y, x);
  backward({&z, 1}, {}, context);
  context.hooks.erase(number);
  REQUIRE(heard.size() == 2);
  for (const auto& [body, g] : heard) CHECK(g == (body == x.body().get() ? 26 : 20));
  backward({&z, 1}, {}, context);
  CHECK(heard.size() == 2);
}

TEST_CASE("no gradient where backprop is off or not required") {
  const Variable x = leaf(2);
  {
    const SettingScope off(&Settings::backprop, false);
    CHECK_FALSE(square(x).node()->creator);
  }
  CHECK(square(x).node()->creator);
  const Variable c(full({}, 1, Dtype::float64));
  CHECK_FALSE(square(c).node()->creator);
  CHECK_FALSE(gradient(square(x), c).defined());
}

TEST_CASE("the loss scale multiplies the gradient of the root") {
  const Variable x = leaf(3);
  const Variable y = square(x);
  BackwardOptions options;
  options.loss_scale = 8;
  backward({&y, 1}, options);
  CHECK(value(x.body()->grad) == 48);
}

TEST_CASE("first gradients of leaves lie in their places, others do not") {
  const Variable x(full({3, 2}, 2.0, Dtype::float64)), w(full({4, 2}, 1.0, Dtype::float64), true);
  const Array place = full({4, 2}, -1.0, Dtype::float64);
  const auto product = [&] { return sum(matmul(x, w, false, true)); };
  PassContext context;
  context.buffers = GradientBuffers({{w.node().get(), place}});
  Variable y = product();
  CHECK(gradient(y, w).array().data() != place.data());
  backward({&y, 1}, {}, context);
  CHECK(w.body()->grad.array().data() == place.data());
  CHECK(place.as<double>()[0] == 6);
  y = product();
  backward({&y, 1}, {}, context);  // to what is there already
  CHECK(w.body()->grad.array().as<double>()[7] == 12);
  w.body()->grad = Variable();
  y = add(product(), product());
  backward({&y, 1}, {}, context);
  CHECK(w.body()->grad.array().as<double>()[0] == 12);
  w.body()->grad = Variable();
  context.buffers = GradientBuffers();
  y = product();
  backward({&y, 1}, {}, context);
  CHECK(w.body()->grad.array().data() != place.data());
}

TEST_CASE("a leaf that one operation reads twice gets both terms in its buffer's place") {
  const Variable w(full({2, 2}, 3.0, Dtype::float64), true);
  PassContext context;
  context.buffers = GradientBuffers({{w.node().get(), full({2, 2}, -1.0, Dtype::float64)}});
  const Variable y = sum(matmul(w, w, false, false));
  backward({&y, 1}, {}, context);
  for (int i = 0; i < 4; ++i) CHECK(w.body()->grad.array().as<double>()[i] == 12);
}
