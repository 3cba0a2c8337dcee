// Which arrays are written when an activation follows a normalization. Values are tested in Python.
#include <doctest/doctest.h>

#include <thread>

#include "autograd/backward.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/normalization/normalization.h"
#include "ops/random/random.h"
#include "tensor/views.h"

using namespace renga;

namespace {

struct Operands {
  Variable x = Variable(full({16, 8, 16, 16}, 1, Dtype::float32), true);
  Variable gamma = Variable(full({8}, 1, Dtype::float32), true);
  Variable beta = Variable(full({8}, 3, Dtype::float32), true);
  Variable normalized() const { return batch_normalization(x, gamma, beta); }
};

// From a gradient of ones, retaining intermediate gradients.
void run_backward(const Variable& z) {
  z.body()->grad = Variable(full(z.shape(), 1, Dtype::float32));
  BackwardOptions keep;
  keep.retain_grad = true;
  backward({&z, 1}, keep);
}

bool is_written(const Variable& x) { return x.body()->deferred() == nullptr; }

}  // namespace

TEST_CASE("the input of an activation fused with a normalization is never written") {
  const Operands o;
  const Variable h = o.normalized(), y = relu(h);
  CHECK_FALSE(is_written(h));
  CHECK_FALSE(is_written(y));
  CHECK(y.array().as<float>()[0] == 3);
  CHECK(is_written(y));
  CHECK_FALSE(is_written(h));

  const Variable z = multiply(y, 2);
  run_backward(z);
  CHECK_FALSE(is_written(h));
  CHECK_FALSE(is_written(h.body()->grad));
  CHECK(o.beta.body()->grad.array().as<float>()[0] == 2 * 16 * 256);
  CHECK(h.body()->grad.array().as<float>()[0] == 2);
  CHECK(h.array().as<float>()[0] == 3);
}

TEST_CASE("a normalization of shared memory is not deferred") {
  const Operands o;
  const Array also = o.x.array();
  CHECK(is_written(o.normalized()));
}

TEST_CASE("exposing an array runs the deferred computations that read it, of any thread") {
  const Operands o, other;
  const Variable h = o.normalized(), y = leaky_relu(h, 0.5), z = other.normalized();
  std::thread([&] { expose(o.x.array()); }).join();
  CHECK(is_written(h));
  CHECK(is_written(y));
  CHECK_FALSE(is_written(z));
  fill(o.x.array(), 7);
  CHECK(relu(h).array().as<float>()[0] == 3);
  CHECK(y.array().as<float>()[0] == 3);
}

TEST_CASE("a deferred array that two threads read is computed once") {
  struct Counting final : Deferred {
    Counting(const Array& y, int& runs) : Deferred(y, {}), runs(runs) {}
    void compute(const Array& y) const override {
      ++runs;
      fill(y, runs);
    }
    int& runs;
  };
  int runs = 0;
  const Variable y(empty({4}, Dtype::float32));
  const auto deferred = make_ref<Counting>(y.metadata(), runs);
  std::thread first([&] { deferred->run(); }), second([&] { deferred->run(); });
  first.join();
  second.join();
  CHECK(runs == 1);
  CHECK(y.array().as<float>()[3] == 1);
}

TEST_CASE("a replaced array is not overwritten by its deferred computation") {
  const Operands o;
  const Variable h = o.normalized();
  h.body()->set_array(full(h.shape(), -1, Dtype::float32));
  CHECK(is_written(h));
  CHECK(relu(h).array().as<float>()[0] == 0);
}

TEST_CASE("multi-node batch normalization is fused with an activation") {
  const Operands o;
  const StatisticsGroup two{[](const Array& local) {
    const Array all = empty({2, local.shape(0), local.shape(1)}, local.dtype());
    for (int rank : {0, 1}) copy(local, select_view(all, 0, rank));
    return all;
  }};
  const Variable h = multi_node_batch_normalization(o.x, o.gamma, o.beta, two), y = relu(h);
  const Variable z = multiply(y, 2);
  run_backward(z);
  CHECK_FALSE(is_written(h));
  CHECK_FALSE(is_written(h.body()->grad));
  CHECK(o.beta.body()->grad.array().as<float>()[0] == 2 * 16 * 256);
}

TEST_CASE("the input of a dropout fused with a normalization is never written") {
  const Operands o;
  const Variable h = o.normalized(), r = relu(h), y = dropout(r, 0.5, 1), z = multiply(y, 2);
  CHECK_FALSE(is_written(h));
  CHECK_FALSE(is_written(r));
  run_backward(z);
  CHECK_FALSE(is_written(r));
  CHECK_FALSE(is_written(r.body()->grad));
  CHECK_FALSE(is_written(h.body()->grad));
  const float kept = z.array().as<float>()[0] / 3;  // 0, or twice 2
  CHECK(r.body()->grad.array().as<float>()[0] == kept);
  CHECK(h.body()->grad.array().as<float>()[0] == kept);
}

TEST_CASE("a residual is added in the pass of a normalization, and so is the activation after it") {
  const Operands o, shortcut;
  const Variable h = o.normalized(), r = multiply(shortcut.x, 2);
  const Variable z = add(r, h), y = relu(z);
  CHECK_FALSE(is_written(h));
  CHECK_FALSE(is_written(z));
  CHECK(is_written(y));
  CHECK(y.array().as<float>()[0] == 5);

  run_backward(multiply(y, 3));
  CHECK_FALSE(is_written(h));
  CHECK_FALSE(is_written(z));
  CHECK(o.beta.body()->grad.array().as<float>()[0] == 3 * 16 * 256);
  CHECK(shortcut.x.body()->grad.array().as<float>()[0] == 6);
  CHECK(z.array().as<float>()[0] == 5);
  CHECK(h.array().as<float>()[0] == 3);
}

TEST_CASE("the sum of a deferred normalization with itself") {
  const Operands o;
  const Variable h = o.normalized();
  CHECK(add(h, h).array().as<float>()[0] == 6);
}

TEST_CASE("a residual that code outside the core may write to is added at once") {
  const Operands o;
  const Variable r(full(o.x.shape(), 2, Dtype::float32));
  expose(r.array());
  const Variable y = add(o.normalized(), r);
  CHECK(is_written(y));
}

TEST_CASE("exposing a residual runs the deferred sum that reads it") {
  const Operands o;
  const Variable r(full(o.x.shape(), 2, Dtype::float32)), y = add(o.normalized(), r);
  CHECK_FALSE(is_written(y));
  expose(r.array());
  CHECK(is_written(y));
  fill(r.array(), 7);
  CHECK(y.array().as<float>()[0] == 5);
}
