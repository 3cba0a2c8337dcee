// A network inside of a simulation: the heat equation on a grid whose ranks own bands of rows. The
// network learns the next state from the present one, and its halos are those of the simulation.
#include <renga/communicators.h>
#include <renga/renga.h>

#include <iostream>

using namespace renga;

constexpr std::int64_t kSize = 64;
constexpr double kConductivity = 0.15;

// The rows of a rank at the beginning: all ranks draw the same grid.
Array random_band(const Communicator& comm) {
  const std::int64_t rows = kSize / comm.size();
  const Array grid = empty({1, 1, kSize, kSize}, Dtype::float32);
  initializers::uniform(1)(grid);
  return contiguous(slice_view(grid, 2, comm.rank() * rows, rows));
}

// An explicit step of du/dt = k (d²u/dx² + d²u/dy²) from a band with a row of each neighbour.
Array heat_step(const Array& halo) {
  const std::int64_t rows = halo.shape(2) - 2;
  const Array next = empty({1, 1, rows, kSize}, Dtype::float32);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < kSize; ++j) {
      const float* const u = halo.as<float>() + (i + 1) * kSize + j;
      const float left = j > 0 ? u[-1] : 0, right = j + 1 < kSize ? u[1] : 0;
      const float flow = u[-kSize] + u[kSize] + left + right - 4 * u[0];
      next.as<float>()[i * kSize + j] = u[0] + static_cast<float>(kConductivity) * flow;
    }
  }
  return next;
}

struct Surrogate : nn::Module {
  nn::Convolution conv{*this, "conv", {.in = 1, .out = 1, .kernel = 3, .pad = {0, 1}}};
  Variable operator()(const Variable& halo) const { return conv(halo); }
};

int main() {
  const auto comm = communicators::world();
  numpy_random().seed(0);
  Surrogate net;
  Adam optimizer(net, {.alpha = 0.02});
  DataParallel parallel(net, comm);
  Array u;
  for (int step = 0; step < 400; ++step) {
    if (step % 10 == 0) u = random_band(*comm);  // another simulation
    const Variable halo = halo_exchange(Variable(u), comm, 2, 1);
    u = heat_step(halo.array());
    net.cleargrads();
    parallel.backward(sum(squared_difference(net(halo), Variable(u))));
    optimizer.update();
  }
  if (comm->rank() != 0) return 0;
  std::cout << "the kernel that the network found, where the simulation has " << kConductivity
            << " beside " << 1 - 4 * kConductivity << ":" << std::endl;
  for (int k = 0; k < 9; ++k) {
    std::cout << net.conv.W.array().as<float>()[k] << (k % 3 == 2 ? "\n" : "  ");
  }
}
