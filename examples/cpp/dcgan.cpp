// Steps of a DCGAN (Radford et al., 2016): a generator that draws digits.npz and a discriminator.
#include <renga/renga.h>

#include <iostream>

using namespace renga;

struct Generator : nn::Module {
  nn::Linear in{*this, "in", {.in = 16, .out = 64 * 2 * 2, .bias = false}};
  nn::BatchNormalization norm0{*this, "norm0", {.size = 64}};
  nn::Deconvolution up1{*this, "up1", {.in = 64, .out = 32, .kernel = 4, .stride = 2, .pad = 1}};
  nn::BatchNormalization norm1{*this, "norm1", {.size = 32}};
  nn::Deconvolution up2{*this, "up2", {.in = 32, .out = 1, .kernel = 4, .stride = 2, .pad = 1}};

  Variable operator()(std::int64_t n) const {
    const Array z = empty({n, 16}, Dtype::float32);
    initializers::uniform(1)(z);
    const Variable h = relu(norm0(reshape(in(Variable(z)), {n, 64, 2, 2})));
    return sigmoid(up2(relu(norm1(up1(h)))));  // (n, 1, 8, 8)
  }
};

struct Discriminator : nn::Module {
  nn::Convolution down1{*this, "down1", {.in = 1, .out = 32, .kernel = 4, .stride = 2, .pad = 1}};
  nn::Convolution down2{*this, "down2", {.in = 32, .out = 64, .kernel = 4, .stride = 2, .pad = 1}};
  nn::BatchNormalization norm2{*this, "norm2", {.size = 64}};
  nn::Linear out{*this, "out", {.in = 64 * 2 * 2, .out = 1}};

  Variable operator()(const Variable& x) const {
    const Variable h = leaky_relu(down1(nn::dropout(x, 0.1)), 0.2);
    return out(leaky_relu(norm2(down2(h)), 0.2));
  }
};

// The mean of -log sigmoid(±score).
Variable loss_of(const Variable& scores, double sign) {
  return multiply(sum(softplus(multiply(scores, -sign), 1)), 1.0 / double(scores.size()));
}

int main() {
  const NamedArrays data = read_npz("digits.npz");
  numpy_random().seed(0);
  Generator generator;
  Discriminator discriminator;
  Adam draws(generator, {.alpha = 2e-4, .beta1 = 0.5});
  Adam judges(discriminator, {.alpha = 2e-4, .beta1 = 0.5});
  int step = 0;
  for (const auto& [real, labels] : Batches(data.at("x"), data.at("t"), 64)) {
    const Variable drawn = generator(64);
    const Variable score = discriminator(drawn);
    generator.cleargrads();
    const Variable loss = loss_of(score, 1);
    backward(loss);
    draws.update();

    discriminator.cleargrads();
    const Variable drawn_alone(drawn.array());  // without the generator's graph
    const Variable judged =
        add(loss_of(discriminator(real), 1), loss_of(discriminator(drawn_alone), -1));
    backward(judged);
    judges.update();
    std::cout << "step " << ++step << ": generator " << item(loss.array()) << ", discriminator "
              << item(judged.array()) << std::endl;
  }
  save_npz(generator, "generator.npz");
}
