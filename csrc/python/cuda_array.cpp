#include "python/cuda_array.h"

#include <pybind11/stl.h>

#include "devices/streams.h"
#include "lazy/deferred.h"
#include "python/interpreter.h"
#include "python/uploads.h"
#include "python/variable.h"
#include "tensor/views.h"

namespace renga::python {
namespace {

// Python registers these objects, which are never freed, as arrays are converted while the
// interpreter exits.
struct RegisteredTypes {
  py::object type;
  py::function make;    // the array over the memory of a Variable, which it references
  py::function owner;   // the Variable whose memory an array is part of, None for other memory
  py::function follow;  // sets the stream of this thread to the one on which arrays are used
};
RegisteredTypes* registered = nullptr;

bool is_cuda(Device device) {
  return !device.is_host() && !device.is_meta() && driver_of(device).name() == "cuda";
}

py::tuple tuple_of(const Dims& dims) {
  py::tuple t(static_cast<std::size_t>(dims.size()));
  for (int i = 0; i < dims.size(); ++i) t[static_cast<std::size_t>(i)] = py::int_(dims[i]);
  return t;
}

// How an array on a CUDA device describes its memory to other libraries, version 3 of the protocol.
py::dict cuda_array_interface(const VariableBody& v) {
  const Array& known = v.metadata();
  if (!known.defined() || !is_cuda(known.device())) {
    throw py::attribute_error("expected a Variable on a CUDA device");
  }
  const Array& x = v.array();
  if (x.dtype() == Dtype::bfloat16) {
    throw py::type_error("__cuda_array_interface__: expected a dtype of NumPy, got bfloat16");
  }
  expose(x);
  py::dict described;
  described["shape"] = tuple_of(x.shape());
  described["strides"] = tuple_of(x.strides());
  described["typestr"] = dtype_to_python(x.dtype()).attr("str");
  described["data"] = py::make_tuple(reinterpret_cast<std::uintptr_t>(x.data()), false);
  described["version"] = 3;
  return described;
}

// The bytes from the first element in memory to the end of the last.
std::size_t extent_in_memory(const Shape& shape, const Strides& strides, Dtype dtype) {
  if (shape.product() == 0) return 0;
  std::int64_t bytes = size_of(dtype);
  for (int i = 0; i < shape.size(); ++i) bytes += (shape[i] - 1) * std::abs(strides[i]);
  return static_cast<std::size_t>(bytes);
}

Ref<Storage> storage_of(py::handle array, std::byte* data, std::size_t bytes) {
  const py::object owner = registered->owner(array);
  if (VariableBody* body = owner.is_none() ? nullptr : variable_body(owner)) {
    return body->array().storage();
  }
  const auto index = array.attr("device").attr("id").cast<std::int16_t>();
  const Device device{device_from_string("cuda:0").driver, index};
  PyObject* kept = py::reinterpret_borrow<py::object>(array).release().ptr();
  return make_ref<Storage>(data, bytes, device, [kept] { release(kept); });
}

bool is_device_array(py::handle object) { return py::isinstance(object, registered->type); }

py::object to_device_array(const Array& given) {
  const Array x = given.dtype() == Dtype::bfloat16 ? cast(given, Dtype::float32) : given;
  expose(x);
  return registered->make(Variable(x));
}

Array from_device_array(py::handle array) {
  const py::dict described = array.attr("__cuda_array_interface__");
  const Dtype dtype = dtype_from_python(described["typestr"]);
  const auto shape = described["shape"].cast<Dims>();
  Strides strides = row_major_strides(shape, size_of(dtype));
  if (described.contains("strides") && !described["strides"].is_none()) {
    strides = described["strides"].cast<Dims>();
  }
  auto* data =
      reinterpret_cast<std::byte*>(described["data"].cast<py::tuple>()[0].cast<std::uintptr_t>());
  return Array(storage_of(array, data, extent_in_memory(shape, strides, dtype)), data, shape,
               strides, dtype);
}

void follow_stream(py::handle array) { registered->follow(array); }

constexpr DeviceArrays kConversions{&is_cuda, &is_device_array, &to_device_array,
                                    &from_device_array, &follow_stream};

}  // namespace

void bind_device_arrays(py::module_& m) {
  bind_uploads(m);
  m.attr("Variable").attr("__cuda_array_interface__") =
      py::module_::import("builtins").attr("property")(py::cpp_function(&cuda_array_interface));
  m.def(
      "set_device_arrays",
      [](const py::object& type, const py::function& make, const py::function& owner,
         const py::function& follow) {
        if (registered == nullptr) registered = new RegisteredTypes;
        *registered = {type, make, owner, follow};
        device_arrays = &kConversions;
      },
      py::arg("type"), py::arg("make"), py::arg("owner"), py::arg("follow"),
      "Sets what arrays on CUDA devices are in Python: their type, make(variable) for an array "
      "over a variable's memory, owner(array), the variable that owns an array's memory or None, "
      "and follow(array), which has this thread compute on the stream on which the array is used.");
  m.def(
      "copy_array",
      [](const Array& x, const OutputArray& y) {
        const Array there = to_device(x, y.array.device());
        copy(broadcast_view("copy", there, y.array.shape()), y.array);
      },
      py::arg("x"), py::arg("y"), "Copies x, stretched to the shape of y, into y.");
  m.def(
      "fill_array", [](const OutputArray& x, double value) { fill(x.array, value); }, py::arg("x"),
      py::arg("value"), "Sets every element of an array.");
  m.def(
      "copy_of",
      [](const Variable& x, bool requires_grad) {
        return Variable(copy_of(x.array()), requires_grad);
      },
      py::arg("x"), py::arg("requires_grad") = false,
      "A copy on the same device, in the same order in memory, outside the graph.");
  m.def(
      "lent",
      [](const Variable& x) {
        const Array& array = x.array();
        return Variable(Array(make_ref<Storage>(array.storage()), array.data(), array.shape(),
                              array.strides(), array.dtype()));
      },
      py::arg("x"),
      "A Variable outside the graph over the same memory, which is its own as long as it lives.");
  m.def(
      "addresses",
      [](const std::vector<Variable>& xs) {
        std::vector<std::uintptr_t> all;
        for (const Variable& x : xs) {
          all.push_back(reinterpret_cast<std::uintptr_t>(x.array().data()));
        }
        return all;
      },
      py::arg("xs"), "Where the numbers of Variables are.");
  m.def(
      "synchronize",
      [](const std::string& name) {
        const Device device = device_from_string(name);
        driver_of(device).synchronize(device.index);
      },
      py::arg("device"), "Waits for everything that was started on a device.");
  m.def(
      "throw_failures",
      [](const std::string& name) { throw_failures(device_from_string(name).index); },
      py::arg("device"), "Raises what has failed on a device, such as a collective.");
}

}  // namespace renga::python
