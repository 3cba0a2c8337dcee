// The functions of one element and of two, which are compiled apart.
#pragma once

#include "ops/elementwise/elementwise.h"

namespace renga::elementwise_cpu {

void unary(Unary map, double p, double q, const Array& x, const Array& y);
void quaternary(Quaternary map, const Array& a, const Array& b, const Array& c, const Array& d,
                const Array& y);
void binary(Binary map, double p, const Array& a, const Array& b, const Array& y);

}  // namespace renga::elementwise_cpu
