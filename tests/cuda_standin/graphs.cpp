// Graphs: operations that a stream was to run, kept to run them as often as the graph is launched.
#include <vector>

#include "standin.h"

using namespace cuda_standin;

struct CudaStandinGraph {
  int device = 0;
  std::vector<Operation> operations;
  bool is_valid = true;
};

struct CudaStandinExecutable {
  int device = 0;
  std::vector<Operation> operations;
};

namespace cuda_standin {

cudaError_t refuse_in_capture(CudaStandinGraph& graph, cudaError_t error) {
  graph.is_valid = false;
  return failed(error);
}

void add_to_graph(CudaStandinGraph& graph, Operation operation) {
  if (operation.ready) fault("a graph has an operation that waits for other streams");
  graph.operations.push_back(std::move(operation));
}

}  // namespace cuda_standin

extern "C" {
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  require_known(stream);
  // The default stream cannot be captured, and memory is allocated meanwhile.
  if (stream == nullptr || mode != cudaStreamCaptureModeRelaxed || capture_of(stream) != nullptr) {
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  capture_of(stream) = new CudaStandinGraph{device_of(stream), {}};
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  *graph = std::exchange(capture_of(stream), nullptr);
  if (*graph == nullptr) return failed(cudaErrorInvalidValue);
  if ((*graph)->is_valid) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return failed(cudaErrorStreamCaptureInvalidated);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(mutex());
  require_known(stream);
  *status =
      capture_of(stream) == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (const cudaError_t error = begin_call()) return error;
  *executable = new CudaStandinExecutable{graph->device, graph->operations};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  if (device_of(stream) != executable->device) return failed(cudaErrorInvalidValue);
  for (const Operation& operation : executable->operations) {
    // Hardware may find others' numbers there.
    if (operation.can_run && !operation.can_run(stream)) return cudaErrorIllegalAddress;
  }
  count_launch();
  for (const Operation& operation : executable->operations) {
    if (const cudaError_t error = enqueue(stream, operation)) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

// A graph that is in flight has operations of its own.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
}
