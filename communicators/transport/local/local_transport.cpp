#include "transport/local/local_transport.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "tensor/error.h"
#include "transport/errors.h"

namespace renga {

namespace {

// Up to this size a send is buffered and returns before it is received, as it does between
// processes.
constexpr std::int64_t kEagerBytes = std::int64_t{1} << 16;

class LocalTransfer final : public Transfer {
 public:
  LocalTransfer(int peer, std::shared_ptr<PostedMessage> message, Mailbox& mailbox,
                std::shared_ptr<LocalGroup> group, bool eager)
      : Transfer(peer),
        message_(std::move(message)),
        mailbox_(mailbox),
        group_(std::move(group)),
        eager_(eager) {}
  ~LocalTransfer() override { cancel(); }

  bool cancel() override {
    if (!eager_ && !message_->done) mailbox_.cancel(message_.get());
    return true;
  }

  bool test() override {
    if (eager_) return true;
    if (!message_->done.load(std::memory_order_acquire)) return false;
    if (!message_->error.empty()) throw InvalidType(message_->error);
    return true;
  }

 private:
  std::shared_ptr<PostedMessage> message_;
  Mailbox& mailbox_;
  std::shared_ptr<LocalGroup> group_;  // owns the mailbox
  bool eager_;                         // the message owns a copy of its bytes
};

// The system's pages are zero, and are taken when they are first written to.
std::shared_ptr<std::byte> zeroed_pages(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  constexpr int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory = mmap(nullptr, bytes, access, kind, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [bytes](std::byte* p) { munmap(p, bytes); }};
}

}  // namespace

void Failure::set(const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (set_) return;
  message_ = message;
  set_.store(true, std::memory_order_release);
}

void Failure::check() const {
  if (set_.load(std::memory_order_acquire)) throw RankFailed(message_);
}

LocalGroup::LocalGroup(std::vector<int> nodes, bool shared_memory, std::shared_ptr<Failure> failure)
    : nodes_(std::move(nodes)),
      mailboxes_(nodes_.size()),
      shared_memory_(shared_memory),
      failure_(std::move(failure)) {}

template <class Map, class Create>
auto LocalGroup::take_shared(Map& map, const typename Map::key_type& key, int ranks,
                             const Create& create) {
  auto found = map.find(key);
  if (found == map.end())
    found = map.emplace(key, typename Map::mapped_type{create(), ranks}).first;
  auto value = found->second.value;
  if (--found->second.remaining == 0) map.erase(found);
  return value;
}

std::shared_ptr<LocalGroup> LocalGroup::split(int index, const std::vector<int>& members) {
  const std::lock_guard lock(mutex_);
  return take_shared(subgroups_, {index, members}, static_cast<int>(members.size()), [&] {
    std::vector<int> nodes;
    for (const int rank : members) nodes.push_back(nodes_[static_cast<std::size_t>(rank)]);
    return std::make_shared<LocalGroup>(std::move(nodes), shared_memory_, failure_);
  });
}

std::shared_ptr<std::byte> LocalGroup::allocate(int index, const Topology& caller,
                                                std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return take_shared(blocks_, {index, caller.inter_rank}, caller.intra_size,
                     [&] { return zeroed_pages(bytes); });
}

LocalTransport::LocalTransport(std::shared_ptr<LocalGroup> group, int rank)
    : group_(std::move(group)), topology_(topology_of(rank, group_->nodes())) {}

std::shared_ptr<std::byte> LocalTransport::allocate_shared(std::size_t bytes) {
  if (!group_->shares_memory()) return nullptr;
  return group_->allocate(++allocations_, topology_, bytes);
}

void LocalTransport::read_peer(int /*rank*/, const std::byte* from, std::byte* to,
                               std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::unique_ptr<Transfer> LocalTransport::start_send(const void* data, std::int64_t bytes, int to,
                                                     int tag) {
  group_->failure().check();
  auto* source = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  auto message = std::make_shared<PostedMessage>(topology_.rank, tag, source, bytes);
  const bool eager = bytes <= kEagerBytes;
  if (eager) {
    message->eager_data.assign(source, source + bytes);
    message->data = message->eager_data.data();
  }
  Mailbox& mailbox = group_->mailbox(to);
  mailbox.send(message);
  return std::make_unique<LocalTransfer>(to, message, mailbox, group_, eager);
}

std::unique_ptr<Transfer> LocalTransport::start_receive(void* data, std::int64_t bytes, int from,
                                                        int tag, Accepts accepts) {
  group_->failure().check();
  auto request = std::make_shared<PostedMessage>(from, tag, static_cast<std::byte*>(data), bytes);
  request->accepts = std::move(accepts);
  Mailbox& mailbox = group_->mailbox(topology_.rank);
  mailbox.receive(request);
  return std::make_unique<LocalTransfer>(from, request, mailbox, group_, false);
}

std::optional<Envelope> LocalTransport::probe(std::optional<int> from, std::optional<int> tag) {
  return group_->mailbox(topology_.rank).probe(from, tag);
}

std::shared_ptr<Transport> LocalTransport::split(const std::vector<int>& members) {
  const auto rank = std::ranges::find(members, topology_.rank) - members.begin();
  // Counted for each list of members, for only they take part in this split.
  const int index = ++splits_[members];
  return std::make_shared<LocalTransport>(group_->split(index, members), static_cast<int>(rank));
}

void LocalTransport::abort(int code) {
  group_->failure().set("rank " + std::to_string(topology_.rank) + " aborted with code " +
                        std::to_string(code));
}

}  // namespace renga
