#include "ops/convolution/cuda/plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "devices/cuda/cudnn.h"
#include "devices/cuda/event.h"
#include "devices/cuda/handles.h"
#include "devices/cuda/recording.h"
#include "ops/shape/image.h"
#include "settings/settings.h"

namespace renga {
namespace convolution {
namespace {

using cuda::Descriptor;

constexpr std::int64_t kX = 1, kW = 2, kY = 3;  // the tensors' ids in a graph

// Which engines a convolution may run on.
struct Options {
  bool deterministic = current(&Settings::deterministic);
  bool autotune = current(&Settings::autotune);
  std::int64_t workspace_bytes = cudnn_workspace_bytes;
};

cudnnDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return CUDNN_DATA_HALF;
    case Dtype::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

std::span<const std::int64_t> span_of(const Dims& dims) {
  return {dims.begin(), static_cast<std::size_t>(dims.size())};
}

// Strides are in elements, those of axes of one element included: from them cuDNN tells the layout.
Dims channels_last_strides(const Shape& shape) {
  Dims strides = shape;
  std::int64_t step = 1;
  const Axes order = channels_last_axes(shape.size());
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

Descriptor tensor(const Array& x, std::int64_t id) {
  const Dims strides = channels_last_strides(x.shape());
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(x.dtype()))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, span_of(x.shape()))
      .set(CUDNN_ATTR_TENSOR_STRIDES, span_of(strides))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::span(&id, 1))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::span(&kPlanAlignment, 1))
      .finalize();
  return tensor;
}

// The window, padded at the end as far as the last position reaches (`cover_all`).
Descriptor convolution(const Problem& p) {
  const int axes = p.x.ndim() - 2;
  Dims after;
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t covered =
        p.window.covered(p.y.shape(2 + axis), p.W.shape(2 + axis), axis) - p.window.pad[axis];
    after.push_back(std::max(p.window.pad[axis], covered - p.x.shape(2 + axis)));
  }
  const std::int64_t count = axes;
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::span(&count, 1))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, span_of(p.window.pad))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, span_of(after))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, span_of(p.window.stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, span_of(p.window.dilate))
      .finalize();
  return convolution;
}

// The names of a pass: its descriptor and the attributes of its operation.
struct PassNames {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t convolution, x, W, y, alpha, beta;
};

PassNames names_of(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Pass::input_grad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Pass::weight_grad:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// A graph of one operation, with what it is made of.
struct Graph {
  Graph(const Problem& p, cudnnHandle_t handle)
      : x(tensor(p.x, kX)),
        W(tensor(p.W, kW)),
        y(tensor(p.y, kY)),
        convolved(convolution(p)),
        operation(names_of(p.pass).descriptor),
        graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    const PassNames names = names_of(p.pass);
    operation.set(names.convolution, convolved).set(names.x, x).set(names.W, W).set(names.y, y);
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f).set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
    is_supported = operation.try_finalize();
    if (!is_supported) return;
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    is_supported = graph.try_finalize();
  }
  Descriptor x, W, y, convolved, operation, graph;
  bool is_supported = false;
};

// The notes say what the engine of a configuration does to numbers.
std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& configuration) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t found = engine.get();
  configuration.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                     std::span(&found, 1));
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const std::int64_t count =
      engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, std::span(notes));
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

// float32 is rounded (to TF32) in precision `medium` only; sums of bfloat16 numbers never are.
bool is_allowed(cudnnBackendNumericalNote_t note, bool rounds, bool deterministic) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      return rounds;
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      return false;
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return !deterministic;
    default:
      return true;
  }
}

// An execution plan, with what it was made from.
struct Plan {
  std::shared_ptr<const Graph> graph;
  Descriptor configuration, plan;
  std::int64_t workspace_bytes;
};

// Engines' configurations from the best to the slowest.
std::vector<Descriptor> configurations(const Graph& graph, cudnnBackendHeurMode_t mode) {
  constexpr std::size_t kMost = 32;
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (!heuristics.try_finalize()) return {};
  std::vector<Descriptor> all;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < kMost; ++i) {
    raw.push_back(all.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  }
  const std::int64_t count =
      heuristics.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::span(raw));
  all.erase(all.begin() + std::min<std::int64_t>(count, kMost), all.end());
  return all;
}

