#include "collectives/call_comparison.h"

#include <doctest/doctest.h>

#include "ranks.h"

using namespace renga;

TEST_CASE("calls that match are compared without an error") {
  for (const int ranks : {1, 2, 5, point_to_point::kFewRanks + 1}) {
    run_ranks(ranks, [](Transport& transport) {
      CHECK_NOTHROW(point_to_point::compare_calls(context_of(transport)));
    });
  }
}

TEST_CASE("a call that differs is an error on all ranks, which names it") {
  for (const int ranks : {2, 5, point_to_point::kFewRanks + 1}) {
    run_ranks(ranks, [](Transport& transport) {
      const bool differs = transport.topology().rank == 1;
      CHECK_THROWS_WITH_AS(
          point_to_point::compare_calls(context_of(transport, differs ? "max" : "sum")),
          doctest::Contains("got sum on rank 0 and max on rank 1"), CallMismatch);
      CHECK_NOTHROW(point_to_point::compare_calls(context_of(transport)));
    });
  }
}

TEST_CASE("data travels along or follows, whichever its size") {
  constexpr std::int64_t payload = point_to_point::FirstMessage::kPayloadBytes;
  for (const std::int64_t bytes : {std::int64_t{0}, payload, payload + 1}) {
    run_ranks(3, [bytes](Transport& transport) {
      const CollectiveContext context = context_of(transport);
      const auto own = static_cast<std::byte>(context.rank());
      std::vector<std::byte> sent(static_cast<std::size_t>(bytes), own);
      std::vector<std::vector<std::byte>> received(3, std::vector<std::byte>(sent.size()));
      point_to_point::compare_and_send_receive_all(
          context, [&](int) { return std::span(sent); },
          [&](int r) { return std::span(received[static_cast<std::size_t>(r)]); });
      for (int r = 0; r < 3; ++r) {
        if (r == context.rank() || bytes == 0) continue;
        CHECK(received[static_cast<std::size_t>(r)].back() == static_cast<std::byte>(r));
      }
    });
  }
}
