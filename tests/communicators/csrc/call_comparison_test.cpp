#include <doctest/doctest.h>

#include "collectives/two_level_comparison.h"
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

namespace {

// Calls body(context, segment) on each rank of three nodes with two ranks.
void run_on_nodes(const std::function<void(const CollectiveContext&, SharedSegment&)>& body,
                  const std::function<const char*(int rank)>& call_of) {
  run_ranks({0, 0, 1, 1, 2, 2}, [&](Transport& transport) {
    const Topology& topology = transport.topology();
    const auto memory = transport.allocate_shared(SharedSegment::bytes(topology.intra_size));
    SharedSegment segment(memory, topology.intra_rank, topology.intra_size, 0);
    body(context_of(transport, call_of(topology.rank)), segment);
    CHECK_NOTHROW(point_to_point::compare_on_two_levels(context_of(transport), segment));
  });
}

}  // namespace

TEST_CASE("a call that differs on one of several nodes is an error on all ranks") {
  for (const int rank : {1, 4}) {
    const std::string expected = "got sum on rank 0 and max on rank " + std::to_string(rank);
    run_on_nodes(
        [&](const CollectiveContext& context, SharedSegment& segment) {
          CHECK_THROWS_WITH_AS(point_to_point::compare_on_two_levels(context, segment),
                               doctest::Contains(expected.c_str()), CallMismatch);
        },
        [rank](int r) { return r == rank ? "max" : "sum"; });
  }
}

TEST_CASE("short blocks travel in the messages by which nodes compare calls") {
  constexpr std::int64_t payload = point_to_point::FirstMessage::kPayloadBytes;
  for (const std::int64_t bytes : {std::int64_t{0}, payload, payload + 1}) {
    run_on_nodes(
        [bytes](const CollectiveContext& context, SharedSegment& segment) {
          const auto size = static_cast<std::size_t>(bytes);
          std::vector<std::vector<std::byte>> blocks(6, std::vector<std::byte>(size));
          blocks[static_cast<std::size_t>(context.rank())].assign(
              size, static_cast<std::byte>(context.rank()));
          point_to_point::compare_and_gather_on_two_levels(context, segment, [&](int r) {
            return std::span(blocks[static_cast<std::size_t>(r)]);
          });
          for (std::size_t r = 0; r < 6; ++r) {
            CHECK(blocks[r] == std::vector(size, static_cast<std::byte>(r)));
          }
          const int further = bytes > payload ? 5 : 0;
          CHECK(context.transport.collective_traffic().messages() == 2 + further);
        },
        [](int) { return "sum"; });
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
