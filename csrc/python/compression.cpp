#include "python/compression.h"

#include <type_traits>

#include "compression/compression.h"
#include "python/array.h"

namespace renga::python {
namespace {

// The type as which Python's argument for a parameter is read.
template <class Parameter, class Argument>
using GivenAs = std::conditional_t<std::is_same_v<Argument, Out>, const OutputArray&, Parameter>;

const Array& passed(const OutputArray& x) { return x.array; }
template <class T>
const T& passed(const T& x) {
  return x;
}

// Binds every listed function.
struct FunctionBinder {
  py::module_& m;

  template <class Result, class... Parameters, class... Arguments>
  void operator()(const char* name, Result (*function)(Parameters...), const char* doc,
                  const Arguments&... arguments) const {
    const auto call = [function](GivenAs<Parameters, Arguments>... given) {
      return function(passed(given)...);
    };
    m.def(name, call, py::arg(arguments.name)..., doc);
  }
};

}  // namespace

void bind_compression(py::module_& core) {
  py::module_ m = core.def_submodule("compression", "Kernels of the compression of gradients.");
  list_compression_functions(FunctionBinder{m});
  m.attr("QUANTIZATION_BLOCK") = kQuantizationBlock;
  m.attr("SIGN_BLOCK") = kSignBlock;
}

}  // namespace renga::python
