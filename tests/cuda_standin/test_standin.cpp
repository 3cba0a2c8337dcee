// The stand-in shows the faults of programs that hardware hides.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "cublas_v2.h"
#include "nccl.h"
#include "test_launch.h"

extern "C" {
void cuda_standin_seed(std::uint64_t seed);
void cuda_standin_fail(std::int64_t more, int error);
std::int64_t cuda_standin_waits();
}

namespace {

// The signal that ends a process that runs `body`; 0 if it returns.
template <class Body>
int signal_of(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    for (int signal : {SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void add_one(float* x) { x[threadIdx.x] += 1; }

void wait_unless_first(float*) {
  if (threadIdx.x > 0) __syncthreads();
}

void write_beyond_shared(float*) {
  static_cast<float*>(cuda_standin::shared_memory())[threadIdx.x] = 0;
}

// How often `faults(seed)` of 20 seeds.
template <class Faults>
int count_seeds(const Faults& faults) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    cuda_standin_seed(seed);
    count += faults();
  }
  return count;
}

// Whether a copy of 1 that another stream has yet to write arrives.
bool is_early(bool with_event) {
  float* x = device_floats(1);
  cudaStream_t other = nullptr;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEvent_t written = nullptr;
  cudaEventCreateWithFlags(&written, cudaEventDisableTiming);
  launch(1, 1, 0, other, fill, x, 1.0f);
  cudaEventRecord(written, other);
  if (with_event) cudaStreamWaitEvent(nullptr, written);
  const float y = to_host(x, 1)[0];
  cudaStreamDestroy(other);
  cudaEventDestroy(written);
  return y != 1;
}

}  // namespace

TEST_CASE("fresh memory is NaN, and only kernels and copies may touch it") {
  float* x = device_floats(4);
  CHECK(std::isnan(to_host(x, 4)[3]));
  CHECK(launch(1, 4, 0, nullptr, fill, x, 2.0f) == cudaSuccess);
  CHECK(to_host(x, 4)[3] == 2);
  CHECK(signal_of([x] { x[0] = 1; }) == SIGSEGV);
  float y = 0;
  CHECK(cudaMemcpyAsync(&y, x, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(&y, x, 1024, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
}

TEST_CASE("a kernel may touch its own device only") {
  float* x = device_floats(1);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaSetDevice(1);
  CHECK(launch(1, 1, 0, nullptr, fill, x, 1.0f) == cudaErrorIllegalAddress);
  CHECK(launch(1, 1, 0, stream, fill, x, 1.0f) == cudaErrorInvalidResourceHandle);
  cudaSetDevice(0);
}

TEST_CASE("a kernel's pointers are those of its device, also in structs") {
  struct Pair {
    int n;
    float* x;
  };
  float on_host = 0;
  float* const x = device_floats(4);
  const auto fill_pair = [](Pair pair) { pair.x[threadIdx.x] = static_cast<float>(pair.n); };
  void (*const kernel)(Pair) = fill_pair;
  CHECK(launch(1, 4, 0, nullptr, kernel, Pair{2, x}) == cudaSuccess);
  CHECK(launch(1, 1, 0, nullptr, fill, &on_host, 1.0f) == cudaErrorIllegalAddress);
  CHECK(launch(1, 1, 0, nullptr, kernel, Pair{2, &on_host}) == cudaErrorIllegalAddress);
  CHECK(on_host == 0);
}

TEST_CASE("a stream that was destroyed is not used") {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaStreamDestroy(stream);
  CHECK(signal_of([&] { cudaEventRecord(event, stream); }) == SIGABRT);
  CHECK(signal_of([&] { cudaStreamWaitEvent(stream, event); }) == SIGABRT);
  CHECK(signal_of([&] { cudaStreamSynchronize(stream); }) == SIGABRT);
}

TEST_CASE("a missing event shows") {
  CHECK(count_seeds([] { return is_early(false); }) > 0);
  CHECK(count_seeds([] { return is_early(true); }) == 0);
}

TEST_CASE("large copies wait for the stream, unless the host's memory is pinned") {
  constexpr std::size_t kSmall = 64 << 10;
  void *device = nullptr, *pinned = nullptr;
  REQUIRE(cudaMalloc(&device, 2 * kSmall) == cudaSuccess);
  REQUIRE(cudaMallocHost(&pinned, 2 * kSmall) == cudaSuccess);
  const std::vector<char> pageable(2 * kSmall);
  const auto waits = [&](const void* from, std::size_t bytes) {
    const std::int64_t before = cuda_standin_waits();
    REQUIRE(cudaMemcpyAsync(device, from, bytes, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
    return cuda_standin_waits() - before;
  };
  CHECK(waits(pageable.data(), kSmall) == 0);
  CHECK(waits(pageable.data(), kSmall + 1) == 1);
  CHECK(waits(pinned, 2 * kSmall) == 0);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

#ifndef CUDA_STANDIN_THREADS  // test_threads.cpp has what there is instead
TEST_CASE("a missing barrier shows") {
  float* y = device_floats(64);
  const auto is_wrong = [y](void (*kernel)(float*)) {
    launch(1, 64, 64 * sizeof(float), nullptr, kernel, y);
    const std::vector<float> got = to_host(y, 64);
    for (std::size_t i = 0; i < 64; ++i) {
      if (got[i] != static_cast<float>(63 - i)) return true;
    }
    return false;
  };
  CHECK(count_seeds([&] { return is_wrong(reverse<false>); }) == 20);
  CHECK(count_seeds([&] { return is_wrong(reverse<true>); }) == 0);
}
#endif

TEST_CASE("lanes of a warp exchange values") {
  float* y = device_floats(64);
  launch(1, 64, 0, nullptr, sum_of_warp, y);
  const std::vector<float> got = to_host(y, 64);
  CHECK(got[0] == 31 * 16);
  CHECK(got[63] == 31 * 16 + 32 * 32);
}

TEST_CASE("barriers that not all threads reach, and writes beyond shared memory, end the process") {
  float* y = device_floats(1);
  const auto run = [y](void (*kernel)(float*), unsigned threads, std::size_t shared) {
    return signal_of([=] {
      launch(1, threads, shared, nullptr, kernel, y);
      cudaDeviceSynchronize();
    });
  };
  CHECK(run(wait_unless_first, 32, 0) == SIGABRT);
  CHECK(run(write_beyond_shared, 5, 16) == SIGSEGV);
  CHECK(run(write_beyond_shared, 4, 16) == 0);
}

TEST_CASE("launches have limits") {
  float* y = device_floats(1);
  CHECK(launch(1, 1025, 0, nullptr, add_one, y) == cudaErrorInvalidConfiguration);
  CHECK(launch(0, 32, 0, nullptr, add_one, y) == cudaErrorInvalidConfiguration);
  CHECK(launch(1, 32, 64 << 10, nullptr, add_one, y) == cudaErrorInvalidConfiguration);
}

TEST_CASE("kernels have more shared memory than others if they ask for it") {
  float* y = device_floats(1);
  CHECK(cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10) ==
        cudaSuccess);
  CHECK(launch(1, 1, 64 << 10, nullptr, add_one, y) == cudaSuccess);
  CHECK(launch(1, 1, 65 << 10, nullptr, add_one, y) == cudaErrorInvalidConfiguration);
  CHECK(cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10) ==
        cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 << 10) ==
        cudaSuccess);
}

TEST_CASE("what is copied beside computations is there after a wait") {
  const auto copy = [](float* y, const float* x, bool waits) {
    auto* const shared = static_cast<float*>(cuda_standin::shared_memory());
    const auto row = reinterpret_cast<std::uintptr_t>(shared);
    cuda_standin::copy_later(row, x, true, 16);
    cuda_standin::end_copies();
    cuda_standin::copy_later(row + 16, x, false, 16);
    cuda_standin::end_copies();
    cuda_standin::wait_for_copies(1);
    if (waits) cuda_standin::wait_for_copies(0);
    for (int i = 0; i < 8; ++i) y[i] = shared[i];
    cuda_standin::wait_for_copies(0);
  };
  float *x = device_floats(4), *y = device_floats(8);
  REQUIRE(launch(1, 4, 0, nullptr, fill, x, 3.0f) == cudaSuccess);
  REQUIRE(launch(1, 1, 32, nullptr, +copy, y, x, true) == cudaSuccess);
  CHECK(to_host(y, 8) == std::vector<float>{3, 3, 3, 3, 0, 0, 0, 0});
  REQUIRE(launch(1, 1, 32, nullptr, +copy, y, x, false) == cudaSuccess);
  CHECK(std::isnan(to_host(y, 8)[4]));
}

// A product of matrices (16, 16) and (8, 16) of small integers, in which 16-bit numbers are stored.
void multiply_integers(float* y, bool is_transposed) {
  auto* const shared = static_cast<std::uint16_t*>(cuda_standin::shared_memory());
  const unsigned lane = threadIdx.x;
  // Row r of the left one is r + k, and of the right one 2 r + k at column k; that is stored by
  // columns if it is loaded transposed.
  for (unsigned i = lane; i < 256; i += 32) {
    const unsigned r = i / 16, k = i % 16;
    shared[i] = static_cast<std::uint16_t>(r + k);
    shared[256 + (is_transposed ? k * 16 + r : i)] = static_cast<std::uint16_t>(2 * r + k);
  }
  __syncthreads();
  const auto row = [&](unsigned r, unsigned column) {
    return reinterpret_cast<std::uintptr_t>(shared + r * 16 + column);
  };
  std::uint32_t a[4], b[4];
  cuda_standin::load_matrices(row(lane % 16, lane / 16 * 8), false, a);
  const unsigned right = is_transposed ? lane % 16 : lane / 16 * 8 + lane % 8;
  const unsigned column = is_transposed ? lane / 16 * 8 : lane / 8 % 2 * 8;
  cuda_standin::load_matrices(row(16 + right, column), is_transposed, b);
  float sums[4] = {};
  cuda_standin::add_product(a, b[0], b[1], sums,
                            [](std::uint16_t bits) { return static_cast<float>(bits); });
  for (unsigned e = 0; e < 4; ++e) {
    y[(lane / 4 + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2] = sums[e];
  }
}

TEST_CASE("warps load and multiply matrices") {
  std::vector<float> wanted;
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 8; ++c) {
      float& sum = wanted.emplace_back(0.0f);
      for (int k = 0; k < 16; ++k) sum += static_cast<float>((r + k) * (2 * c + k));
    }
  }
  float* y = device_floats(128);
  for (bool is_transposed : {false, true}) {
    REQUIRE(launch(1, 32, 1024, nullptr, multiply_integers, y, is_transposed) == cudaSuccess);
    CHECK(to_host(y, 128) == wanted);
  }
}

TEST_CASE("a graph runs what was captured, as often as it is launched") {
  float* x = device_floats(1);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  REQUIRE(launch(1, 1, 0, stream, fill, x, 0.0f) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  for (int i = 0; i < 2; ++i) REQUIRE(launch(1, 1, 0, stream, add_one, x) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamSynchronize(stream);
  CHECK(to_host(x, 1)[0] == 0);
  for (int i = 0; i < 3; ++i) REQUIRE(cudaGraphLaunch(executable, nullptr) == cudaSuccess);
  cudaGraphExecDestroy(executable);  // launches go on
  CHECK(to_host(x, 1)[0] == 6);
  cudaStreamDestroy(stream);
}

TEST_CASE("a graph does not run whose memory was freed") {
  float* x = device_floats(1);
  cudaStream_t stream = nullptr;
  cudaStreamCaptureStatus status{};
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  REQUIRE(launch(1, 1, 0, stream, fill, x, 0.0f) == cudaSuccess);
  REQUIRE(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusNone);
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  CHECK(cudaGraphLaunch(executable, stream) == cudaSuccess);
  cudaFree(x);
  CHECK(cudaGraphLaunch(executable, stream) == cudaErrorIllegalAddress);
  cudaGetLastError();
  cudaGraphExecDestroy(executable);
  cudaStreamDestroy(stream);
}

TEST_CASE("an event is recorded on its own device") {
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  CHECK(cudaEventRecord(event, nullptr) == cudaSuccess);
  cudaSetDevice(1);
  CHECK(cudaEventRecord(event, nullptr) == cudaErrorInvalidResourceHandle);
  cudaSetDevice(0);
  cudaGetLastError();
  cudaEventDestroy(event);
}

TEST_CASE("what cannot be captured makes the graph invalid") {
  float* x = device_floats(1);
  float y = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t before = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
  cudaEventRecord(before, nullptr);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed) ==
        cudaErrorStreamCaptureUnsupported);
  const auto capture = [&](const auto& call) {
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    CHECK(call() != cudaSuccess);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
  };
  capture([&] { return cudaStreamSynchronize(stream); });
  capture([&] { return cudaDeviceSynchronize(); });
  capture([&] { return cudaMemcpyAsync(x, &y, 4, cudaMemcpyHostToDevice, stream); });
  capture([&] { return cudaMemcpyAsync(&y, x, 4, cudaMemcpyDeviceToHost, stream); });
  capture([&] { return cudaStreamWaitEvent(stream, before); });
  capture([&] { return cudaFree(x); });
  cudaGetLastError();
  cudaEventDestroy(before);
  cudaStreamDestroy(stream);
}

TEST_CASE("calls fail when they are told to") {
  void* block = nullptr;
  cuda_standin_fail(1, cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&block, 4) == cudaSuccess);
  CHECK(cudaMalloc(&block, 4) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&block, 4) == cudaSuccess);
}

TEST_CASE("cuBLAS refuses matrices that do not fit") {
  float *a = device_floats(6), *c = device_floats(4);
  const float one = 1, zero = 0, host[] = {1, 2, 3, 4, 5, 6};
  cudaMemcpyAsync(a, host, sizeof host, cudaMemcpyHostToDevice);
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  void* workspace = nullptr;
  REQUIRE(cudaMalloc(&workspace, 4096) == cudaSuccess);
  REQUIRE(cublasSetWorkspace(handle, workspace, 4096) == CUBLAS_STATUS_SUCCESS);
  const auto multiply = [&](std::int64_t lda, cudaDataType_t type) {
    return cublasGemmStridedBatchedEx_64(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 3, &one, a, type,
                                         lda, 0, a, type, lda, 0, &zero, c, CUDA_R_32F, 2, 0, 1,
                                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  };
  // Columns (1, 2), (3, 4), (5, 6), times their transpose.
  CHECK(multiply(2, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(to_host(c, 4) == std::vector<float>{35, 44, 44, 56});
  CHECK(multiply(1, CUDA_R_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(multiply(3, CUDA_R_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(multiply(2, CUDA_R_64F) == CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_CASE("ranks on two threads call collectives while the other runs operations") {
  constexpr int kCalls = 2000;
  constexpr std::size_t kSize = 4;
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<float> results[2];
  const auto rank = [&](int r) {
    cudaSetDevice(r);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, r, &config);
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEvent_t done = nullptr;
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    float* x = device_floats(kSize);
    const float host[kSize] = {1, 2, 3, 4};
    cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, stream);
    for (int i = 0; i < kCalls; ++i) {
      ncclAllReduce(x, x, kSize, ncclFloat32, ncclAvg, comm, stream);
      cudaEventRecord(done, stream);
      while (cudaEventQuery(done) == cudaErrorNotReady) std::this_thread::yield();
    }
    results[r] = to_host(x, kSize);
    ncclCommAbort(comm);
    cudaStreamDestroy(stream);
    cudaEventDestroy(done);
    cudaFree(x);
  };
  std::thread first(rank, 0), second(rank, 1);
  first.join();
  second.join();
  for (const std::vector<float>& result : results) CHECK(result == std::vector<float>{1, 2, 3, 4});
}
