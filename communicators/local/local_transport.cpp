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
  ~LocalTransfer() override { cancel(); }

  bool cancel() override {
    if (!detached_ && !post_->over) mailbox_.withdraw(post_.get());
    return true;
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

Hub::Hub(std::vector<int> nodes, bool with_boards, std::shared_ptr<Failure> failure)
    : nodes_(std::move(nodes)),
      mailboxes_(nodes_.size()),
      with_boards_(with_boards),
      failure_(std::move(failure)) {}

template <class Map, class Make>
auto Hub::take(Map& map, const typename Map::key_type& key, int to_come, const Make& make) {
  auto found = map.find(key);
  if (found == map.end())
    found = map.emplace(key, typename Map::mapped_type{make(), to_come}).first;
  const auto made = found->second.cache;
  if (--found->second.to_come == 0) map.erase(found);
  return made;
}

std::shared_ptr<Hub> Hub::child(int turn, const std::vector<int>& members) {
  const std::lock_guard lock(mutex_);
  return take(children_, {turn, members}, static_cast<int>(members.size()), [&] {
    std::vector<int> nodes;
    for (const int rank : members) nodes.push_back(nodes_[rank]);
    return std::make_shared<Hub>(std::move(nodes), with_boards_, failure_);
  });
}

std::shared_ptr<std::byte> Hub::memory(int turn, const Placement& asker, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return take(memories_, {turn, asker.inter_rank}, asker.intra_size,
              [&] { return zeroed_pages(bytes); });
}

LocalTransport::LocalTransport(std::shared_ptr<Hub> hub, int rank)
    : hub_(std::move(hub)), placement_(place_on_nodes(rank, hub_->nodes())) {
  if (!hub_->with_boards() || !placement_.in_rows) return;
  const int place = placement_.intra_rank, size = placement_.intra_size;
  const auto memory = shared_memory(Board::bytes(size));
  board_ = std::make_unique<Board>(memory.get(), place, size, rank - place, memory);
}

std::shared_ptr<std::byte> LocalTransport::shared_memory(std::size_t bytes) {
  return hub_->memory(++memories_, placement_, bytes);
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
  // Counted for each group, for only its members take part in its making.
  const int turn = ++splits_[members];
  return std::make_shared<LocalTransport>(hub_->child(turn, members), static_cast<int>(place));
}

void LocalTransport::abort(int code) {
  hub_->failure().set("rank " + std::to_string(placement_.rank) + " aborted with code " +
                      std::to_string(code));
}

}  // namespace renga
