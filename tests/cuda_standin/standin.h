// The parts of the stand-in share this. Everything runs under one lock, one operation at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <random>

#include "cuda_runtime.h"

namespace cuda_standin {

inline constexpr int kDevices = 2;
// Bytes of shared memory that a block may have, and that it has unless a kernel asks for more.
inline constexpr std::size_t kMostShared = 99 << 10, kShared = 48 << 10;

// The one lock: with two, a thread that adds an operation and one that runs operations would wait
// for each other. A thread that calls run_until() must not hold it.
std::recursive_mutex& mutex();

// Prints a fault of the program that uses CUDA, and aborts: hardware would compute garbage.
[[noreturn]] void fault(const char* text);

// Counts a call of the API: the error that a test injected at it, or success. All functions of the
// API that can fail begin with it.
cudaError_t begin_call();
// Keeps an error for cudaGetLastError, and returns it.
cudaError_t failed(cudaError_t error);

std::mt19937_64& random();
// A number below n.
std::uint64_t random_below(std::uint64_t n);

// The thread's current device.
int current_device();

// An operation on a stream; it runs once it is the first one and `ready` (or always, if that is
// empty).
struct Operation {
  std::function<void()> run;
  std::function<bool()> ready;
  // Whether it can run now: its arguments are in memory that is allocated, and its plan is there.
  // Empty for what always can.
  std::function<bool(cudaStream_t)> can_run = {};
};
// Adds an operation to a stream, or to the current device's default stream (nullptr). Sometimes
// runs others: streams are late, but not always.
cudaError_t enqueue(cudaStream_t stream, Operation operation);
// The graph that a stream is captured into; nullptr for a stream that runs.
CudaStandinGraph*& capture_of(cudaStream_t stream);
// A fault if the stream was destroyed: hardware may then do anything.
void require_known(cudaStream_t stream);
// Counts a launch.
void count_launch();
// The error of what cannot be captured, after which the graph is invalid.
cudaError_t refuse_in_capture(CudaStandinGraph& graph, cudaError_t error);
void add_to_graph(CudaStandinGraph& graph, Operation operation);
// Lets threads that wait look again at what is ready.
void wake();
// The device of a stream, by default the current one.
int device_of(cudaStream_t stream);
// Runs operations, of all streams in random order, until `done`.
void run_until(const std::function<bool()>& done);

// Makes the memory of a device accessible to kernels and copies in a scope. As changing this is
// slow, it stays so after the scope, until the memory of another device is accessed or end_access()
// is called. The program itself never has access.
class Access {
 public:
  explicit Access(int device);
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

 private:
  int device_;
};
void end_access();
// The device of an address, -1 for the host's.
int device_at(const void* address);
// Whether [data, data + bytes) is in one block of a device.
bool is_allocated(int device, const void* data, std::size_t bytes);
bool is_pinned(const void* address);

// Runs all threads of a kernel.
void run_grid(const cudaLaunchConfig_t& config, const std::function<void()>& body);

}  // namespace cuda_standin
