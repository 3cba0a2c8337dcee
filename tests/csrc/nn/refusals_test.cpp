// Modules and training loops refuse these, as they would otherwise compute something else.
#include <doctest/doctest.h>

#include "autograd/backward.h"
#include "nn/batches.h"
#include "nn/recurrent.h"

namespace renga {
namespace {

Variable ones(const Shape& shape) { return Variable(full(shape, 1, Dtype::float32), true); }

}  // namespace

TEST_CASE("a loss of several numbers without a gradient is refused") {
  const Variable y = multiply(ones({3}), 2);
  CHECK_THROWS_WITH_AS(
      backward(y),
      "backward: expected a single number, or a variable with a gradient, got one of shape (3,)",
      std::invalid_argument);
  y.body()->grad = ones({3});
  CHECK_NOTHROW(backward(y));
  CHECK_THROWS_WITH_AS(backward(Variable()),
                       "backward: expected a Variable with elements, got an undefined one",
                       std::invalid_argument);
}

TEST_CASE("recurrent layers refuse states of other layers or batches") {
  nn::Module parent;
  const nn::Rnn layers(parent, "rnn", {.in = 3, .out = 2});
  for (const Shape& shape : {Shape{2, 1, 2}, Shape{1, 5, 2}, Shape{}}) {
    CHECK_THROWS_AS(layers({ones({4, 3})}, ones(shape)), InvalidType);
  }
  CHECK(layers({ones({4, 3})}, ones({1, 1, 2})).h.shape() == Shape{1, 1, 2});
}

TEST_CASE("batches beyond the last one are refused") {
  const Batches batches(ones({5, 1}).array(), full({5}, 0, Dtype::int32), 2);
  CHECK(batches[1].first.shape() == Shape{2, 1});
  CHECK_THROWS_WITH_AS(batches[2], "Batches: expected a batch below 2, got 2", std::out_of_range);
}

TEST_CASE("batches name what is not of their ranks") {
  const Array xs = ones({6, 1}).array(), ts = full({6}, 0, Dtype::int32);
  CHECK_THROWS_WITH_AS(Batches(xs, ts, 2, 3, 2), "Batches: expected a rank below 2, got 3",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Batches(xs, ts, 3, 1, 2),
                       "Batches: expected a size that 2 ranks divide, got 3",
                       std::invalid_argument);
}

}  // namespace renga
