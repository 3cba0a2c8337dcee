// Every operation refuses undefined arguments by name.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ops/ops.h"

namespace renga {
namespace {

// An argument of an operation: variables are undefined, lists have one, and optional ones are
// given or left out.
template <class T>
T argument(bool gives_optional) {
  if constexpr (std::is_same_v<T, std::optional<Variable>> ||
                std::is_same_v<T, std::optional<Array>>) {
    return gives_optional ? T(std::in_place) : T();
  } else if constexpr (std::is_same_v<T, std::vector<Variable>>) {
    return T(1);
  } else {
    return T();
  }
}

template <class Result, class... Args>
std::string error_of(Result (*function)(Args...), bool gives_optional) {
  try {
    function(argument<std::decay_t<Args>>(gives_optional)...);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

template <class... Args>
constexpr bool takes_arrays = ((std::is_same_v<std::decay_t<Args>, Variable> ||
                                std::is_same_v<std::decay_t<Args>, Array> ||
                                std::is_same_v<std::decay_t<Args>, std::vector<Variable>>) ||
                               ...);

// Operations whose errors are those of another one.
const std::map<std::string, std::string> kOthers{
    {"reciprocal", "divide_into"},
    {"max_pooling_2d_with_indices", "max_pooling_2d"},
    {"pad_by_copy", "pad"},
    {"softmax_nll", "softmax_cross_entropy"},
};

}  // namespace

TEST_CASE("operations name themselves in the error for undefined arguments") {
  list_ops(
      []<class Result, class... Args>(const Op& op, Result (*function)(Args...), const auto&...) {
        if constexpr (takes_arrays<Args...>) {
          const auto other = kOthers.find(op.name);
          const std::string name = other == kOthers.end() ? op.name : other->second;
          for (const bool gives_optional : {false, true}) {
            const std::string error = error_of(function, gives_optional);
            CHECK_MESSAGE(error.starts_with(name + ": "), name << ": " << error);
          }
        }
      });
}

}  // namespace renga
