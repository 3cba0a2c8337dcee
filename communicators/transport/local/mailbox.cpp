#include "transport/local/mailbox.h"

#include <algorithm>
#include <cstring>

namespace renga {

namespace {

void deliver(PostedMessage& message, PostedMessage& request) {
  if (message.bytes != request.bytes) {
    request.error = "recv: expected " + std::to_string(request.bytes) + " bytes from rank " +
                    std::to_string(message.source) + ", got " + std::to_string(message.bytes);
  } else if (request.accepts && !request.accepts()) {
    request.error = kNotAccepted;
  } else if (message.bytes > 0) {
    std::memcpy(request.data, message.data, static_cast<std::size_t>(message.bytes));
  }
  message.done.store(true, std::memory_order_release);
  request.done.store(true, std::memory_order_release);
}

}  // namespace

std::shared_ptr<PostedMessage> Mailbox::take_match(Queue& queue, const PostedMessage& other) {
  const auto found = std::ranges::find_if(queue, [&](const auto& posted) {
    return posted->source == other.source && posted->tag == other.tag;
  });
  if (found == queue.end()) return nullptr;
  auto match = *found;
  queue.erase(found);
  return match;
}

// The copy is made under the lock, so that the memory of a cancelled message is never touched.
void Mailbox::send(const std::shared_ptr<PostedMessage>& message) {
  const std::lock_guard lock(mutex_);
  if (const auto request = take_match(unmatched_receives_, *message)) {
    deliver(*message, *request);
  } else {
    unmatched_sends_.push_back(message);
  }
}

void Mailbox::receive(const std::shared_ptr<PostedMessage>& request) {
  const std::lock_guard lock(mutex_);
  if (const auto message = take_match(unmatched_sends_, *request)) {
    deliver(*message, *request);
  } else {
    unmatched_receives_.push_back(request);
  }
}

std::optional<Envelope> Mailbox::probe(std::optional<int> source, std::optional<int> tag) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(unmatched_sends_, [&](const auto& message) {
    return message->source == source.value_or(message->source) &&
           (tag ? message->tag == *tag : message->tag != kCollectiveTag);
  });
  if (found == unmatched_sends_.end()) return {};
  return Envelope{(*found)->source, (*found)->tag};
}

void Mailbox::cancel(const PostedMessage* message) {
  const std::lock_guard lock(mutex_);
  const auto is_message = [message](const auto& posted) { return posted.get() == message; };
  unmatched_sends_.remove_if(is_message);
  unmatched_receives_.remove_if(is_message);
}

}  // namespace renga
