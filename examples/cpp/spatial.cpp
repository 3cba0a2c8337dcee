// A network on an image that is too large for one process: each rank has a band of its rows, and
// neighbours exchange the rows that convolutions reach over the edge. Any number of ranks prints
// the same losses: mpiexec -n 2 ./spatial
#include <renga/communicators.h>
#include <renga/renga.h>

#include <cmath>
#include <iostream>

using namespace renga;

constexpr std::int64_t kSize = 256;  // rows and columns

// Rows are padded by the neighbours' rows, columns by zeros.
struct SpatialConvolution : nn::Convolution {
  SpatialConvolution(nn::Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
                     std::shared_ptr<Communicator> comm)
      : Convolution(parent, name, {.in = in, .out = out, .kernel = 3, .pad = {0, 1}}),
        comm_(std::move(comm)) {}
  Variable operator()(const Variable& x) const {
    return Convolution::operator()(halo_exchange(x, comm_, 2, 1));
  }

 private:
  std::shared_ptr<Communicator> comm_;
};

struct Net : nn::Module {
  explicit Net(const std::shared_ptr<Communicator>& comm)
      : first(*this, "first", 1, 8, comm), second(*this, "second", 8, 1, comm) {}
  Variable operator()(const Variable& x) const { return second(tanh(first(x))); }

  SpatialConvolution first, second;
};

// This rank's rows of an image and of its smoothed edges.
std::pair<Variable, Variable> band(const Communicator& comm) {
  const std::int64_t rows = kSize / comm.size(), start = comm.rank() * rows;
  const Array x = empty({1, 1, rows, kSize}, Dtype::float32), t = empty_like(x);
  for (std::int64_t i = 0; i < rows * kSize; ++i) {
    const auto row = static_cast<double>(start + i / kSize),
               column = static_cast<double>(i % kSize);
    x.as<float>()[i] = static_cast<float>(std::sin(0.1 * row) * std::cos(0.07 * column));
    t.as<float>()[i] = static_cast<float>(0.1 * std::cos(0.1 * row) * std::cos(0.07 * column));
  }
  return {Variable(x), Variable(t)};
}

int main() {
  const auto comm = communicators::world();
  numpy_random().seed(0);
  Net net(comm);
  MomentumSGD optimizer(net, {.lr = 0.003});
  DataParallel parallel(net, comm);  // bands are of one size: their mean is that of the image
  const auto [x, t] = band(*comm);
  for (int step = 0; step < 10; ++step) {
    net.cleargrads();
    const Variable loss = multiply(sum(squared_difference(net(x), t)), 1.0 / double(x.size()));
    parallel.backward(loss);
    optimizer.update();
    const Array mean = copy_of(loss.array());
    communicators::all_reduce(*comm, {mean}, ReduceOp::mean);
    if (comm->rank() == 0) std::cout << "step " << step + 1 << ": loss " << item(mean) << std::endl;
  }
}
