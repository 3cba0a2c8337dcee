#include "devices/cuda/recording.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "devices/allocator.h"
#include "devices/cuda/frees.h"
#include "devices/streams.h"

namespace renga::cuda {
namespace {

// Recordings that have begun and not ended; the flag is read without the lock.
struct Begun {
  std::mutex mutex;
  std::vector<const Recording*> all;
  std::atomic<bool> any{false};
};

Begun& begun() {
  static auto* const kept = new Begun;  // never destroyed: a recording may be until the end
  return *kept;
}

}  // namespace

const Recording* current_recording() {
  if (!begun().any) return nullptr;
  const std::lock_guard lock(begun().mutex);
  for (const Recording* const recording : begun().all) {
    if (recording->has_thread()) return recording;
  }
  return nullptr;
}

void require_no_recording(const char* what) {
  if (current_recording() == nullptr) return;
  throw std::runtime_error(
      std::string("cuda: expected nothing but kernels in a recorded graph, got ") + what);
}

Recording::Recording(int device) : device_{number(), static_cast<std::int16_t>(device)} {
  const Use use(device);
  cudaStream_t stream = nullptr;
  RENGA_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);
  seeds_on_device_ =
      static_cast<std::uint64_t*>(allocate(kMostSeeds * sizeof(std::uint64_t), device_));
  keep_memory_of_stream(stream, device_);
}

Recording::~Recording() {
  const Use use(device_);
  graphs_.clear();
  deallocate(seeds_on_device_, kMostSeeds * sizeof(std::uint64_t), device_);
  release_memory_of_stream(stream_.get(), device_);
}

void Recording::begin() {
  require_no_recording("the beginning of another one");
  const Use use(device_);
  before_ = cuda::stream();
  set_stream(device_.index, stream());
  frees_of(device_.index).begin_recording();
  // Relaxed: the allocator may need fresh memory.
  const cudaError_t status = cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed);
  if (status != cudaSuccess) {
    frees_of(device_.index).end_recording();
    set_stream(device_.index, before_);
  }
  check(status, "cudaStreamBeginCapture");
  set_begun(true);
}

void Recording::set_begun(bool has_begun) {
  const std::lock_guard lock(begun().mutex);
  std::erase(begun().all, this);
  if (has_begun) begun().all.push_back(this);
  begun().any = !begun().all.empty();
}

bool Recording::has_thread() const { return current_stream(device_.index) == stream(); }

Recording::Owned<cudaGraph_t, Recording::DestroyGraph> Recording::finish() noexcept {
  const Use use(device_);
  set_begun(false);
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream(), &graph) != cudaSuccess) cudaGetLastError();
  // Nothing is on the recording's stream for which the one before would have to wait.
  set_current_stream(device_.index, before_);
  frees_of(device_.index).end_recording();
  return Owned<cudaGraph_t, DestroyGraph>(graph);
}

std::size_t Recording::end() {
  const Use use(device_);
  const auto graph = finish();
  if (!graph) throw std::runtime_error("cuda: a graph could not be recorded");
  cudaGraphExec_t executable = nullptr;
  RENGA_CUDA(cudaGraphInstantiate(&executable, graph.get(), 0));
  graphs_.emplace_back(executable);
  return graphs_.size() - 1;
}

void Recording::discard() noexcept {
  if (current_recording() == this) finish();
}

void Recording::launch(std::size_t graph) const {
  require_no_recording("another graph");
  const Use use(device_);
  RENGA_CUDA(cudaGraphLaunch(graphs_.at(graph).get(), cuda::stream()));
}

void Recording::add_seed(std::uint64_t seed) {
  if (seeds_.size() == kMostSeeds) {
    throw std::runtime_error("cuda: expected at most " + std::to_string(kMostSeeds) +
                             " seeds in a recorded graph");
  }
  seeds_.emplace(seed, seeds_.size());
}

void Recording::set_seeds(std::span<const std::uint64_t> seeds) const {
  if (seeds.size() != seeds_.size()) {
    throw std::invalid_argument("cuda: expected " + std::to_string(seeds_.size()) + " seeds, got " +
                                std::to_string(seeds.size()));
  }
  if (seeds.empty()) return;
  const Use use(device_);
  // So few bytes are read before the call returns.
  RENGA_CUDA(cudaMemcpyAsync(seeds_on_device_, seeds.data(), seeds.size_bytes(),
                             cudaMemcpyHostToDevice, cuda::stream()));
}

const std::uint64_t* Recording::find_seed(std::uint64_t seed) const {
  const auto found = seeds_.find(seed);
  return found == seeds_.end() ? nullptr : seeds_on_device_ + found->second;
}

}  // namespace renga::cuda
