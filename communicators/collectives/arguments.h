// Checks of the arrays that one rank calls a collective with. Each returns the call, which the
// ranks compare then, or throws InvalidType.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/reduce.h"
#include "context/call.h"

namespace renga {

// None for "". Communication dtypes are passed by name, because NumPy has no bfloat16. Throws
// std::invalid_argument for a dtype that is not floating.
std::optional<Dtype> floating_dtype(const std::string& name);

void require_same_form(const char* name, const Array& x, const Array& y);

// The calls that the ranks compare; the arguments are those of Communicator's methods. Throw
// InvalidType if they do not fit together.
Call all_reduce_call(const std::vector<Array>& xs, const std::vector<Array>& ys,
                     Reduction reduction, std::optional<Dtype> communication_dtype);
Call reduce_scatter_call(const Array& x, const Array& y, Reduction reduction, int ranks);
Call all_gather_call(const Array& x, const Array& y, int ranks);
Call all_to_all_call(const Array& x, const Array& y, int ranks);

}  // namespace renga
