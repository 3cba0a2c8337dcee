// Options of operations: value structs in C++, tuples of their members in Python.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>

#include "ops/window.h"
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

}  // namespace renga::python

namespace pybind11::detail {

template <>
struct type_caster<renga::Window>
    : renga::python::OptionsCaster<renga::Window, renga::Dims, renga::Dims, renga::Dims,
                                   std::int64_t> {
  static handle cast(const renga::Window& w, return_value_policy, handle) {
    return pybind11::cast(std::tuple(w.stride, w.pad, w.dilate, w.groups)).release();
  }
};

template <>
struct type_caster<renga::PoolingWindow>
    : renga::python::OptionsCaster<renga::PoolingWindow, renga::Pair, renga::Pair, renga::Pair> {
  static handle cast(const renga::PoolingWindow& w, return_value_policy, handle) {
    return pybind11::cast(std::tuple(w.ksize, w.stride, w.pad)).release();
  }
};

}  // namespace pybind11::detail
