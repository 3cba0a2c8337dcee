// Channel-parallel layers on two ranks, compared with the layers of one process.
#include "channel/channel_parallel.h"

#include <doctest/doctest.h>

#include <functional>
#include <thread>

#include "autograd/backward.h"
#include "data_parallel/data_parallel.h"
#include "nn/numpy_random.h"
#include "nn/optimizers.h"
#include "ops/ops.h"
#include "tensor/views.h"
#include "transport/local/local_transport.h"

using namespace renga;

namespace {

// Calls run(rank) on threads.
void on_threads(int ranks, const std::function<void(std::size_t)>& run) {
  std::vector<std::jthread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(run, static_cast<std::size_t>(r));
}

std::vector<std::shared_ptr<Communicator>> ranks_as_threads(int ranks) {
  const std::vector<int> nodes(static_cast<std::size_t>(ranks));
  const auto group = std::make_shared<LocalGroup>(nodes, true, std::make_shared<Failure>());
  std::vector<std::shared_ptr<Communicator>> comms(nodes.size());
  on_threads(ranks, [&](std::size_t r) {
    comms[r] = std::make_shared<Communicator>(
        std::make_shared<LocalTransport>(group, static_cast<int>(r)), 20.0, false);
  });
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

  const auto comms = ranks_as_threads(2);
  std::vector<std::unique_ptr<Parallel>> nets;
  std::vector<Variable> xs, ys(2);
  for (const auto& comm : comms) {
    xs.push_back(input());
    nets.push_back(std::make_unique<Parallel>(comm));
  }
  on_threads(2, [&](std::size_t r) {
    ys[r] = (*nets[r])(xs[r]);
    backward(sum(multiply(ys[r], ys[r])));
  });

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

TEST_CASE("channels that ranks do not divide and missing ranks are refused") {
  const auto comms = ranks_as_threads(2);
  nn::Module parent;
  CHECK_THROWS_WITH_AS(nn::ParallelLinear(parent, "out", {.in = 2, .out = 3}, comms[0]),
                       "ChannelParallel: expected output channels that 2 ranks divide, got 3",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(nn::ParallelLinear(parent, "out", {.in = 2, .out = 4}, nullptr),
                       "ChannelParallel: expected a communicator, got none", std::invalid_argument);
  CHECK_THROWS_WITH_AS(all_gather(input(), nullptr),
                       "all_gather: expected a communicator, got none", std::invalid_argument);
}

TEST_CASE("on a grid of ranks, each row shares out channels and gets a part of the batch") {
  const Variable x = input();
  const Variable four = concat({x, slice(x, {{0, 1, 1}, {0, 2, 1}, {0, 5, 1}, {0, 5, 1}})}, 0);
  const Serial serial;
  const Variable expected = serial(four);
  backward(multiply(sum(multiply(expected, expected)), 0.25));

  const auto comms = ranks_as_threads(4);
  std::vector<std::shared_ptr<Communicator>> rows(4), columns(4);
  on_threads(4, [&](std::size_t r) {
    const int rank = static_cast<int>(r);
    rows[r] = comms[r]->split(rank / 2, rank, {});
    columns[r] = comms[r]->split(rank % 2, rank, {});
  });
  std::vector<std::unique_ptr<Parallel>> nets;
  for (const auto& row : rows) {
    input();  // each draws the same weights
    nets.push_back(std::make_unique<Parallel>(row));
  }
  on_threads(4, [&](std::size_t r) {
    const std::int64_t first = r < 2 ? 0 : 2;
    const Variable part(slice_view(four.array(), 0, first, 2));
    DataParallel parallel(*nets[r], columns[r]);
    const Variable y = (*nets[r])(part);
    parallel.backward(multiply(sum(multiply(y, y)), 0.5));
  });
  for (std::size_t r = 0; r < 4; ++r) {
    const auto own = nets[r]->parameters(), all = serial.parameters();
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Variable& w = own[i].second;
      const auto part = static_cast<std::int64_t>(r % 2) * w.shape(0);
      check_close(w.body()->grad.array(),
                  slice_view(all[i].second.body()->grad.array(), 0, part, w.shape(0)));
    }
  }
}

TEST_CASE("what would mix or misread parts of parameters is refused on all ranks") {
  const auto comms = ranks_as_threads(2);
  std::vector<std::unique_ptr<Parallel>> nets;
  for (const auto& comm : comms) nets.push_back(std::make_unique<Parallel>(comm));
  std::vector<std::string> errors(2);
  on_threads(2, [&](std::size_t r) {
    try {
      const DataParallel parallel(*nets[r], comms[r]);
    } catch (const std::invalid_argument& error) {
      errors[r] = error.what();
    }
  });
  for (const std::string& error : errors) {
    CHECK(error ==
          "DataParallel: expected ranks with the same part of each parameter, got parts 0 to 1 of "
          "conv/W");
  }
  CHECK_THROWS_WITH_AS(LAMB{*nets[0]}, "LAMB: expected whole parameters, got a part of conv/W",
                       std::invalid_argument);
  SGD optimizer(*nets[0]);
  optimizer.add_hook(weight_decay(0.1));
  CHECK_THROWS_WITH_AS(optimizer.add_hook(gradient_clipping(1)),
                       "GradientClipping: expected whole parameters, got a part of conv/W",
                       std::invalid_argument);
}
