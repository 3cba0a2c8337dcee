#include "shared_memory/shared_segment.h"

#include <doctest/doctest.h>

#include <atomic>

#include "ranks.h"

using namespace renga;

namespace {

SharedSegment segment_of(Transport& transport) {
  const Topology& topology = transport.topology();
  return {transport.allocate_shared(SharedSegment::bytes(topology.intra_size)), topology.intra_rank,
          topology.intra_size, topology.rank - topology.intra_rank};
}

}  // namespace

TEST_CASE("no rank passes a barrier before all have reached it") {
  std::atomic<int> reached = 0;
  run_ranks(4, [&](Transport& transport) {
    SharedSegment segment = segment_of(transport);
    const CollectiveContext context = context_of(transport);
    for (int round = 1; round <= 200; ++round) {
      ++reached;
      segment.barrier(context);
      CHECK(reached >= 4 * round);
    }
  });
}

TEST_CASE("ranks read what others wrote into their buffers before the barrier") {
  run_ranks({0, 0, 1, 1}, [](Transport& transport) {
    SharedSegment segment = segment_of(transport);
    const CollectiveContext context = context_of(transport);
    for (int round = 0; round < 100; ++round) {
      const int buffer = segment.next_buffer();
      const int value = 100 * transport.topology().rank + round;
      *reinterpret_cast<int*>(segment.buffer(segment.local_rank(), buffer)) = value;
      segment.barrier(context);
      const int other = 1 - segment.local_rank(), node = transport.topology().inter_rank;
      CHECK(*reinterpret_cast<int*>(segment.buffer(other, buffer)) ==
            100 * (2 * node + other) + round);
    }
  });
}

TEST_CASE("a barrier throws on all ranks if their calls differ, and can be used again") {
  run_ranks(3, [](Transport& transport) {
    SharedSegment segment = segment_of(transport);
    CollectiveContext context = context_of(transport, "sum");
    segment.publish(context.call);
    CHECK(segment.is_call_unchecked());
    segment.barrier(context);
    CHECK(!segment.is_call_unchecked());
    segment.publish(Call(transport.topology().rank == 1 ? "max" : "sum"));
    CHECK_THROWS_WITH_AS(segment.barrier(context),
                         "sum: expected the same call on every rank, got sum on rank 0 and max on "
                         "rank 1",
                         CallMismatch);
    segment.publish(context.call);
    CHECK_NOTHROW(segment.barrier(context));
  });
}

TEST_CASE("a time-out in a barrier names the missing rank and its last call") {
  std::atomic<bool> waiting = true;
  run_ranks(2, [&](Transport& transport) {
    SharedSegment segment = segment_of(transport);
    CollectiveContext context = context_of(transport, "sum");
    context.call.sequence = 1;
    segment.publish(context.call);
    segment.barrier(context);
    if (transport.topology().rank == 1) {
      while (waiting) std::this_thread::yield();
      return;
    }
    context.call = Call("max");
    context.call.sequence = 2;
    context.timeout_seconds = 0.05;
    segment.publish(context.call);
    CHECK_THROWS_WITH_AS(segment.barrier(context),
                         "max: rank 0 waited 0.05 s for rank 1; rank 1 was last in sum",
                         TimeoutError);
    waiting = false;
  });
}
