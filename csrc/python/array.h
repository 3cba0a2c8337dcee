// NumPy arrays as Arrays and back, without copying.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/array.h"

namespace renga::python {

namespace py = pybind11;

// The memory of an ndarray as an Array; the ndarray lives as long as the Array's storage does.
// Arrays of foreign byte order or misaligned elements are copied. Throws TypeError for dtypes that
// the core lacks; `what` names the argument in the error.
Array from_numpy(py::handle ndarray, const char* what = nullptr);
// The memory of an ndarray or of a Variable to write a result into, never a copy of it. `what`
// names the argument in errors. Throws TypeError for other objects and dtypes, ValueError for
// memory that is read-only, of foreign byte order or misaligned, or in which two elements overlap.
Array writable_array(py::handle ndarray, const char* what);
std::vector<Array> writable_arrays(const py::iterable& ndarrays, const char* what);
// A numpy.ndarray over the Array's memory; of a bfloat16 array, a copy in float32 that is
// read-only, so that no write to it is lost in silence.
py::object to_numpy(const Array& x);

// Returns what to_numpy() does, or an array of a CUDA device over the memory there.
py::object to_python(const Array& x);
// Returns what to_python() does, but a Variable for an Array on the device meta: there is no such
// ndarray.
py::object array_to_python(const Array& x);

Dtype dtype_from_python(py::handle dtype);
py::dtype dtype_to_python(Dtype dtype);

// A Python integer, or anything that stands for one; the largest or smallest number for those
// that do not fit, which no operation takes for an axis or an extent. None for other objects.
std::optional<std::int64_t> integer_from_python(py::handle object);
// An integer argument of an operation, read so.
struct Integer {
  std::int64_t value = 0;
  operator std::int64_t() const { return value; }
};

bool is_ndarray(py::handle object);
// Whether it is a numpy.ndarray or an array of a CUDA device, and its memory as from_numpy's.
bool is_array(py::handle object);
Array from_python(py::handle array);
bool has_known_dtype(py::handle ndarray);
// The dtype of a writable, aligned, C-contiguous numpy.ndarray (not of a subclass); none for other
// objects.
std::optional<Dtype> plain_dtype(py::handle object);

}  // namespace renga::python

namespace pybind11::detail {

template <>
struct type_caster<renga::Array> {
  PYBIND11_TYPE_CASTER(renga::Array,
                       io_name("numpy.ndarray | renga.Variable | float", "numpy.ndarray"));
  bool load(handle source, bool convert);
  static handle cast(const renga::Array& x, return_value_policy, handle) {
    return x.defined() ? renga::python::array_to_python(x).release() : none().release();
  }
};

template <>
struct type_caster<renga::OutputArray> {
  PYBIND11_TYPE_CASTER(renga::OutputArray, io_name("numpy.ndarray", "numpy.ndarray"));
  bool load(handle source, bool) {
    if (source.is_none()) return false;
    value.array = renga::python::writable_array(source, "array to be updated in place");
    return true;
  }
  static handle cast(const renga::OutputArray& x, return_value_policy, handle) {
    return renga::python::to_python(x.array).release();
  }
};

template <>
struct type_caster<renga::Dims> {
  // The second name is that of arguments that are not converted.
  PYBIND11_TYPE_CASTER(renga::Dims,
                       io_name("int | collections.abc.Sequence[int]", "int | tuple[int, ...]"));
  bool load(handle source, bool convert);
  static handle cast(const renga::Dims& dims, return_value_policy, handle) {
    tuple t(static_cast<std::size_t>(dims.size()));
    for (int i = 0; i < dims.size(); ++i) t[static_cast<std::size_t>(i)] = int_(dims[i]);
    return t.release();
  }
};

template <>
struct type_caster<renga::python::Integer> {
  PYBIND11_TYPE_CASTER(renga::python::Integer, io_name("typing.SupportsIndex", "int"));
  bool load(handle source, bool convert);
  static handle cast(renga::python::Integer x, return_value_policy, handle) {
    return int_(x.value).release();
  }
};

template <>
struct type_caster<renga::Dtype> {
  PYBIND11_TYPE_CASTER(renga::Dtype, const_name("numpy.dtype"));
  bool load(handle source, bool) {
    value = renga::python::dtype_from_python(source);
    return true;
  }
  static handle cast(renga::Dtype dtype, return_value_policy, handle) {
    return renga::python::dtype_to_python(dtype).release();
  }
};

}  // namespace pybind11::detail
