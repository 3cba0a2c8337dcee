// Ranks that each have a GPU and reduce arrays in their memory through NCCL.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "work.h"

namespace renga::nccl {

// Throw std::runtime_error with NCCL's and CUDA's own words.
void check(ncclResult_t result, const char* call);
void check(cudaError_t status, const char* call);

// Why NCCL cannot be used here: no driver, no GPU; empty where it can.
std::string what_is_missing();

// What one rank makes and all need to form a clique.
std::string new_identity();

// Memory of this rank's GPU: `n` elements, in row-major order.
struct Span {
  std::uintptr_t data;
  std::int64_t n;
  ncclDataType_t dtype;
};

// All ranks call the same collectives in the same order. They follow what the default stream has
// been given before, and the default stream waits for them: whoever uses a result on the GPU need
// not wait for the Work. Sums are made in NCCL's own order.
class Clique {
 public:
  // `seconds` is the time-out of every wait, 0 for none. All ranks call this.
  Clique(const std::string& identity, int rank, int size, int device, double seconds);
  ~Clique();
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;

  std::shared_ptr<Work> all_reduce(const Span& x, std::uintptr_t y, ncclRedOp_t op);
  // x holds one block per rank, of which y receives the reduction of this rank's.
  std::shared_ptr<Work> reduce_scatter(const Span& x, std::uintptr_t y, ncclRedOp_t op);
  std::shared_ptr<Work> all_gather(const Span& x, std::uintptr_t y);
  std::shared_ptr<Work> all_to_all(const Span& x, std::uintptr_t y);
  std::shared_ptr<Work> broadcast(const Span& x, int root);

 private:
  class Pending;
  template <class Post>
  std::shared_ptr<Work> start(const char* name, const Post& post);
  // Waits until NCCL has taken what it was given; throws what went wrong.
  void settle(const char* name);

  int rank_;
  int size_;
  int device_;
  double seconds_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace renga::nccl