void execute(const Plan& plan, const Problem& p, cudnnHandle_t handle) {
  const Array workspace = empty({plan.workspace_bytes}, Dtype::uint8, p.x.device());
  const std::array<void*, 3> data{p.x.data(), p.W.data(), p.y.data()};
  const std::array<std::int64_t, 3> ids{kX, kW, kY};
  Descriptor operands(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  operands.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(data))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
           static_cast<void*>(workspace.data()))
      .finalize();
  RENGA_CUDA(cudnnBackendExecute(handle, plan.plan.get(), operands.get()));
}

// The milliseconds of a second run: the first one may load the kernel.
float time_of(const Plan& plan, const Problem& p, cudnnHandle_t handle) {
  const cuda::Event begin, end;
  execute(plan, p, handle);
  begin.record(cuda::stream());
  execute(plan, p, handle);
  end.record(cuda::stream());
  return end.milliseconds_since(begin);
}

// The plans that do what the options allow, the one that cuDNN expects to be the best first: only
// this one unless they are to be timed.
std::vector<std::shared_ptr<const Plan>> make_plans(const Problem& p, bool rounds,
                                                    const Options& options, cudnnHandle_t handle) {
  const std::size_t most = options.autotune ? 10 : 1;
  std::vector<std::shared_ptr<const Plan>> plans;
  const auto graph = std::make_shared<const Graph>(p, handle);
  if (!graph->is_supported) return plans;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& configuration : configurations(*graph, mode)) {
      const auto notes = notes_of(configuration);
      const bool allowed = std::all_of(notes.begin(), notes.end(), [&](auto note) {
        return is_allowed(note, rounds, options.deterministic);
      });
      if (!allowed) continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
          .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (!plan.try_finalize()) continue;
      std::int64_t bytes = 0;
      plan.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, std::span(&bytes, 1));
      if (bytes > options.workspace_bytes) continue;
      plans.push_back(std::make_shared<const Plan>(
          Plan{graph, std::move(configuration), std::move(plan), bytes}));
      if (plans.size() == most) return plans;
    }
  }
  return plans;
}

// The best plan; nullptr if there is none.
std::shared_ptr<const Plan> make_plan(const Problem& p, bool rounds, const Options& options,
                                      cudnnHandle_t handle) {
  const auto plans = make_plans(p, rounds, options, handle);
  if (plans.size() < 2) return plans.empty() ? nullptr : plans.front();
  std::vector<float> times;
  for (const auto& plan : plans) times.push_back(time_of(*plan, p, handle));
  return plans[static_cast<std::size_t>(std::min_element(times.begin(), times.end()) -
                                        times.begin())];
}

// A handle with the plans that were made for it. One thread at a time uses them, as cuDNN does not
// promise that several may execute one plan.
struct Planner {
  // A program with ever new shapes must not fill the memory: a full table is emptied.
  static constexpr std::size_t kMost = 1024;
  cudnnHandle_t handle = nullptr;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const Plan>> plans;
  // Recorded graphs go on using the kernels of their plans, which may be compiled for these alone.
  std::set<std::shared_ptr<const Plan>> recorded;
};

Planner* create_planner() {
  auto planner = std::make_unique<Planner>();
  RENGA_CUDA(cudnnCreate(&planner->handle));
  return planner.release();
}

std::atomic<std::size_t> plans_kept{0};  // of all planners

std::shared_ptr<const Plan> plan_for(const Problem& p, Planner& planner) {
  if (!current(&Settings::cudnn)) return nullptr;
  const Options options;
  const bool all_float32 = p.x.dtype() == Dtype::float32;
  const bool rounds = !all_float32 || compute_precision() == Precision::medium;
  auto key = p.key();
  key.insert(key.end(), {rounds, options.deterministic, options.autotune, options.workspace_bytes,
                         p.x.device().index});
  const auto found = planner.plans.find(key);
  if (found != planner.plans.end()) return found->second;
  const auto plan = make_plan(p, rounds, options, planner.handle);
  if (planner.plans.size() == Planner::kMost) {
    plans_kept -= planner.plans.size();
    planner.plans.clear();
  }
  planner.plans[std::move(key)] = plan;
  ++plans_kept;
  return plan;
}

}  // namespace

bool run_plan(const Problem& p) {
  const cuda::Use use(p.x.device());
  const cuda::Lease<Planner*, create_planner> planner;
  const cudnnHandle_t handle = planner.get()->handle;
  RENGA_CUDA(cudnnSetStream(handle, cuda::stream()));
  const auto plan = plan_for(p, *planner.get());
  if (!plan) return false;
  if (cuda::current_recording() != nullptr) planner.get()->recorded.insert(plan);
  execute(*plan, p, handle);
  return true;
}

}  // namespace convolution

std::size_t convolution_plans() { return convolution::plans_kept; }

}  // namespace renga
