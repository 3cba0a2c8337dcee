// An epilogue says what is added to the sums of a product before they are rounded and written.
#pragma once

#include "tensor/array.h"

namespace renga {

struct Epilogue {
  Array bias = {};           // a number for each column, of any float dtype; or undefined
  bool accumulates = false;  // adds to what is in the result
};

}  // namespace renga
