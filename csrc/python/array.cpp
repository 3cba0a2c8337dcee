#include "python/array.h"

#include <limits>

#include "python/cuda_array.h"
#include "python/interpreter.h"
#include "python/variable.h"
#include "tensor/views.h"

namespace renga::python {

const DeviceArrays* device_arrays = nullptr;

namespace {

bool is_device_array(py::handle object) {
  return device_arrays != nullptr && device_arrays->is(object);
}

// NumPy's type numbers, which its ABI fixes.
std::optional<Dtype> dtype_of_number(int number, std::size_t itemsize) {
  using api = py::detail::npy_api;
  switch (number) {
    case api::NPY_BOOL_:
      return Dtype::bool_;
    case api::NPY_BYTE_:
      return Dtype::int8;
    case api::NPY_UBYTE_:
      return Dtype::uint8;
    case api::NPY_SHORT_:
      return Dtype::int16;
    case api::NPY_USHORT_:
      return Dtype::uint16;
    case api::NPY_INT_:
      return Dtype::int32;
    case api::NPY_LONG_:
    case api::NPY_LONGLONG_:
      return itemsize == 8 ? Dtype::int64 : Dtype::int32;
    case api::NPY_UINT_:
      return Dtype::uint32;
    case api::NPY_ULONG_:
    case api::NPY_ULONGLONG_:
      return itemsize == 8 ? Dtype::uint64 : Dtype::uint32;
    case 23:
      return Dtype::float16;  // NPY_HALF, which pybind11 does not name
    case api::NPY_FLOAT_:
      return Dtype::float32;
    case api::NPY_DOUBLE_:
      return Dtype::float64;
    default:
      return std::nullopt;
  }
}

py::handle shared_dtype(Dtype dtype) {
  // Created once and never freed: a lookup in NumPy costs as much as a small operation.
  static PyObject* cached[std::size(kDtypeNames)] = {};
  PyObject*& slot = cached[static_cast<int>(dtype)];
  if (slot == nullptr) {
    // NumPy has no bfloat16.
    const Dtype shown = dtype == Dtype::bfloat16 ? Dtype::float32 : dtype;
    slot = py::dtype(std::string(name_of(shown))).release().ptr();
  }
  return slot;
}

// The dtype of a descriptor that is one of NumPy's own, of which there is one object each.
std::optional<Dtype> own_dtype(const PyObject* descriptor) {
  for (Dtype dtype :
       {Dtype::float32, Dtype::float64, Dtype::int32, Dtype::int64, Dtype::float16, Dtype::uint8,
        Dtype::bool_, Dtype::int8, Dtype::int16, Dtype::uint16, Dtype::uint32, Dtype::uint64}) {
    if (shared_dtype(dtype).ptr() == descriptor) return dtype;
  }
  return std::nullopt;
}

std::optional<Dtype> any_dtype(const py::dtype& dtype) {
  return dtype_of_number(dtype.num(), static_cast<std::size_t>(dtype.itemsize()));
}

// The dtype of any descriptor; one the core lacks is Python's TypeError, about `what` if it is
// given.
Dtype known_dtype(const py::dtype& dtype, const char* what = nullptr) {
  if (const auto known = any_dtype(dtype)) return *known;
  const auto name = py::str(dtype).cast<std::string>();
  if (what == nullptr) throw py::type_error("renga has no dtype " + name);
  throw py::type_error(std::string(what) +
                       ": expected an array of real numbers or bools, got dtype " + name);
}

constexpr int kAligned = py::detail::npy_api::NPY_ARRAY_ALIGNED_;

// The capsules that keep storages for ndarrays have this name.
constexpr const char* kCapsule = "renga.Storage";

void release_storage(PyObject* capsule) {
  static_cast<Storage*>(PyCapsule_GetPointer(capsule, kCapsule))->release();
}

// The storage of an ndarray's memory: the core's own if to_numpy made the ndarray, else borrowed.
Ref<Storage> storage_of(PyObject* ndarray, std::size_t bytes) {
  const auto* x = py::detail::array_proxy(ndarray);
  if (x->base != nullptr && PyCapsule_IsValid(x->base, kCapsule)) {
    return Ref<Storage>(static_cast<Storage*>(PyCapsule_GetPointer(x->base, kCapsule)));
  }
  Py_INCREF(ndarray);
  return make_ref<Storage>(x->data, bytes, Device{}, [ndarray] { release(ndarray); });
}

// An aligned array of native byte order, without copying.
Array wrap(PyObject* ndarray, Dtype dtype) {
  const auto* x = py::detail::array_proxy(ndarray);
  Shape shape(std::span<const std::int64_t>(x->dimensions, static_cast<std::size_t>(x->nd)));
  Strides strides(std::span<const std::int64_t>(x->strides, static_cast<std::size_t>(x->nd)));
  const auto bytes = static_cast<std::size_t>(shape.product() * size_of(dtype));
  return Array(storage_of(ndarray, bytes), reinterpret_cast<std::byte*>(x->data), shape, strides,
               dtype);
}

}  // namespace

std::optional<std::int64_t> integer_from_python(py::handle object) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!index) {
    PyErr_Clear();
    return std::nullopt;
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  using Limits = std::numeric_limits<std::int64_t>;
  if (overflow != 0) return overflow > 0 ? Limits::max() : Limits::min();
  return value;
}

