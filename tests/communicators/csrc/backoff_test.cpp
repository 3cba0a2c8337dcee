#include "context/backoff.h"

#include <doctest/doctest.h>

#include "ranks.h"

using namespace renga;

namespace {

// A transport of one rank of two, which counts calls of progress().
class FakeTransport final : public Transport {
 public:
  FakeTransport() { topology_.size = 2; }
  const Topology& topology() const override { return topology_; }
  std::shared_ptr<Transport> split(const std::vector<int>&) override { return nullptr; }
  std::shared_ptr<std::byte> allocate_shared(std::size_t) override { return nullptr; }
  std::optional<Envelope> probe(std::optional<int>, std::optional<int>) override { return {}; }
  void progress() override { ++progressed; }
  bool has_shut_down(int rank) const override { return rank == shut_down_rank; }
  int max_tag() const override { return 0; }
  bool concurrent() const override { return true; }
  void abort(int) override {}

  int progressed = 0;
  int shut_down_rank = -1;

 private:
  std::unique_ptr<Transfer> start_send(const void*, std::int64_t, int, int) override {
    return nullptr;
  }
  std::unique_ptr<Transfer> start_receive(void*, std::int64_t, int, int, Accepts) override {
    return nullptr;
  }

  Topology topology_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("waiting ends when the time-out has passed, and lets transfers advance") {
  for (const bool interruptible : {false, true}) {
    FakeTransport transport;
    const auto start = std::chrono::steady_clock::now();
    Backoff backoff(transport, 0.05, interruptible);
    int waits = 1;
    while (backoff.wait()) ++waits;
    CHECK(seconds_since(start) >= 0.05);
    CHECK(seconds_since(start) < 5);
    if (interruptible) {
      CHECK(transport.progressed > 0);  // it spins first, every 64th time with progress
    } else {
      CHECK(transport.progressed == waits);
    }
    CHECK(!backoff.check());
  }
}

TEST_CASE("without a time-out, waiting does not end") {
  FakeTransport transport;
  Backoff backoff(transport, 0, false);
  for (int i = 0; i < 20; ++i) CHECK(backoff.wait());
  CHECK(backoff.check());
}

TEST_CASE("a peer is lost some time after its shutdown notice") {
  FakeTransport transport;
  transport.shut_down_rank = 1;
  Backoff backoff(transport, 10, false);
  CHECK(!backoff.has_lost(0));
  CHECK(!backoff.has_lost(1));  // its last messages may still arrive
  const auto start = std::chrono::steady_clock::now();
  while (!backoff.has_lost(1)) CHECK(backoff.wait());
  CHECK(seconds_since(start) > 0.4);
}

TEST_CASE("a time-out names the ranks whose messages are missing") {
  run_ranks(3, [](Transport& transport) {
    if (transport.topology().rank != 0) return;
    CollectiveContext context = context_of(transport, "gather");
    context.timeout_seconds = 0.05;
    std::byte data[2];
    Transfers transfers;
    transfers.push_back(transport.receive(&data[0], 1, 2, kCollectiveTag));
    transfers.push_back(transport.receive(&data[1], 1, 1, kCollectiveTag));
    CHECK_THROWS_WITH_AS(wait_all_or_cancel(transfers, context),
                         "gather: rank 0 waited 0.05 s for ranks 1, 2", TimeoutError);
    CHECK(!context.memory_in_use);
  });
}
