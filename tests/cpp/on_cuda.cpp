// Trains a network on the host and on a CUDA device, moves it there in the middle of training, and
// prints by how much the parameters differ in the end; then the same on two ranks with a device
// each, which NCCL connects.
#include <renga/communicators.h>
#include <renga/cuda.h>
#include <renga/renga.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <thread>

#include "transport/local/local_transport.h"

using namespace renga;

struct Net : nn::Module {
  nn::Convolution conv{*this, "conv", {.in = 1, .out = 4, .kernel = 3, .pad = 1}};
  nn::BatchNormalization norm{*this, "norm", {.size = 4}};
  nn::Linear out{*this, "out", {.in = 4 * 3 * 3, .out = 5}};

  Variable operator()(const Variable& x) const {
    return out(max_pooling_2d(relu(norm(conv(x))), {}));
  }
};

// The arrays after 8 updates, of which the first 4 are made on the host.
std::vector<Array> train(Device device) {
  numpy_random().seed(0);
  const Array x = empty({32, 1, 6, 6}, Dtype::float32), t = empty({32}, Dtype::int32);
  initializers::normal(1)(x);
  for (int i = 0; i < 32; ++i) t.as<std::int32_t>()[i] = i % 5;
  const Net net;
  MomentumSGD optimizer(net, {.lr = 0.01});
  optimizer.add_hook(gradient_clipping(1));
  for (const Device now : {Device{}, device}) {
    net.to_device(now);
    for (const auto& [images, labels] : Batches(to_device(x, now), to_device(t, now), 8)) {
      net.cleargrads();
      backward(softmax_cross_entropy(net(images), labels));
      optimizer.update();
    }
  }
  std::vector<Array> arrays;
  for (const auto& [name, array] : net.arrays()) {
    if (array.device() != device) std::cout << name << " is on " << to_string(array.device());
    arrays.push_back(cast(to_device(array.array(), {}), Dtype::float64));
  }
  return arrays;
}

struct Linear : nn::Module {
  nn::Linear out{*this, "out", {.in = 3, .out = 2}};
};

// The weight after updates by the samples of all ranks, of which each has a row.
Array train_on_ranks(const std::shared_ptr<Communicator>& comm, Device device, Linear& net) {
  net.to_device(device);
  SGD optimizer(net, {.lr = 0.1});
  DataParallel parallel(net, comm);
  const Array x = full({2 / comm->size(), 3}, 1, Dtype::float32);
  for (std::int64_t i = 0; i < x.shape(0); ++i) {
    x.as<float>()[3 * i] = static_cast<float>(comm->rank() + i);
  }
  for (int step = 0; step < 3; ++step) {
    net.cleargrads();
    const Variable y = net.out(Variable(to_device(x, device)));
    parallel.backward(multiply(sum(multiply(y, y)), 1.0 / static_cast<double>(x.shape(0))));
    optimizer.update();
  }
  return to_device(net.out.W.array(), {});
}

// Ranks as threads, of which each calls run(its communicator).
void on_ranks(int ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& run) {
  const std::vector<int> nodes(static_cast<std::size_t>(ranks));
  const auto group = std::make_shared<LocalGroup>(nodes, true, std::make_shared<Failure>());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      run(std::make_shared<Communicator>(std::make_shared<LocalTransport>(group, rank), 20.0,
                                         false));
    });
  }
}

int main() {
  const Device device = cuda::device();
  const auto on_host = train({}), on_device = train(device);
  double largest = 0;
  for (std::size_t k = 0; k < on_host.size(); ++k) {
    for (std::int64_t i = 0; i < on_host[k].size(); ++i) {
      const double difference = on_host[k].as<double>()[i] - on_device[k].as<double>()[i];
      largest = std::max(largest, std::abs(difference));
    }
  }
  std::cout << "difference " << largest << " on " << to_string(device) << " of " << cuda::count()
            << std::endl;
  numpy_random().seed(0);
  Linear alone;
  numpy_random().seed(0);
  std::array<Linear, 2> nets;  // rank 1 gets the parameters of rank 0
  Array expected;
  std::array<Array, 2> found;
  on_ranks(1, [&](const auto& comm) { expected = train_on_ranks(comm, {}, alone); });
  on_ranks(2, [&](const auto& comm) {
    const auto rank = static_cast<std::size_t>(comm->rank());
    found[rank] = train_on_ranks(comm, cuda::device(comm->rank()), nets[rank]);
  });
  double apart = 0;
  for (const Array& W : found) {
    for (std::int64_t i = 0; i < W.size(); ++i) {
      apart = std::max<double>(apart, std::abs(W.as<float>()[i] - expected.as<float>()[i]));
    }
  }
  std::cout << "apart " << apart << " on ranks" << std::endl;
  try {
    cuda::device(99);
  } catch (const std::invalid_argument& error) {
    std::cout << error.what() << std::endl;
  }
}
