// A thread's work on a device is recorded as graphs of CUDA and started again as a whole.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "devices/cuda/cuda.h"
#include "devices/host_device.h"

namespace renga::cuda {

// Graphs that share memory: what is allocated while one is recorded belongs to the recording's own
// stream, and so to the graphs, as long as they exist. Addresses are recorded: the caller keeps
// what the graphs read and write. One thread at a time uses it.
class Recording {
 public:
  explicit Recording(int device);
  // Graphs that run go on.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // From here on, what this thread starts on the device is recorded and does not run. The host must
  // not wait for the device, nor copy from or to it, which is an error.
  void begin();
  // Returns the number of the graph. Throws std::runtime_error where what was done cannot be
  // recorded.
  std::size_t end();
  // Takes the place of end().
  void discard() noexcept;
  // Starts a graph on the current stream, after what is on it.
  void launch(std::size_t graph) const;

  cudaStream_t stream() const { return stream_.get(); }
  // Adds, while recording, a seed that is drawn anew for each run. Kernels that are given this
  // number read the one that set_seeds() set for it, by the order of these calls.
  void add_seed(std::uint64_t seed);
  // Sets the seeds on the current stream, for what is launched next. There are as many as were
  // added.
  void set_seeds(std::span<const std::uint64_t> seeds) const;
  // Whether the calling thread computes on its stream, and so records.
  bool has_thread() const;
  // Where the device finds a seed that was added; nullptr for other numbers.
  const std::uint64_t* find_seed(std::uint64_t seed) const;

 private:
  struct DestroyStream {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  };
  struct DestroyExecutable {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  template <class Handle, class Destroy>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

  static constexpr std::size_t kMostSeeds = 1024;

  void set_begun(bool has_begun);
  // Ends the recording; nothing where it failed.
  Owned<cudaGraph_t, DestroyGraph> finish() noexcept;

  Device device_;
  Owned<cudaStream_t, DestroyStream> stream_;
  cudaStream_t before_ = nullptr;  // the thread's stream
  std::vector<Owned<cudaGraphExec_t, DestroyExecutable>> graphs_;
  std::map<std::uint64_t, std::size_t> seeds_;  // positions in seeds_on_device_
  std::uint64_t* seeds_on_device_ = nullptr;
};

// The one that this thread records now; nullptr for none.
const Recording* current_recording();
// Throws std::runtime_error if this thread records, as `what` cannot be.
void require_no_recording(const char* what);

// A seed as a kernel's argument.
class Seed {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): kernels take it where the host has a number.
  Seed(std::uint64_t value) : value_(value) {
    if (const Recording* recording = current_recording()) drawn_ = recording->find_seed(value);
  }
  RENGA_HOST_DEVICE std::uint64_t get() const { return drawn_ != nullptr ? *drawn_ : value_; }

 private:
  std::uint64_t value_;
  const std::uint64_t* drawn_ = nullptr;  // on the device
};

}  // namespace renga::cuda
