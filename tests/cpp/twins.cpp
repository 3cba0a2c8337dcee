// Writes what layers, initializers and optimizers compute to twins.npz; test_twins.py computes the
// same in Python, and compares every bit. Reads and writes files of the other side.
#include <renga/renga.h>

#include <iostream>

namespace renga {
namespace {

NamedArrays results;

Variable input(const Shape& shape, std::uint32_t seed = 3) {
  numpy_random().seed(seed);
  const Array x = empty(shape, Dtype::float32);
  initializers::normal(1)(x);
  return Variable(x, true);
}

void keep(const std::string& name, const Variable& x) { results[name] = copy_of(x.array()); }

// Keeps the result, its gradients by a loss, and the arrays afterwards.
void keep_step(const std::string& name, const nn::Module& module, const Variable& x,
               const Variable& y) {
  keep(name + "/y", y);
  backward(sum(multiply(y, y)));
  if (x.requires_grad()) keep(name + "/gx", x.body()->grad);
  for (const auto& [path, array] : module.arrays()) {
    keep(name + "/" + path, array);
    if (array.requires_grad()) keep(name + "/" + path + "/grad", array.body()->grad);
  }
}

template <class Layer, class Options>
void layer(const std::string& name, const Options& options, const Shape& shape) {
  const Variable x = input(shape);
  numpy_random().seed(4);
  nn::Module parent;
  const Layer made(parent, "layer", options);
  keep_step(name, made, x, made(x));
}

void layers() {
  layer<nn::Linear>("linear", nn::LinearOptions{.in = 5, .out = 3}, {4, 5});
  layer<nn::Convolution>(
      "convolution",
      nn::ConvolutionOptions{
          .in = 4, .out = 6, .kernel = {3, 2}, .stride = 2, .pad = 1, .groups = 2},
      {2, 4, 7, 8});
  layer<nn::Convolution>("convolution_1d",
                         nn::ConvolutionOptions{.in = 4, .out = 6, .kernel = 3, .axes = 1},
                         {2, 4, 9});
  layer<nn::Deconvolution>(
      "deconvolution",
      nn::ConvolutionOptions{.in = 4, .out = 6, .kernel = 4, .stride = 2, .pad = 1, .bias = false},
      {2, 4, 5, 5});
  layer<nn::BatchNormalization>("batch_normalization", nn::BatchNormalizationOptions{.size = 4},
                                {8, 4, 3, 3});
  layer<nn::LayerNormalization>("layer_normalization", nn::LayerNormalizationOptions{.size = 6},
                                {4, 6});
  layer<nn::RmsNormalization>("rms_normalization", nn::LayerNormalizationOptions{.size = 6},
                              {4, 6});
  layer<nn::GroupNormalization>(
      "group_normalization", nn::GroupNormalizationOptions{.groups = 2, .size = 4}, {4, 4, 3, 3});
  layer<nn::Attention>("attention",
                       nn::AttentionOptions{.embed_dim = 8, .heads = 2, .dropout = 0.3}, {2, 5, 8});
}

void embedding() {
  numpy_random().seed(4);
  nn::Module parent;
  const nn::Embedding made(parent, "layer", {.in = 7, .out = 3, .ignore_label = -1});
  const Array ids = empty({6}, Dtype::int32);
  for (int i = 0; i < 6; ++i) ids.as<std::int32_t>()[i] = i - 1;
  const Variable y = made(ids);
  keep_step("embedding", made, Variable(ids), y);
}

void lstm_cell() {
  const Variable x = input({4, 5});
  numpy_random().seed(4);
  nn::Module parent;
  const nn::LstmCell made(parent, "layer", {.in = 5, .out = 3});
  const auto first = made({}, x);
  keep_step("lstm", made, x, made(first, x).h);
}

void gru_cell() {
  const Variable x = input({4, 5});
  numpy_random().seed(4);
  nn::Module parent;
  const nn::GruCell made(parent, "layer", {.in = 5, .out = 3});
  keep_step("gru_cell", made, x, made(made({}, x), x));
}

void cross_attention() {
  const Variable x = input({2, 5, 8});
  numpy_random().seed(4);
  nn::Module parent;
  const nn::Attention made(parent, "layer", {.embed_dim = 8, .heads = 2, .dropout = 0.3});
  const Variable memory = tanh(slice(x, {{0, 2, 1}, {0, 3, 1}, {0, 8, 1}}));
  keep_step("cross_attention", made, x, made(x, memory));
}

// Sequences of 3, 5 and 2 steps.
std::vector<Variable> sequences(const Variable& x) {
  return split_axis(x, std::vector<std::int64_t>{3, 8}, 0);
}

void recurrent_layers() {
  const nn::RecurrentOptions options{
      .layers = 2, .in = 4, .out = 3, .dropout = 0.3, .bidirectional = true};
  {
    const Variable x = input({10, 4});
    numpy_random().seed(4);
    nn::Module parent;
    const nn::Lstm made(parent, "layer", options);
    const auto first = made(sequences(x));
    const auto [h, c, ys] = made(sequences(x), first.h, first.c);
    keep("lstm_layers/h", h);
    keep("lstm_layers/c", c);
    keep_step("lstm_layers", made, x, concat(ys, 0));
  }
  {
    const Variable x = input({10, 4});
    numpy_random().seed(4);
    nn::Module parent;
    const nn::Gru made(parent, "layer",
                       {.layers = 2, .in = 4, .out = 3, .b = initializers::normal()});
    const auto [h, ys] = made(sequences(x));
    keep("gru_layers/h", h);
    keep_step("gru_layers", made, x, concat(ys, 0));
  }
}

void plain_recurrent_layers() {
  for (const std::string activation : {"tanh", "relu"}) {
    const Variable x = input({10, 4});
    numpy_random().seed(4);
    nn::Module parent;
    const nn::Rnn made(
        parent, "layer",
        {.layers = 2, .in = 4, .out = 3, .bidirectional = true, .b = initializers::normal()},
        activation);
    const auto [h, ys] = made(sequences(x), made(sequences(x)).h);
    keep(activation + "_layers/h", h);
    keep_step(activation + "_layers", made, x, concat(ys, 0));
  }
}

void sequential() {
  const Variable x = input({4, 5});
  numpy_random().seed(4);
  nn::Sequential made;
  made.add<nn::Linear>(nn::LinearOptions{.in = 5, .out = 8})
      .add(relu)
      .add([](const Variable& h) { return nn::dropout(h); })
      .add<nn::Linear>(nn::LinearOptions{.in = 8, .out = 2});
  keep_step("sequential", made, x, made(x));
  const nn::Evaluation evaluation;
  keep("sequential/evaluation", made(x));
}

void all_initializers() {
  const std::pair<const char*, Initializer> table[] = {
      {"Normal", initializers::normal()},
      {"Uniform", initializers::uniform()},
      {"LeCunNormal", initializers::lecun_normal()},
      {"LeCunUniform", initializers::lecun_uniform(2)},
      {"GlorotNormal", initializers::glorot_normal()},
      {"GlorotUniform", initializers::glorot_uniform()},
      {"HeNormal", initializers::he_normal(1, initializers::Fan::out)},
      {"HeUniform", initializers::he_uniform()},
      {"Orthogonal", initializers::orthogonal()},
  };
  numpy_random().seed(5);
  for (const auto& [name, fill] : table) {
    const Array x = empty({5, 3, 3}, Dtype::float32);
    fill(x);
    results[std::string("initializer/") + name] = x;
  }
  results["initializer/Identity"] = empty({3, 3}, Dtype::float32);
  initializers::identity(2)(results["initializer/Identity"]);
  results["initializer/tall"] = empty({7, 2, 2}, Dtype::float32);
  initializers::orthogonal(1)(results["initializer/tall"]);
}

template <class O>
void optimizer(const std::string& name, const std::vector<OptimizerHook>& hooks = {}) {
  const Variable x = input({4, 5});
  numpy_random().seed(4);
  nn::Module parent;
  const nn::Linear model(parent, "layer", {.in = 5, .out = 3});
  O made(model);
  if (name == "RMSpropMomentumSGD") {
    if constexpr (requires { made.options.sgd_share; }) made.options.sgd_share = 0.25;
  }
  for (const auto& hook : hooks) made.add_hook(hook);
  for (int step = 0; step < 5; ++step) {
    model.cleargrads();
    const Variable y = tanh(model(x));
    backward(sum(multiply(y, y)));
    made.update();
  }
  for (const auto& [path, array] : model.arrays()) keep("optimizer/" + name + "/" + path, array);
  for (const auto& [path, array] : made.arrays()) keep("optimizer/" + name + "/" + path, array);
}

// Loads an optimizer that Python has saved, makes an update, and saves it.
void optimizer_in_files(const std::string& folder) {
  numpy_random().seed(4);
  nn::Module parent;
  const nn::Linear model(parent, "layer", {.in = 5, .out = 3});
  Adam npz(model), safetensors(model);
  load_npz(npz, folder + "/optimizer_python.npz");
  load_safetensors(safetensors, folder + "/optimizer_python.safetensors");
  for (Adam* loaded : {&npz, &safetensors}) {
    const Variable x = input({4, 5});
    model.cleargrads();
    const Variable y = tanh(model(x));
    backward(sum(multiply(y, y)));
    loaded->update();
  }
  for (const auto& [path, array] : model.arrays()) keep("resumed/" + path, array);
  save_npz(npz, folder + "/optimizer.npz");
  save_safetensors(safetensors, folder + "/optimizer.safetensors");
}

void all_schedules() {
  const std::pair<const char*, Schedule> table[] = {
      {"ExponentialShift", schedules::exponential(0.3, 0.9, 0.2)},
      {"StepShift", schedules::step(0.3, 0.5, 4)},
      {"MultistepShift", schedules::multistep(0.3, 0.5, {3, 7})},
      {"PolynomialShift", schedules::polynomial(0.3, 1.5, 9)},
      {"InverseShift", schedules::inverse(0.3, 0.4, 0.75)},
      {"LinearShift", schedules::linear({0.3, 0.1}, {2, 8})},
      {"CosineShift", schedules::cosine(0.3, 9, 0.01)},
      {"OneCycleShift", schedules::one_cycle(0.3, 9)},
      {"WarmupShift", schedules::warmup(0.1, 5, [](std::int64_t) { return 0.3; })},
  };
  for (const auto& [name, value] : table) {
    const Array values = empty({12}, Dtype::float64);
    for (std::int64_t t = 0; t < values.size(); ++t) values.as<double>()[t] = value(t);
    results[std::string("schedule/") + name] = values;
  }
}

void optimizers() {
  optimizer<SGD>("SGD");
  optimizer<MomentumSGD>("MomentumSGD");
  optimizer<NesterovAG>("NesterovAG");
  optimizer<CorrectedMomentumSGD>("CorrectedMomentumSGD");
  optimizer<RMSprop>("RMSprop");
  optimizer<AdaGrad>("AdaGrad");
  optimizer<AdaDelta>("AdaDelta");
  optimizer<RMSpropGraves>("RMSpropGraves");
  optimizer<SMORMS3>("SMORMS3");
  optimizer<MSVAG>("MSVAG");
  optimizer<Adam>("Adam");
  optimizer<AMSGrad>("AMSGrad");
  optimizer<AdaBound>("AdaBound");
  optimizer<AMSBound>("AMSBound");
  optimizer<LAMB>("LAMB");
  optimizer<RMSpropMomentumSGD>("RMSpropMomentumSGD");
  optimizer<SGD>("WeightDecay", {weight_decay(0.01)});
  optimizer<Adam>("GradientClipping", {gradient_clipping(0.1)});
  optimizer<SGD>("GradientHardClipping", {gradient_hard_clipping(-0.01, 0.02)});
  optimizer<SGD>("Lasso", {lasso(0.01)});
  optimizer<SGD>("GradientNoise", {gradient_noise(0.3)});
  optimizer<SGD>("GradientLARS", {gradient_lars(0.01, 0.1)});
}

// Numbers of a permutation, and files of Python's copied by C++.
void rest(const std::string& folder) {
  numpy_random().seed(6);
  const auto order = numpy_random().permutation(1000);
  const Array numbers = empty({1000}, Dtype::int64);
  std::copy(order.begin(), order.end(), numbers.as<std::int64_t>());
  results["permutation"] = numbers;
  write_npz(folder + "/copied.npz", read_npz(folder + "/python.npz"));
  write_safetensors(folder + "/copied.safetensors",
                    read_safetensors(folder + "/python.safetensors"));
}

}  // namespace
}  // namespace renga

int main(int /*argc*/, char** argv) {
  using namespace renga;
  layers();
  embedding();
  lstm_cell();
  gru_cell();
  cross_attention();
  recurrent_layers();
  plain_recurrent_layers();
  sequential();
  all_initializers();
  optimizers();
  all_schedules();
  optimizer_in_files(argv[1]);
  rest(argv[1]);
  write_npz(std::string(argv[1]) + "/twins.npz", results);
}
