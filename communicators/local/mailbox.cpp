#include "local/mailbox.h"

#include <algorithm>
#include <cstring>

namespace renga {

namespace {

void hand_over(Post& message, Post& request) {
  if (message.bytes == request.bytes) {
    if (message.bytes > 0) {
      std::memcpy(request.data, message.data, static_cast<std::size_t>(message.bytes));
    }
  } else {
    request.error = "recv: expected " + std::to_string(request.bytes) + " bytes from rank " +
                    std::to_string(message.source) + ", got " + std::to_string(message.bytes);
  }
  message.over.store(true, std::memory_order_release);
  request.over.store(true, std::memory_order_release);
}

}  // namespace

std::shared_ptr<Post> Mailbox::take_match(Posts& posts, const Post& other) {
  const auto found = std::ranges::find_if(posts, [&](const auto& post) {
    return post->source == other.source && post->tag == other.tag;
  });
  if (found == posts.end()) return nullptr;
  auto post = *found;
  posts.erase(found);
  return post;
}

// The copy is made under the lock, so that a withdrawn post's memory is never touched.
void Mailbox::send(const std::shared_ptr<Post>& message) {
  const std::lock_guard lock(mutex_);
  if (const auto request = take_match(requests_, *message)) {
    hand_over(*message, *request);
  } else {
    messages_.push_back(message);
  }
}

void Mailbox::receive(const std::shared_ptr<Post>& request) {
  const std::lock_guard lock(mutex_);
  if (const auto message = take_match(messages_, *request)) {
    hand_over(*message, *request);
  } else {
    requests_.push_back(request);
  }
}

void Mailbox::withdraw(const Post* post) {
  const std::lock_guard lock(mutex_);
  const auto same = [post](const auto& other) { return other.get() == post; };
  messages_.remove_if(same);
  requests_.remove_if(same);
}

}  // namespace renga
