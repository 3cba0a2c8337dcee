#include "python/calls/ranks.h"

#include <pybind11/stl.h>

#include "python/interpreter.h"

namespace renga::python {

PythonGather::PythonGather(py::function function) : function_(function.release().ptr(), &release) {}

Array PythonGather::operator()(const Array& own) const {
  const GilAcquire lock;
  return py::cast<Array>(function()(to_python(own)));
}

}  // namespace renga::python

namespace pybind11::detail {

using renga::python::PythonGather;
using Members = std::tuple<function, bool, std::optional<std::int64_t>>;

bool type_caster<renga::StatisticsGroup>::load(handle source, bool convert) {
  make_caster<Members> members;
  if (!members.load(source, convert)) return false;
  auto [gather, common, first] = cast_op<Members>(std::move(members));
  value = {PythonGather(std::move(gather)), common, first};
  return true;
}

handle type_caster<renga::StatisticsGroup>::cast(const renga::StatisticsGroup& ranks,
                                                 return_value_policy, handle) {
  const auto& gather = *ranks.all_gather.target<PythonGather>();
  return pybind11::make_tuple(gather.function(), ranks.shared_parameters, ranks.channel_offset)
      .release();
}

}  // namespace pybind11::detail
