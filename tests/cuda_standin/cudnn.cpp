// cuDNN's graph API for single convolutions, as loops. Of the engines that it offers, the first one
// rounds its operands, the second sums in any order, the third takes much memory.
#include "cudnn.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "numbers.h"
#include "standin.h"

using namespace cuda_standin;
using Integers = std::vector<std::int64_t>;

struct CudnnStandin {
  int device;
  cudaStream_t stream = nullptr;
};

namespace {

enum Engine : std::int64_t { kRounding, kUnordered, kLarge, kPlain, kEngines };

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, std::vector<char>> attributes;

  template <class T = std::int64_t>
  std::vector<T> all(int name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), values.size() * sizeof(T));
    return values;
  }
  template <class T = std::int64_t>
  T one(int name) const {
    const std::vector<T> values = all<T>(name);
    if (values.size() != 1) fault("cudnn: an attribute that is not one value");
    return values[0];
  }
  const Descriptor& descriptor(int name) const { return *one<const Descriptor*>(name); }
};

struct Tensor {
  explicit Tensor(const Descriptor& d)
      : kind(d.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        extents(d.all(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(d.all(CUDNN_ATTR_TENSOR_STRIDES)),
        id(d.one(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        alignment(d.one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) {}

  Kind number_kind() const {
    return kind == CUDNN_DATA_HALF       ? Kind::float16
           : kind == CUDNN_DATA_BFLOAT16 ? Kind::bfloat16
                                         : Kind::float32;
  }
  // Whether channels are last, and everything is dense. Axes of one element count, too: cuDNN may
  // take other strides of theirs for another layout.
  bool is_channels_last() const {
    std::int64_t step = 1;
    const auto dense = [&](std::size_t axis) {
      const bool fits = strides[axis] == step;
      step *= extents[axis];
      return fits;
    };
    bool fits = dense(1);
    for (std::size_t axis = extents.size() - 1; axis >= 2; --axis) fits = dense(axis) && fits;
    return dense(0) && fits;
  }
  std::int64_t size() const {
    return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  }

  cudnnDataType_t kind;
  Integers extents, strides;
  std::int64_t id, alignment;
};

// y = x * W, of which `result` is computed.
struct Convolution {
  explicit Convolution(const Descriptor& operation) : Convolution(operation, base_of(operation)) {}
  Convolution(const Descriptor& o, Integers names)
      : x(o.descriptor(static_cast<int>(names[0]))),
        W(o.descriptor(static_cast<int>(names[1]))),
        y(o.descriptor(static_cast<int>(names[2]))),
        result(o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 2
               : o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 0
                                                                                        : 1) {
    const Descriptor& c = o.descriptor(static_cast<int>(names[3]));
    before = c.all(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    after = c.all(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    stride = c.all(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    dilate = c.all(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    axes = c.one(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    correlates =
        c.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION;
    scaled = o.one<float>(static_cast<int>(names[4])) != 1 ||
             o.one<float>(static_cast<int>(names[5])) != 0;
  }
  static Integers base_of(const Descriptor& o) {
    switch (o.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return {704, 703, 705, 702, 700, 701};
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return {710, 709, 711, 708, 706, 707};
      default:
        return {716, 715, 717, 714, 712, 713};
    }
  }

  std::int64_t groups() const { return x.extents[1] / W.extents[1]; }

  cudnnStatus_t check() const {
    const auto n = static_cast<std::size_t>(axes);
    if (axes < 2 || axes > 3) return CUDNN_STATUS_NOT_SUPPORTED;
    for (const Integers* values : {&before, &after, &stride, &dilate}) {
      if (values->size() != n) return CUDNN_STATUS_BAD_PARAM;
    }
    const bool fits = x.extents.size() == n + 2 && W.extents.size() == n + 2 &&
                      y.extents.size() == n + 2 && x.extents[0] == y.extents[0] &&
                      x.extents[1] % W.extents[1] == 0 && W.extents[0] == y.extents[1] &&
                      y.extents[1] % groups() == 0;
    if (!fits || !correlates || scaled) return CUDNN_STATUS_BAD_PARAM;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t reach = (W.extents[2 + i] - 1) * dilate[i] + 1;
      const std::int64_t slack = x.extents[2 + i] + before[i] + after[i] - reach;
      if (slack < 0 || slack / stride[i] + 1 != y.extents[2 + i]) return CUDNN_STATUS_BAD_PARAM;
    }
    const bool one_layout = x.is_channels_last() && W.is_channels_last() && y.is_channels_last();
    if (!one_layout) return CUDNN_STATUS_NOT_SUPPORTED;
    // Operands are of one type; weight gradients may be float32.
    const cudnnDataType_t images = x.kind;
    const bool one_kind = y.kind == images && (W.kind == images || (result == 1 && W.kind == 0));
    return one_kind && images != CUDNN_DATA_DOUBLE ? CUDNN_STATUS_SUCCESS
                                                   : CUDNN_STATUS_NOT_SUPPORTED;
  }

  Tensor x, W, y;
  int result;
  Integers before, after, stride, dilate;
  std::int64_t axes;
  bool correlates, scaled;
};

const Descriptor& operation_of(const Descriptor& graph) {
  return graph.descriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

double rounded(double v) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(v)) & 0xffffe000u;
  return static_cast<double>(std::bit_cast<float>(bits));
}

// Goes through all products x W of an output y.
void convolve(const Convolution& c, const std::vector<void*>& data, bool rounds) {
  const Tensor* tensors[] = {&c.x, &c.W, &c.y};
  const Tensor& result = *tensors[c.result];
  std::vector<double> sums(static_cast<std::size_t>(result.size()));
  const auto next = [](Integers& at, const Integers& extents, std::size_t first) {
    for (std::size_t i = extents.size(); i-- > first;) {
      if (++at[i] < extents[i]) return true;
      at[i] = 0;
    }
    return false;
  };
  const auto offset = [](const Integers& at, const Tensor& t) {
    return std::inner_product(at.begin(), at.end(), t.strides.begin(), std::int64_t{0});
  };
  const auto number = [&](int which, std::int64_t i) {
    const double v = read(data[static_cast<std::size_t>(which)], tensors[which]->number_kind(), i);
    return rounds ? rounded(v) : v;
  };
  const std::int64_t in = c.W.extents[1], out = c.W.extents[0] / c.groups();
  Integers y(c.y.extents.size()), w(c.W.extents.size()), x(c.x.extents.size());
  do {
    std::fill(w.begin(), w.end(), 0);
    w[0] = y[1];
    do {
      x[0] = y[0];
      x[1] = y[1] / out * in + w[1];
      bool inside = true;
      for (std::size_t i = 2; i < x.size(); ++i) {
        x[i] = y[i] * c.stride[i - 2] - c.before[i - 2] + w[i] * c.dilate[i - 2];
        inside = inside && x[i] >= 0 && x[i] < c.x.extents[i];
      }
      if (!inside) continue;
      const std::int64_t at[] = {offset(x, c.x), offset(w, c.W), offset(y, c.y)};
      const int a = c.result == 0 ? 1 : 0, b = c.result == 2 ? 1 : 2;
      sums[static_cast<std::size_t>(at[c.result])] += number(a, at[a]) * number(b, at[b]);
    } while (next(w, c.W.extents, 1));
  } while (next(y, c.y.extents, 0));
  void* to = data[static_cast<std::size_t>(c.result)];
  for (std::size_t i = 0; i < sums.size(); ++i) {
    write(to, result.number_kind(), static_cast<std::int64_t>(i), sums[i]);
  }
}

std::int64_t workspace_of(std::int64_t engine) {
  return engine == kLarge ? std::int64_t{1} << 40 : 1024;
}

std::vector<cudnnBackendNumericalNote_t> notes_of(std::int64_t engine, bool float32) {
  if (engine == kRounding && float32) {
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
  }
  if (engine == kUnordered) return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  return {};
}

Descriptor& of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor);
}

// Copies values out of a descriptor.
template <class T>
cudnnStatus_t give(const std::vector<T>& values, std::int64_t most, std::int64_t* count,
                   void* elements) {
  *count = static_cast<std::int64_t>(values.size());
  std::copy_n(values.begin(), std::min(*count, most), static_cast<T*>(elements));
  return CUDNN_STATUS_SUCCESS;
}

// Those that exist.
std::set<cudnnBackendDescriptor_t>& descriptors() {
  static auto* const all = new std::set<cudnnBackendDescriptor_t>;
  return *all;
}

// Whether a graph may run a plan that it has recorded: with it, hardware may unload its kernels.
bool is_there(cudnnBackendDescriptor_t plan) {
  const std::lock_guard lock(mutex());
  if (descriptors().contains(plan)) return true;
  std::fprintf(stderr, "CUDA stand-in: a graph has a plan of cuDNN that was destroyed\n");
  failed(cudaErrorIllegalAddress);
  return false;
}

// Attributes of our own.
constexpr int kEngine = -1, kGraph = -2;

template <class T>
void put(Descriptor& d, int name, const T& value) {
  const auto* bytes = reinterpret_cast<const char*>(&value);
  d.attributes[name].assign(bytes, bytes + sizeof value);
}

}  // namespace

extern "C" {
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS         ? "CUDNN_STATUS_SUCCESS"
         : status == CUDNN_STATUS_BAD_PARAM     ? "CUDNN_STATUS_BAD_PARAM"
         : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                : "CUDNN_STATUS_EXECUTION_FAILED";
}

// Tests set this version.
std::size_t cuda_standin_cudnn = 90100;
std::size_t cudnnGetVersion() { return cuda_standin_cudnn; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (begin_call()) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new CudnnStandin{current_device()};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Descriptor{type, false, {}};
  const std::lock_guard lock(mutex());
  descriptors().insert(*descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete &of(descriptor);
  const std::lock_guard lock(mutex());
  descriptors().erase(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* elements) {
  Descriptor& d = of(descriptor);
  if (d.finalized) return CUDNN_STATUS_BAD_PARAM;
  const bool is_wide = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_HANDLE ||
                       type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* others = static_cast<const cudnnBackendDescriptor_t*>(elements);
    for (std::int64_t i = 0; i < count; ++i) {
      if (!of(others[i]).finalized) return CUDNN_STATUS_BAD_PARAM;
    }
  }
  const auto* bytes = static_cast<const char*>(elements);
  d.attributes[name].assign(bytes, bytes + count * (is_wide ? 8 : 4));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (begin_call()) return CUDNN_STATUS_EXECUTION_FAILED;
  Descriptor& d = of(descriptor);
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      for (std::int64_t extent : d.all(CUDNN_ATTR_TENSOR_DIMENSIONS)) {
        if (extent < 1) return CUDNN_STATUS_BAD_PARAM;
      }
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      if (const cudnnStatus_t status = Convolution(d).check()) return status;
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      put(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
          workspace_of(d.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).one(kEngine)));
      break;
    default:
      break;
  }
  d.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t most,
                                       std::int64_t* count, void* elements) {
  const Descriptor& d = of(descriptor);
  if (!d.finalized) return CUDNN_STATUS_BAD_PARAM;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      // Fills in the descriptors that it is given.
      auto* configurations = static_cast<cudnnBackendDescriptor_t*>(elements);
      const Descriptor* graph = &d.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      *count = std::min<std::int64_t>(most, kEngines);
      for (std::int64_t i = 0; i < *count; ++i) {
        put(of(configurations[i]), kEngine, i);
        put(of(configurations[i]), kGraph, graph);
        of(configurations[i]).finalized = true;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor& engine = of(*static_cast<cudnnBackendDescriptor_t*>(elements));
      engine.attributes = d.attributes;
      engine.finalized = true;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const Convolution convolution(operation_of(d.descriptor(kGraph)));
      const bool float32 = convolution.x.kind == CUDNN_DATA_FLOAT;
      return give(notes_of(d.one(kEngine), float32), most, count, elements);
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(d.all(name), most, count, elements);
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t operands) {
  if (begin_call()) return CUDNN_STATUS_EXECUTION_FAILED;
  if (of(plan).one<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != handle) {
    fault("cudnn: a plan of another handle");
  }
  const Descriptor& engine = of(plan).descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Convolution c(operation_of(engine.descriptor(kGraph)));
  const Integers ids = of(operands).all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = of(operands).all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::vector<void*> data;
  for (const Tensor* tensor : {&c.x, &c.W, &c.y}) {
    const auto at = std::find(ids.begin(), ids.end(), tensor->id) - ids.begin();
    if (at == static_cast<std::ptrdiff_t>(pointers.size())) return CUDNN_STATUS_BAD_PARAM;
    data.push_back(pointers[static_cast<std::size_t>(at)]);
    const auto bytes = static_cast<std::size_t>(tensor->size() * size_of(tensor->number_kind()));
    if (device_at(data.back()) != handle->device ||
        !is_allocated(handle->device, data.back(), bytes)) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    // Hardware would end all that the process computes on the device.
    if (reinterpret_cast<std::uintptr_t>(data.back()) % tensor->alignment != 0) {
      fault("cudnn: an array that is not aligned as its descriptor says");
    }
  }
  const std::int64_t number = engine.one(kEngine);
  void* workspace = of(operands).one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const auto bytes = static_cast<std::size_t>(workspace_of(number));
  if (!is_allocated(handle->device, workspace, bytes)) return CUDNN_STATUS_BAD_PARAM;
  const bool rounds = number == kRounding && c.x.kind == CUDNN_DATA_FLOAT;
  const auto run = [=, device = handle->device] {
    const Access memory(device);
    std::memset(workspace, 0xff, bytes);
    convolve(c, data, rounds);
  };
  const auto can_run = [plan](cudaStream_t) { return is_there(plan); };
  return enqueue(handle->stream, {run, {}, can_run}) ? CUDNN_STATUS_EXECUTION_FAILED
                                                     : CUDNN_STATUS_SUCCESS;
}
}
