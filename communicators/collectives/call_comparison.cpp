#include "collectives/call_comparison.h"

namespace renga::point_to_point {

// Exchanges the calls themselves.
void throw_mismatch(const CollectiveContext& context) {
  const auto size = static_cast<std::size_t>(context.size());
  const Buffer memory =
      make_buffer(context, context.size() * static_cast<std::int64_t>(sizeof(Call)));
  const auto call_of = [&](int r) {
    return byte_span(memory.get() + r * static_cast<std::int64_t>(sizeof(Call)), sizeof(Call));
  };
  std::memcpy(call_of(context.rank()).data(), &context.call, sizeof(Call));
  send_receive_all(
      all_ranks(context), [&](int) { return call_of(context.rank()); }, call_of);
  std::vector<Call> calls(size);
  std::memcpy(calls.data(), memory.get(), size * sizeof(Call));
  require_matching(calls);
  fail<CallMismatch>(context.call.op, ": expected the same call on every rank");
}

namespace {

// Computes the least and the greatest digest over all ranks: in step k, each rank receives those
// that the rank 2^k before it has found.
bool all_equal(const CollectiveContext& context, std::uint64_t digest) {
  const RankGroup group = all_ranks(context);
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(DigestRange));
  const Buffer memory = make_buffer(context, 2 * bytes);
  auto* const range = reinterpret_cast<DigestRange*>(memory.get());
  range[0] = {digest, digest};
  for (int step = 1; step < context.size(); step *= 2) {
    const int to = (context.rank() + step) % context.size();
    const int from = (context.rank() - step + context.size()) % context.size();
    send_receive(group, byte_span(memory.get(), bytes), to, byte_span(memory.get() + bytes, bytes),
                 from);
    range[0].add(range[1]);
  }
  return range[0].least == range[0].greatest;
}

}  // namespace

FirstMessages::FirstMessages(const CollectiveContext& context)
    : context_(context),
      sent_(make_buffer(context, context.size() * static_cast<std::int64_t>(sizeof(FirstMessage)))),
      received_(
          make_buffer(context, context.size() * static_cast<std::int64_t>(sizeof(FirstMessage)))) {}

void FirstMessages::send_receive() {
  const std::uint64_t digest = context_.call.digest();
  const auto bytes_of = [](const Buffer& messages, int r) {
    return byte_span(reinterpret_cast<std::byte*>(&message(messages, r)), sizeof(FirstMessage));
  };
  for (int r = 0; r < context_.size(); ++r) message(sent_, r).digest = digest;
  send_receive_all(
      all_ranks(context_), [&](int r) { return bytes_of(sent_, r); },
      [&](int r) { return bytes_of(received_, r); });
  for (int r = 0; r < context_.size(); ++r) {
    if (r != context_.rank() && message(received_, r).digest != digest) throw_mismatch(context_);
  }
}

void compare_calls(const CollectiveContext& context) {
  if (context.size() <= kFewRanks) return FirstMessages(context).send_receive();
  if (!all_equal(context, context.call.digest())) throw_mismatch(context);
}

}  // namespace renga::point_to_point
