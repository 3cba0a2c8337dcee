#include "local/local_transport.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace renga {

namespace {

// Up to here a send returns before anybody receives, as it does between processes.
constexpr std::int64_t kShortMessage = std::int64_t{1} << 16;

class LocalTransfer final : public Transfer {
 public:
  LocalTransfer(int peer, std::shared_ptr<Post> post, Mailbox& mailbox, std::shared_ptr<Hub> hub,
                bool detached)
      : Transfer(peer),
        post_(std::move(post)),
        mailbox_(mailbox),
        hub_(std::move(hub)),
        detached_(detached) {}
  ~LocalTransfer() override {
    if (!detached_ && !post_->over) mailbox_.withdraw(post_.get());
  }

  bool test() override {
    if (detached_) return true;
    if (!post_->over.load(std::memory_order_acquire)) return false;
    if (!post_->error.empty()) throw InvalidType(post_->error);
    return true;
  }

 private:
  std::shared_ptr<Post> post_;
  Mailbox& mailbox_;
  std::shared_ptr<Hub> hub_;
  bool detached_;  // the message carries its own bytes, nobody waits for it
};

std::shared_ptr<std::byte> zeroed_pages(std::size_t bytes) {
  constexpr std::align_val_t page{4096};
  auto* memory = static_cast<std::byte*>(::operator new(bytes, page));
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* p) { ::operator delete(p, page); }};
}

}  // namespace

void Failure::set(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (set_) return;
  text_ = what;
  set_.store(true, std::memory_order_release);
}

void Failure::check() const {
  if (set_.load(std::memory_order_acquire)) throw RankFailed(text_);
}

Hub::Hub(int size, bool with_board, std::shared_ptr<Failure> failure)
    : mailboxes_(size),
      board_(with_board ? zeroed_pages(Board::bytes(size)) : nullptr),
      failure_(std::move(failure)) {}

std::shared_ptr<Hub> Hub::child(int turn, const std::vector<int>& members) {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(turn, members);
  auto found = children_.find(key);
  if (found == children_.end()) {
    const int size = static_cast<int>(members.size());
    const auto hub = std::make_shared<Hub>(size, board_ != nullptr, failure_);
    found = children_.emplace(key, Child{hub, members.size()}).first;
  }
  const std::shared_ptr<Hub> hub = found->second.hub;
  if (--found->second.to_come == 0) children_.erase(found);
  return hub;
}

LocalTransport::LocalTransport(std::shared_ptr<Hub> hub, int rank)
    : hub_(std::move(hub)), placement_{rank, hub_->size(), rank, hub_->size(), 0, 1} {
  if (hub_->board_memory() != nullptr) {
    board_ = std::make_unique<Board>(hub_->board_memory(), rank, hub_->size(), hub_);
  }
}

std::unique_ptr<Transfer> LocalTransport::send(const void* data, std::int64_t bytes, int to,
                                               int tag) {
  hub_->failure().check();
  auto* bytes_sent = static_cast<std::byte*>(const_cast<void*>(data));
  auto post = std::make_shared<Post>(placement_.rank, tag, bytes_sent, bytes);
  const bool detached = bytes <= kShortMessage;
  if (detached) {
    post->own.assign(bytes_sent, bytes_sent + bytes);
    post->data = post->own.data();
  }
  Mailbox& mailbox = hub_->mailbox(to);
  mailbox.send(post);
  return std::make_unique<LocalTransfer>(to, post, mailbox, hub_, detached);
}

std::unique_ptr<Transfer> LocalTransport::receive(void* data, std::int64_t bytes, int from,
                                                  int tag) {
  hub_->failure().check();
  auto post = std::make_shared<Post>(from, tag, static_cast<std::byte*>(data), bytes);
  Mailbox& mailbox = hub_->mailbox(placement_.rank);
  mailbox.receive(post);
  return std::make_unique<LocalTransfer>(from, post, mailbox, hub_, false);
}

std::shared_ptr<Transport> LocalTransport::split(const std::vector<int>& members) {
  const auto place = std::ranges::find(members, placement_.rank) - members.begin();
  return std::make_shared<LocalTransport>(hub_->child(++splits_, members), static_cast<int>(place));
}

void LocalTransport::abort(int code) {
  hub_->failure().set("rank " + std::to_string(placement_.rank) + " aborted with code " +
                      std::to_string(code));
}

}  // namespace renga
