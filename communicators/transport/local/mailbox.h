// Messages between threads of one process. A send and a receive with the same source and tag are
// matched, and the bytes are copied directly from the one's memory to the other's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace renga {

// A posted send or a posted receive.
struct PostedMessage {
  int source;
  int tag;
  std::byte* data;
  std::int64_t bytes;
  Transport::Accepts accepts = {};         // of a receive
  std::vector<std::byte> eager_data = {};  // copy of a short message: its sender need not wait
  std::atomic<bool> done = false;
  std::string error = {};
};

// The sends to one rank, and its receives, that have no match yet.
class Mailbox {
 public:
  // Each delivers the message at once if its counterpart has been posted.
  void send(const std::shared_ptr<PostedMessage>& message);
  void receive(const std::shared_ptr<PostedMessage>& request);
  // The first message from a source (any) with a tag (any of users) that has no match.
  std::optional<Envelope> probe(std::optional<int> source, std::optional<int> tag);
  // Removes a message that its owner no longer waits for.
  void cancel(const PostedMessage* message);

 private:
  using Queue = std::list<std::shared_ptr<PostedMessage>>;
  static std::shared_ptr<PostedMessage> take_match(Queue& queue, const PostedMessage& other);

  std::mutex mutex_;
  Queue unmatched_sends_;
  Queue unmatched_receives_;
};

}  // namespace renga
