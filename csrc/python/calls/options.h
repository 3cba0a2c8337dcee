// Options of operations: value structs in C++, tuples of their members in Python.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>

#include "ops/shape/window.h"
#include "python/array.h"

namespace renga::python {

// A caster for `Options`, whose members have the types `Members` in order.
template <class Options, class... Members>
struct OptionsCaster {
  PYBIND11_TYPE_CASTER(Options, pybind11::detail::const_name("tuple"));
  using Tuple = pybind11::detail::make_caster<std::tuple<Members...>>;

  bool load(pybind11::handle source, bool convert) {
    Tuple tuple;
    if (!tuple.load(source, convert)) return false;
    value = std::apply([](auto&&... members) { return Options{members...}; },
                       pybind11::detail::cast_op<std::tuple<Members...>>(tuple));
    return true;
  }
};

// (rows, columns).
struct PairOption {
  renga::Pair value{};
  operator renga::Pair() const { return value; }
};

}  // namespace renga::python

namespace pybind11::detail {

template <>
struct type_caster<renga::python::PairOption> {
  PYBIND11_TYPE_CASTER(renga::python::PairOption, const_name("tuple[int, int]"));
  bool load(handle source, bool convert) {
    make_caster<renga::Dims> dims;
    if (!dims.load(source, convert)) return false;
    const renga::Dims& pair = cast_op<const renga::Dims&>(dims);
    if (pair.size() != 2) return false;
    value.value = {pair[0], pair[1]};
    return true;
  }
};

template <>
struct type_caster<renga::Window>
    : renga::python::OptionsCaster<renga::Window, renga::Dims, renga::Dims, renga::Dims,
                                   renga::python::Integer> {
  static handle cast(const renga::Window& w, return_value_policy, handle) {
    return pybind11::cast(std::tuple(w.stride, w.pad, w.dilate, w.groups)).release();
  }
};

template <>
struct type_caster<renga::PoolingWindow>
    : renga::python::OptionsCaster<renga::PoolingWindow, renga::python::PairOption,
                                   renga::python::PairOption, renga::python::PairOption> {
  static handle cast(const renga::PoolingWindow& w, return_value_policy, handle) {
    return pybind11::cast(std::tuple(w.ksize, w.stride, w.pad)).release();
  }
};

}  // namespace pybind11::detail
