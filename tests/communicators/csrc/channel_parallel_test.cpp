// Channel-parallel layers on two ranks, compared with the layers of one process.
#include "channel/channel_parallel.h"

#include <doctest/doctest.h>

#include <array>

#include "autograd/backward.h"
#include "nn/numpy_random.h"
#include "ops/ops.h"
#include "tensor/views.h"
#include "transport/local/local_transport.h"

using namespace renga;

namespace {

// Two ranks as threads.
std::array<std::shared_ptr<Communicator>, 2> two_ranks() {
  const std::vector<int> nodes{0, 0};
  const auto group = std::make_shared<LocalGroup>(nodes, true, std::make_shared<Failure>());
  std::array<std::shared_ptr<Communicator>, 2> comms;
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      comms[static_cast<std::size_t>(r)] =
          std::make_shared<Communicator>(std::make_shared<LocalTransport>(group, r), 20.0, false);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return comms;
}

struct Serial : nn::Module {
  nn::Convolution conv{*this, "conv", {.in = 2, .out = 4, .kernel = 3, .pad = 1}};
  nn::Linear out{*this, "out", {.in = 4 * 25, .out = 6, .b = initializers::normal()}};
  Variable operator()(const Variable& x) const { return out(relu(conv(x))); }
};

struct Parallel : nn::Module {
  explicit Parallel(const std::shared_ptr<Communicator>& comm)
      : conv(*this, "conv", {.in = 2, .out = 4, .kernel = 3, .pad = 1}, comm),
        out(*this, "out", {.in = 4 * 25, .out = 6, .b = initializers::normal()}, comm) {}
  Variable operator()(const Variable& x) const { return out(relu(conv(x))); }
  nn::ParallelConvolution conv;
  nn::ParallelLinear out;
};

Variable input() {
  numpy_random().seed(3);
  const Array x = empty({3, 2, 5, 5}, Dtype::float32);
  initializers::normal(1)(x);
  return Variable(x, true);
}

void check_close(const Array& a, const Array& b) {
  REQUIRE(a.shape() == b.shape());
  const Array x = contiguous(a), y = contiguous(b);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    CHECK(x.as<float>()[i] == doctest::Approx(y.as<float>()[i]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("channel-parallel layers compute what those of one process do") {
  const Variable x = input();
  const Serial serial;
  const Variable expected = serial(x);
  backward(sum(multiply(expected, expected)));

  const auto comms = two_ranks();
  std::vector<std::unique_ptr<Parallel>> nets;
  std::vector<Variable> xs, ys(2);
  for (const auto& comm : comms) {
    xs.push_back(input());
    nets.push_back(std::make_unique<Parallel>(comm));
  }
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      ys[r] = (*nets[r])(xs[r]);
      backward(sum(multiply(ys[r], ys[r])));
    });
  }
  for (std::thread& thread : threads) thread.join();

  const auto parameters = serial.parameters();
  for (std::size_t r = 0; r < 2; ++r) {
    check_close(ys[r].array(), expected.array());
    check_close(xs[r].body()->grad.array(), x.body()->grad.array());
    const auto own = nets[r]->parameters();
    REQUIRE(own.size() == parameters.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto& [name, w] = own[i];
      CHECK(name == parameters[i].first);
      const auto rows = [&](const Array& all) {
        return slice_view(all, 0, static_cast<std::int64_t>(r) * w.shape(0), w.shape(0));
      };
      check_close(w.array(), rows(parameters[i].second.array()));
      check_close(w.body()->grad.array(), rows(parameters[i].second.body()->grad.array()));
    }
  }
}

TEST_CASE("channels that ranks do not divide are refused") {
  const auto comms = two_ranks();
  nn::Module parent;
  CHECK_THROWS_WITH_AS(nn::ParallelLinear(parent, "out", {.in = 2, .out = 3}, comms[0]),
                       "ChannelParallel: expected output channels that 2 ranks divide, got 3",
                       std::invalid_argument);
}
