// Trains a network on the host and on a CUDA device, moves it there in the middle of training, and
// prints by how much the parameters differ in the end.
#include <renga/cuda.h>
#include <renga/renga.h>

#include <algorithm>
#include <cmath>
#include <iostream>

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
  try {
    cuda::device(99);
  } catch (const std::invalid_argument& error) {
    std::cout << error.what() << std::endl;
  }
}
