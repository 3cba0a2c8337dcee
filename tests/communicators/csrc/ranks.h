// Ranks for tests: threads of this process.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "context/collective_context.h"
#include "transport/local/local_transport.h"

namespace renga {

// Calls body(transport of the rank) on a thread for each of `nodes`, the ranks' nodes. An exception
// fails the test.
inline void run_ranks(const std::vector<int>& nodes, const std::function<void(Transport&)>& body,
                      bool shared_memory = true) {
  const auto failure = std::make_shared<Failure>();
  const auto group = std::make_shared<LocalGroup>(nodes, shared_memory, failure);
  std::vector<std::string> errors(nodes.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < nodes.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        LocalTransport transport(group, static_cast<int>(r));
        body(transport);
      } catch (const std::exception& error) {
        errors[r] = error.what();
        failure->set(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error == "");
}

inline void run_ranks(int ranks, const std::function<void(Transport&)>& body) {
  run_ranks(std::vector<int>(static_cast<std::size_t>(ranks), 0), body);
}

// Returns the context of a call of `name` that waits for 20 s at most.
inline CollectiveContext context_of(Transport& transport, const char* name = "test") {
  return {transport, Call(name), 20.0};
}

}  // namespace renga
