#include <vector>

#include "collectives/all_reduce/algorithms.h"

namespace renga::all_reduce {

namespace {

// Receives `own` of every rank, to which sent(r) is that of this one.
template <class Sent>
void gather_and_reduce(const RankGroup& group, const Vector& v, std::span<std::byte> own,
                       const Sent& sent) {
  const std::int64_t bytes = std::ssize(own);
  const Buffer others = make_buffer(group.context, group.size() * bytes);
  const auto operand = [&](int r) {
    return r == group.position ? own : byte_span(others.get() + r * bytes, bytes);
  };
  send_receive_all(group, sent, operand);
  std::vector<const std::byte*> xs;
  for (int r = 0; r < group.size(); ++r) xs.push_back(operand(r).data());
  reduce(v.reduction, v.dtype, xs, own.data(), bytes / size_of(v.dtype));
}

}  // namespace

void all_gather(const RankGroup& group, const Vector& v) {
  const auto vector = byte_span(v.x, v.bytes());
  gather_and_reduce(group, v, vector, [&](int) { return vector; });
}

void direct(const RankGroup& group, const Vector& v) {
  const auto partition_of = [&](int r) { return v.partition_of(r, group.size()); };
  const auto own = partition_of(group.position);
  gather_and_reduce(group, v, own, partition_of);
  send_receive_all(
      group, [&](int) { return own; }, partition_of);
}

}  // namespace renga::all_reduce