bool is_ndarray(py::handle object) {
  return py::detail::npy_api::get().PyArray_Check_(object.ptr());
}

bool has_known_dtype(py::handle ndarray) {
  return own_dtype(py::detail::array_proxy(ndarray.ptr())->descr) ||
         any_dtype(py::reinterpret_borrow<py::array>(ndarray).dtype());
}

std::optional<Dtype> plain_dtype(py::handle object) {
  using api = py::detail::npy_api;
  constexpr int needed =
      api::NPY_ARRAY_ALIGNED_ | api::NPY_ARRAY_WRITEABLE_ | api::NPY_ARRAY_C_CONTIGUOUS_;
  if (Py_TYPE(object.ptr()) != api::get().PyArray_Type_) return std::nullopt;
  const auto* proxy = py::detail::array_proxy(object.ptr());
  return (proxy->flags & needed) == needed ? own_dtype(proxy->descr) : std::nullopt;
}

Dtype dtype_from_python(py::handle given) {
  return known_dtype(py::dtype::from_args(py::reinterpret_borrow<py::object>(given)));
}

py::dtype dtype_to_python(Dtype dtype) {
  return py::reinterpret_borrow<py::dtype>(shared_dtype(dtype));
}

Array from_numpy(py::handle object, const char* what) {
  const auto* proxy = py::detail::array_proxy(object.ptr());
  const auto own = own_dtype(proxy->descr);
  if (own && (proxy->flags & kAligned)) return wrap(object.ptr(), *own);
  auto x = py::reinterpret_borrow<py::array>(object);
  const Dtype dtype = known_dtype(x.dtype(), what);
  if (x.dtype().byteorder() == '>' || !(x.flags() & kAligned)) {
    x = x.attr("astype")(shared_dtype(dtype)).cast<py::array>();
  }
  return wrap(x.ptr(), dtype);
}

Array writable_array(py::handle object, const char* what) {
  using api = py::detail::npy_api;
  if (is_device_array(object)) return device_arrays->from(object);
  if (!is_ndarray(object)) {
    if (!py::isinstance<VariableBody>(object)) {
      throw py::type_error(std::string(what) + ": expected a numpy.ndarray, got " +
                           py::str(py::type::of(object)).cast<std::string>());
    }
    Array x = object.cast<const VariableBody&>().array();
    require<std::invalid_argument>(x.defined(), what, ": expected an initialized Variable");
    expose(x);
    // Python shows a copy of these.
    if (x.dtype() == Dtype::bfloat16 || !x.device().is_host()) return x;
    return writable_array(object.attr("array"), what);
  }
  const auto* proxy = py::detail::array_proxy(object.ptr());
  auto own = own_dtype(proxy->descr);
  if (!own) {
    const auto dtype = py::reinterpret_borrow<py::array>(object).dtype();
    own = known_dtype(dtype, what);
    require<std::invalid_argument>(dtype.byteorder() != '>', what,
                                   ": expected an array of native byte order, got dtype ",
                                   py::str(dtype).cast<std::string>());
  }
  require<std::invalid_argument>(proxy->flags & api::NPY_ARRAY_WRITEABLE_, what,
                                 ": expected an array that may be written to, got a read-only one");
  require<std::invalid_argument>(proxy->flags & kAligned, what,
                                 ": expected an array whose elements are aligned in memory");
  const Array x = wrap(object.ptr(), *own);
  require<std::invalid_argument>(
      has_distinct_elements(x), what,
      ": expected an array whose elements do not overlap in memory, got shape ", x.shape(),
      " with strides ", x.strides());
  return x;
}

