// Ways of reducing a vector over a group by messages.
//
// `direct` and `whole` bring the operands together where they are reduced. The others reduce on the
// way, so they take partial operands (see reduce.h) and leave a partial result, of n elements of
// `dtype`, in `x`. All but `ring` take the operands in the order of reduce.h.
#pragma once

#include <cstdint>

#include "collectives/group.h"
#include "collectives/reduce.h"

namespace renga::all_reduce {

// What there is to do to a vector, in place.
struct Vector {
  std::byte* x;
  std::int64_t n;
  Dtype dtype;
  Reduction reduction;

  std::int64_t bytes() const { return n * size_of(dtype); }
};

// Everybody sends all of it to everybody: one step.
void whole(const Group& group, const Vector& v);
// Everybody reduces a share and hands it round: two steps, the least bytes there can be.
void direct(const Group& group, const Vector& v);

// Partners twice as far away in every step swap all of it.
void recursive_doubling(const Group& group, const Vector& v);
// Partners swap halves of what they have, then hand the results back the same way (Rabenseifner,
// Optimization of collective reduction operations, ICCS 2004).
void rabenseifner(const Group& group, const Vector& v);
// Along a binomial tree to its root and back.
void tree(const Group& group, const Vector& v);
// Shares travel round a ring twice. Each begins its way at another place, so the order of the
// operands, and with it the last bits of floating sums, is not that of the other ways.
void ring(const Group& group, const Vector& v);
// Shares are reduced within rows of `width` places, then along columns, then handed round the rows.
// `width` is a power of two that divides the group's size.
void torus(const Group& group, const Vector& v, int width);

}  // namespace renga::all_reduce
