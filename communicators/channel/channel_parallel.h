// Channel-parallel layers of C++ programs: each rank has a part of the output channels, and all
// have the same samples. They compute and send in turn; all ranks call the same.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "autograd/variable.h"
#include "communicator.h"
#include "nn/layers.h"

namespace renga {

// The parts of all ranks along an axis, by rank. A gradient, which is the same on all ranks, is
// shared out.
Variable all_gather(const Variable& x, const std::shared_ptr<Communicator>& comm, int axis = 1);
// The sum over all ranks. Gradients pass.
Variable sum_over_ranks(const Variable& x, const std::shared_ptr<Communicator>& comm);
// x, which is the same on all ranks. Its gradient is the sum of those of all ranks.
Variable sum_gradients(const Variable& x, const std::shared_ptr<Communicator>& comm);

namespace nn {

// The rows of a rank of what another initializer draws for all ranks.
Initializer own_rows(const Initializer& of_all, const Communicator& comm);

// A layer of which each rank has out / ranks output channels; parameters are those of one process,
// whose rows are shared out. x and the result are whole on each rank.
template <class Layer, class Options>
class ChannelParallel : public Layer {
 public:
  ChannelParallel(Module& parent, const std::string& name, const Options& options,
                  std::shared_ptr<Communicator> comm)
      : Layer(parent, name, own_part(options, comm)), comm_(std::move(comm)) {
    if (comm_->size() > 1) this->set_part(comm_->rank());
  }
  Variable operator()(const Variable& x) const {
    return all_gather(Layer::operator()(sum_gradients(x, comm_)), comm_);
  }

 private:
  static Options own_part(Options options, const std::shared_ptr<Communicator>& comm) {
    require<std::invalid_argument>(comm != nullptr,
                                   "ChannelParallel: expected a communicator, got none");
    const int ranks = comm->size();
    require<std::invalid_argument>(options.out % ranks == 0,
                                   "ChannelParallel: expected output channels that ", ranks,
                                   " ranks divide, got ", options.out);
    if constexpr (requires { options.groups; }) {
      require<std::invalid_argument>(options.groups == 1,
                                     "ChannelParallel: expected one group, got ", options.groups);
    }
    options.out /= ranks;
    options.W = own_rows(options.W, *comm);
    options.b = own_rows(options.b, *comm);
    return options;
  }

  std::shared_ptr<Communicator> comm_;
};

using ParallelLinear = ChannelParallel<Linear, LinearOptions>;
using ParallelConvolution = ChannelParallel<Convolution, ConvolutionOptions>;

}  // namespace nn
}  // namespace renga
