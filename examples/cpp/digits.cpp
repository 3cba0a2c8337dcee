// Trains a small network on images of digits, with one process or with several: mpiexec -n 2
// ./digits. digits.py writes digits.npz and trains the same network, with the same bits.
#include <renga/communicators.h>
#include <renga/renga.h>

#include <iostream>

using namespace renga;

struct Net : nn::Module {
  nn::Convolution conv{*this, "conv", {.in = 1, .out = 16, .kernel = 3, .pad = 1}};
  nn::Linear out{*this, "out", {.in = 16 * 4 * 4, .out = 10}};

  Variable operator()(const Variable& x) const {
    return out(max_pooling_2d(relu(conv(x)), {}));  // of 8 x 8 pixels, 4 x 4 remain
  }
};

double accuracy(const Net& net, const Array& x, const Array& t) {
  const nn::Evaluation evaluation;
  const Array y = argmax(net(Variable(x)), 1).array();
  double correct = 0;
  for (std::int64_t i = 0; i < t.size(); ++i) correct += y.as<int>()[i] == t.as<int>()[i];
  return correct / static_cast<double>(t.size());
}

int main() {
  const auto comm = communicators::world();
  const NamedArrays data = read_npz("digits.npz");
  const Array &x = data.at("x"), &t = data.at("t");  // (N, 1, 8, 8) and (N,)
  numpy_random().seed(0);
  Net net;
  MomentumSGD optimizer(net, {.lr = 0.05});
  optimizer.add_hook(weight_decay(1e-4));
  DataParallel parallel(net, comm);
  for (int epoch = 0; epoch < 3; ++epoch) {
    // Each rank gets its part of each batch.
    for (const auto& [images, labels] : Batches(x, t, 64, comm->rank(), comm->size())) {
      net.cleargrads();
      parallel.backward(softmax_cross_entropy(net(images), labels));
      optimizer.update();
    }
    if (comm->rank() != 0) continue;
    std::cout << "epoch " << epoch + 1 << ": accuracy " << accuracy(net, x, t) << std::endl;
  }
  if (comm->rank() == 0) save_safetensors(net, "digits.safetensors");
}
