// Messages between threads: a send and a receive that fit are matched, and the bytes are copied
// straight from the one to the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport.h"

namespace renga {

// One end of a message.
struct Post {
  int source;
  int tag;
  std::byte* data;
  std::int64_t bytes;
  std::vector<std::byte> own;  // a short message's bytes: its sender need not wait
  std::atomic<bool> over = false;
  std::string error = {};
};

// What has been sent to one rank, or asked for by it, and has not met its counterpart yet.
class Mailbox {
 public:
  // Both hand the message over at once where its counterpart is there.
  void send(const std::shared_ptr<Post>& message);
  void receive(const std::shared_ptr<Post>& request);
  // Takes a post back whose owner no longer waits.
  void withdraw(const Post* post);

 private:
  using Posts = std::list<std::shared_ptr<Post>>;
  static std::shared_ptr<Post> take_match(Posts& posts, const Post& other);

  std::mutex mutex_;
  Posts messages_;
  Posts requests_;
};

}  // namespace renga