std::vector<Array> writable_arrays(const py::iterable& ndarrays, const char* what) {
  std::vector<Array> result;
  for (const py::handle x : ndarrays) result.push_back(writable_array(x, what));
  return result;
}

py::object to_numpy(const Array& given) {
  // Copies, of bfloat16 and of other devices, are read-only, so that no write is lost in silence;
  // and so are arrays that repeat elements, as NumPy's are.
  const bool is_writable =
      given.dtype() != Dtype::bfloat16 && given.device().is_host() && has_distinct_elements(given);
  const Array on_host = to_device(given, Device{});
  const Array x = given.dtype() == Dtype::bfloat16 ? cast(on_host, Dtype::float32) : on_host;
  expose(x);
  x.storage()->acquire();
  const auto owner = py::reinterpret_steal<py::object>(
      PyCapsule_New(x.storage().get(), kCapsule, &release_storage));
  auto& api = py::detail::npy_api::get();
  py::ssize_t shape[Dims::capacity], strides[Dims::capacity];
  std::copy(x.shape().begin(), x.shape().end(), shape);
  std::copy(x.strides().begin(), x.strides().end(), strides);
  auto array = py::reinterpret_steal<py::object>(api.PyArray_NewFromDescr_(
      api.PyArray_Type_, shared_dtype(x.dtype()).inc_ref().ptr(), x.ndim(), shape, strides,
      x.data(), is_writable ? py::detail::npy_api::NPY_ARRAY_WRITEABLE_ : 0, nullptr));
  if (!array) throw py::error_already_set();
  if (api.PyArray_SetBaseObject_(array.ptr(), owner.inc_ref().ptr()) < 0) {
    throw py::error_already_set();
  }
  return array;
}

py::object to_python(const Array& x) {
  const bool there = device_arrays != nullptr && device_arrays->has(x.device());
  return there ? device_arrays->to(x) : to_numpy(x);
}

py::object array_to_python(const Array& x) {
  return x.device().is_meta() ? py::cast(Variable(x).body()) : to_python(x);
}

bool is_array(py::handle object) { return is_ndarray(object) || is_device_array(object); }

Array from_python(py::handle array) {
  return is_ndarray(array) ? from_numpy(array) : device_arrays->from(array);
}

}  // namespace renga::python

namespace pybind11::detail {

bool type_caster<renga::Array>::load(handle source, bool) {
  if (renga::python::is_array(source)) {
    value = renga::python::from_python(source);
    return true;
  }
  if (isinstance<renga::VariableBody>(source)) {
    const auto& body = source.cast<const renga::VariableBody&>();
    renga::require(body.metadata().defined() || !body.host_view,
                   "expected an array of numbers, got a Variable of another dtype");
    value = body.array();
    if (value.defined()) renga::expose(value);
    return true;
  }
  // NumPy's scalars and Python's numbers are arrays without axes.
  if (!PyNumber_Check(source.ptr())) return false;
  const auto array = reinterpret_steal<object>(npy_api::get().PyArray_FromAny_(
      source.ptr(), nullptr, 0, 0, npy_api::NPY_ARRAY_ENSUREARRAY_, nullptr));
  if (!array) {
    PyErr_Clear();
    return false;
  }
  value = renga::python::from_numpy(array);
  return true;
}

bool type_caster<renga::Dims>::load(handle source, bool convert) {
  value = renga::Dims();
  const auto append = [&](handle number) {
    const auto integer = renga::python::integer_from_python(number);
    if (integer) value.push_back(*integer);
    return integer.has_value();
  };
  // Arrays without axes are sequences to Python, too.
  const bool is_list = PyTuple_Check(source.ptr()) || PyList_Check(source.ptr());
  if (!is_list && append(source)) return true;
  // An argument that is not converted is an integer or a tuple, as Chainer's axes to be reduced.
  if (!convert && !PyTuple_Check(source.ptr())) return false;
  if (!PySequence_Check(source.ptr()) || PyUnicode_Check(source.ptr()) ||
      PyBytes_Check(source.ptr())) {
    return false;
  }
  // Objects, not handles: the items of an array are made when they are asked for.
  for (const object item : reinterpret_borrow<sequence>(source)) {
    if (!append(item)) return false;
  }
  return true;
}

bool type_caster<renga::python::Integer>::load(handle source, bool) {
  const auto integer = renga::python::integer_from_python(source);
  if (integer) value.value = *integer;
  return integer.has_value();
}

}  // namespace pybind11::detail
