// Ranges of an axis are tuples (start, length, step) in Python.
#pragma once

#include <pybind11/pybind11.h>

#include "ops/shape/manipulation.h"

namespace pybind11::detail {

template <>
struct type_caster<renga::Range> {
  PYBIND11_TYPE_CASTER(renga::Range, const_name("tuple[int, int, int]"));
  bool load(handle source, bool) {
    if (!PyTuple_Check(source.ptr()) || PyTuple_GET_SIZE(source.ptr()) != 3) return false;
    const auto t = reinterpret_borrow<tuple>(source);
    value = {t[0].cast<std::int64_t>(), t[1].cast<std::int64_t>(), t[2].cast<std::int64_t>()};
    return true;
  }
  static handle cast(const renga::Range& r, return_value_policy, handle) {
    return make_tuple(r.start, r.length, r.step).release();
  }
};

}  // namespace pybind11::detail
