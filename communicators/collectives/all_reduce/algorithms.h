// Algorithms that reduce a vector over a group of ranks by messages.
//
// `all_gather` and `direct` send the operands to where they are reduced. The others reduce while
// they communicate: they take partial operands (see reduce.h) and leave a partial result in `x`.
// All but `ring` combine the operands in the order of reduce.h.
#pragma once

#include <cstdint>

#include "collectives/partition.h"
#include "collectives/rank_group.h"
#include "collectives/reduce.h"

namespace renga::all_reduce {

// A vector to be reduced in place.
struct Vector {
  std::byte* x;
  std::int64_t n;
  Dtype dtype;
  ReduceOp reduction;

  std::int64_t bytes() const { return n * size_of(dtype); }
  // The part that position `i` of `count` reduces.
  std::span<std::byte> partition_of(int i, int count) const {
    const Interval range = partition(bytes(), i, count);
    return byte_span(x + range.begin, range.length());
  }
};

// Every rank sends its whole vector to every other: one step.
void all_gather(const RankGroup& group, const Vector& v);
// Every rank reduces one partition and sends the result to all: two steps, and the least bytes.
void direct(const RankGroup& group, const Vector& v);

// Partners at distance 1, 2, 4, … exchange their whole vectors.
void recursive_doubling(const RankGroup& group, const Vector& v);
// Partners exchange halves of what they have (reduce-scatter by recursive halving), then the
// results in the reverse order (all-gather by recursive doubling).
// Source: Rabenseifner, Optimization of collective reduction operations, ICCS 2004.
void rabenseifner(const RankGroup& group, const Vector& v);
// Reduces to the root of a binomial tree and broadcasts from there.
void tree(const RankGroup& group, const Vector& v);
// Partitions travel around a ring twice. Each starts at another rank, so the order of the operands,
// and with it the last bits of floating sums, differs from that of the other algorithms.
void ring(const RankGroup& group, const Vector& v);
// Reduce-scatter within rows of `width` ranks, all-reduce along columns, all-gather within rows.
// `width` is a power of two that divides the group's size.
void torus(const RankGroup& group, const Vector& v, int width);

}  // namespace renga::all_reduce
