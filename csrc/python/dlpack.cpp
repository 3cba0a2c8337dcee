#include "python/dlpack.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "lazy/deferred.h"
#include "python/variable.h"
#include "tensor/error.h"

namespace renga::python {
namespace {

// The structures of DLPack's ABI, version 0.8, which every library reads.
struct DLTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  std::uint8_t dtype_code;
  std::uint8_t bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null for row-major
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr std::int32_t kHost = 1;
constexpr std::uint8_t kBfloat = 4;
constexpr std::int64_t kBytes = 2;

// A capsule that renga made points into this.
struct Exported {
  Array array;
  std::vector<std::int64_t> shape, strides;
  DLManagedTensor managed;
};

void delete_exported(DLManagedTensor* managed) { delete static_cast<Exported*>(managed->context); }

// The memory of a capsule that still has its first name has not been taken.
// An exporter that keeps the memory itself gives no deleter.
void delete_tensor(DLManagedTensor* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

void delete_unused(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName)) return;
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  delete_tensor(managed);
}

}  // namespace

py::capsule to_dlpack(const Array& x) {
  require<std::invalid_argument>(x.dtype() == Dtype::bfloat16 && x.device().is_host(),
                                 "dlpack: expected bfloat16 numbers in the host's memory");
  expose(x);
  auto exported = std::make_unique<Exported>(Exported{x, {}, {}, {}});
  exported->shape.assign(x.shape().begin(), x.shape().end());
  for (const std::int64_t step : x.strides()) exported->strides.push_back(step / kBytes);
  exported->managed = {{x.data(), kHost, 0, x.ndim(), kBfloat, 16, 1, exported->shape.data(),
                        exported->strides.data(), 0},
                       exported.get(),
                       &delete_exported};
  py::capsule capsule(&exported->managed, kName, &delete_unused);
  static_cast<void>(exported.release());  // the capsule's now
  return capsule;
}

Array from_dlpack(const py::capsule& capsule) {
  require<std::invalid_argument>(PyCapsule_IsValid(capsule.ptr(), kName),
                                 "from_dlpack: expected a capsule that has not been consumed");
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  const DLTensor& t = managed->tensor;
  require<std::invalid_argument>(
      t.dtype_code == kBfloat && t.bits == 16 && t.lanes == 1 && t.device_type == kHost,
      "from_dlpack: expected numbers of a dtype that renga has, in the host's memory");
  const std::span<const std::int64_t> extents(t.shape, static_cast<std::size_t>(t.ndim));
  const Shape shape(extents);
  Strides strides = row_major_strides(shape, kBytes);
  if (t.strides != nullptr) {
    for (int axis = 0; axis < t.ndim; ++axis) strides[axis] = t.strides[axis] * kBytes;
  }
  auto* data = static_cast<std::byte*>(t.data) + t.byte_offset;
  auto storage = make_ref<Storage>(data, static_cast<std::size_t>(shape.product() * kBytes),
                                   Device{}, [managed] { delete_tensor(managed); });
  PyCapsule_SetName(capsule.ptr(), kUsedName);
  storage->count_exposure();
  return Array(std::move(storage), data, shape, strides, Dtype::bfloat16);
}

void bind_dlpack(py::module_& m) {
  // Plain objects in the signatures: only Python 3.13 has a name for the type of capsules.
  m.def(
      "to_dlpack", [](const VariableBody& x) -> py::object { return to_dlpack(x.array()); },
      py::arg("x"), "A DLPack capsule over the memory of a variable of bfloat16 numbers.");
  m.def(
      "from_dlpack",
      [](const py::object& capsule) {
        return Variable(from_dlpack(py::reinterpret_borrow<py::capsule>(capsule))).body();
      },
      py::arg("capsule"), "A variable over the memory of a capsule of bfloat16 numbers.");
}

}  // namespace renga::python
