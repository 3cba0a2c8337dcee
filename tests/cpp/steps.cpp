// Trains networks from the same seed as steps.py: `steps NETWORK UPDATES FILE` writes the
// parameters and prints the least CPU time of a step in microseconds.
#include <renga/renga.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <string>

namespace renga {
namespace {

struct Mlp : nn::Module {
  Mlp(std::int64_t in, std::int64_t units)
      : l1(*this, "l1", {.in = in, .out = units}),
        l2(*this, "l2", {.in = units, .out = units}),
        l3(*this, "l3", {.in = units, .out = 10}) {}
  Variable operator()(const Variable& x) const { return l3(relu(l2(relu(l1(x))))); }
  nn::Linear l1, l2, l3;
};

struct Convolutions : nn::Module {
  nn::Convolution c1{*this, "c1", {.in = 1, .out = 8, .kernel = 3, .pad = 1}};
  nn::BatchNormalization n1{*this, "n1", {.size = 8}};
  nn::Convolution c2{*this, "c2", {.in = 8, .out = 16, .kernel = 3, .pad = 1}};
  nn::BatchNormalization n2{*this, "n2", {.size = 16}};
  nn::Linear out{*this, "out", {.in = 16 * 2 * 2, .out = 10}};

  Variable operator()(const Variable& x) const {
    return out(max_pooling_2d(relu(n2(c2(max_pooling_2d(relu(n1(c1(x))), {})))), {}));
  }
};

struct Block : nn::Module {
  using Module::Module;
  nn::Convolution c1{*this, "c1", {.in = 16, .out = 16, .kernel = 3, .pad = 1, .bias = false}};
  nn::BatchNormalization n1{*this, "n1", {.size = 16}};
  nn::Convolution c2{*this, "c2", {.in = 16, .out = 16, .kernel = 3, .pad = 1, .bias = false}};
  nn::BatchNormalization n2{*this, "n2", {.size = 16}};

  Variable operator()(const Variable& x) const { return relu(add(n2(c2(relu(n1(c1(x))))), x)); }
};

struct Residual : nn::Module {
  nn::Convolution in{*this, "in", {.in = 3, .out = 16, .kernel = 3, .pad = 1}};
  Block b1{*this, "b1"}, b2{*this, "b2"}, b3{*this, "b3"};
  nn::Linear out{*this, "out", {.in = 16, .out = 10}};

  Variable operator()(const Variable& x) const {
    return out(multiply(sum(b3(b2(b1(relu(in(x))))), Axes{2, 3}), 1.0 / 1024));
  }
};

// Over 12 steps of 32 numbers.
struct Recurrent : nn::Module {
  nn::LstmCell cell{*this, "cell", {.in = 32, .out = 64}};
  nn::Linear out{*this, "out", {.in = 64, .out = 10}};

  Variable operator()(const Variable& x) const {
    nn::LstmCell::State state;
    for (const Variable& step : separate(x)) state = cell(state, step);
    return out(state.h);
  }
};

struct Transformer : nn::Module {
  nn::LayerNormalization n1{*this, "n1", {.size = 64}};
  nn::Attention attention{*this, "attention", {.embed_dim = 64, .heads = 4}};
  nn::LayerNormalization n2{*this, "n2", {.size = 64}};
  nn::Linear l1{*this, "l1", {.in = 64, .out = 256}}, l2{*this, "l2", {.in = 256, .out = 64}};
  nn::Linear out{*this, "out", {.in = 64, .out = 10}};

  Variable operator()(const Variable& x) const {  // (8, 16, 64)
    const Variable h = add(x, attention(n1(x)));
    const Variable y = add(h, l2(gelu(l1(n2(h), 2)), 2));
    return out(multiply(sum(y, Axes{1}), 1.0 / 16));
  }
};

template <class Net>
void train(const Net& net, const Shape& shape, std::int64_t batch, int updates,
           const std::string& file) {
  Adam optimizer(net);
  const Array x = empty(shape, Dtype::float32), t = empty({batch}, Dtype::int32);
  initializers::normal(1)(x);
  for (std::int64_t i = 0; i < batch; ++i) t.as<std::int32_t>()[i] = static_cast<int>(i % 10);
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int step = 0; step < updates; ++step) {
    const std::clock_t start = std::clock();
    net.cleargrads();
    backward(softmax_cross_entropy(net(Variable(x)), t));
    optimizer.update();
    least = std::min(least, std::clock() - start);
  }
  std::cout << 1e6 * static_cast<double>(least) / CLOCKS_PER_SEC << std::endl;
  save_npz(net, file);
}

void run(const std::string& network, int updates, const std::string& file) {
  numpy_random().seed(0);
  if (network == "large_mlp") train(Mlp(784, 1000), {100, 784}, 100, updates, file);
  if (network == "mlp") train(Mlp(784, 100), {100, 784}, 100, updates, file);
  if (network == "small_mlp") train(Mlp(64, 32), {32, 64}, 32, updates, file);
  if (network == "convolutions") train(Convolutions(), {32, 1, 8, 8}, 32, updates, file);
  if (network == "residual") train(Residual(), {8, 3, 32, 32}, 8, updates, file);
  if (network == "recurrent") train(Recurrent(), {12, 16, 32}, 16, updates, file);
  if (network == "transformer") train(Transformer(), {8, 16, 64}, 8, updates, file);
}

}  // namespace
}  // namespace renga

int main(int /*argc*/, char** argv) { renga::run(argv[1], std::stoi(argv[2]), argv[3]); }
