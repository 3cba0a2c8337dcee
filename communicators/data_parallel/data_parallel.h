// Data-parallel training of C++ programs: each rank has the whole model and a part of each batch.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "communicator.h"
#include "nn/module.h"

namespace renga {

// Averages gradients over ranks while the backward pass computes others.
//
//   DataParallel parallel(net, comm);  // all ranks get the parameters of rank 0
//   parallel.backward(loss);
//   optimizer.update();
//
// Where other ranks have parts of parameters, as of nn::ParallelLinear, those of `comm` have the
// same parts of them: a grid of ranks whose rows, say, share out channels is trained with a
// communicator of each column.
class DataParallel {
 public:
  // Throws std::invalid_argument on all ranks if they have different parts of a parameter.
  DataParallel(const nn::Module& model, std::shared_ptr<Communicator> comm);

  // The gradients of the loss, averaged over all ranks, which all call it. Gradients of parameters
  // on which the loss of a rank does not depend count as zeros there.
  void backward(const Variable& loss);

 private:
  // Gradients that are sent together.
  struct Bucket {
    std::vector<Variable> parameters;
    std::size_t missing = 0;  // gradients in this pass
  };
  void send(const Bucket& bucket);

  std::shared_ptr<Communicator> comm_;
  // The buckets go from the last parameter to the first one: all ranks have this order, and
  // backward passes complete gradients in about the same.
  std::vector<Bucket> buckets_;
  std::unordered_map<const VariableBody*, std::size_t> bucket_of_;
  std::vector<std::shared_ptr<Work>> in_flight_;
};

}  // namespace renga
