#include "transport/local/mailbox.h"

#include <doctest/doctest.h>

#include <array>

using namespace renga;

namespace {

using Bytes = std::array<std::byte, 4>;

std::shared_ptr<PostedMessage> post(int source, int tag, Bytes& data, std::int64_t bytes = 4) {
  return std::make_shared<PostedMessage>(source, tag, data.data(), bytes);
}

constexpr Bytes kOnes{std::byte{1}, std::byte{1}, std::byte{1}, std::byte{1}};
constexpr Bytes kTwos{std::byte{2}, std::byte{2}, std::byte{2}, std::byte{2}};

}  // namespace

TEST_CASE("a message is delivered when both of its ends have been posted") {
  Mailbox mailbox;
  Bytes sent = kOnes, received{};
  const auto message = post(3, 7, sent), request = post(3, 7, received);
  SUBCASE("send first") {
    mailbox.send(message);
    CHECK(!message->done);
    mailbox.receive(request);
  }
  SUBCASE("receive first") {
    mailbox.receive(request);
    CHECK(!request->done);
    mailbox.send(message);
  }
  CHECK(message->done);
  CHECK(request->done);
  CHECK(received == kOnes);
}

TEST_CASE("messages are matched by source and tag, in the order in which they were sent") {
  Mailbox mailbox;
  Bytes ones = kOnes, twos = kTwos, other{}, first{}, second{};
  mailbox.send(post(0, 5, ones));
  mailbox.send(post(0, 5, twos));
  const auto wrong_source = post(1, 5, other), wrong_tag = post(0, 6, other);
  mailbox.receive(wrong_source);
  mailbox.receive(wrong_tag);
  CHECK(!wrong_source->done);
  CHECK(!wrong_tag->done);
  mailbox.receive(post(0, 5, first));
  mailbox.receive(post(0, 5, second));
  CHECK(first == kOnes);
  CHECK(second == kTwos);
}

TEST_CASE("a probe finds the first message that no receive has been posted for") {
  Mailbox mailbox;
  Bytes ones = kOnes, twos = kTwos, received{};
  mailbox.receive(post(2, 4, received));
  mailbox.send(post(2, 4, ones));  // for that receive
  CHECK(!mailbox.probe({}, {}));
  mailbox.send(post(0, kCollectiveTag, ones));
  CHECK(!mailbox.probe({}, {}));
  mailbox.send(post(3, 5, ones));
  mailbox.send(post(1, 6, twos));
  CHECK(mailbox.probe({}, {})->source == 3);
  CHECK(mailbox.probe({}, 6)->source == 1);
  CHECK(mailbox.probe(1, {})->tag == 6);
  CHECK(!mailbox.probe(3, 6));
  mailbox.receive(post(3, 5, received));
  CHECK(mailbox.probe({}, {})->source == 1);
}

TEST_CASE("a message of another size is an error of the receive and writes nothing") {
  Mailbox mailbox;
  Bytes sent = kOnes, received{};
  const auto request = post(0, 0, received, 3);
  mailbox.receive(request);
  mailbox.send(post(0, 0, sent));
  CHECK(request->done);
  CHECK(request->error == "recv: expected 3 bytes from rank 0, got 4");
  CHECK(received == Bytes{});
}

TEST_CASE("a cancelled message is never matched") {
  Mailbox mailbox;
  Bytes ones = kOnes, twos = kTwos, received{}, cancelled{};
  const auto message = post(0, 0, ones), request = post(0, 0, cancelled);
  mailbox.send(message);
  mailbox.cancel(message.get());
  mailbox.receive(request);
  CHECK(!request->done);
  mailbox.cancel(request.get());
  mailbox.send(post(0, 0, twos));
  mailbox.receive(post(0, 0, received));
  CHECK(received == kTwos);
  CHECK(cancelled == Bytes{});
}
