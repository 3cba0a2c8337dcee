#include "transport/mpi/matched_receives.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "transport/mpi/mpi_transport.h"

namespace renga {

namespace {

// A message as short as this has arrived together with its envelope.
constexpr int kShortBytes = 256;

}  // namespace

struct MatchedReceives::Receive {
  std::byte* data;
  std::int64_t bytes;
  int from;
  int tag;
  Transport::Accepts accepts;
  std::int64_t matched_bytes = 0;
  std::string error = {};                    // why the message is dropped
  std::vector<std::byte> dropped_data = {};  // its contents
  std::vector<MPI_Request> requests = {};
  std::atomic<bool> matched = false;  // all chunks; nothing above changes any more
};

class MatchedReceives::MatchedTransfer final : public Transfer {
 public:
  MatchedTransfer(MatchedReceives& receives, std::shared_ptr<Receive> receive)
      : Transfer(receive->from), receives_(receives), receive_(std::move(receive)) {}
  ~MatchedTransfer() override { cancel(); }

  bool test() override {
    if (!receive_->matched) receives_.progress(*receive_);
    if (!receive_->matched || !is_done()) return false;
    if (!receive_->error.empty()) throw std::runtime_error(receive_->error);
    return true;
  }

  // `receives_` may be destroyed once the message has been matched, so it is not used then.
  bool cancel() override {
    if (done_) return true;
    if (!receive_->matched && receives_.remove(*receive_)) return done_ = true;
    return mpi_is_finalized() || is_done();
  }

 private:
  bool is_done() {
    if (done_) return true;
    auto& requests = receive_->requests;
    int all_done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all_done,
                          MPI_STATUSES_IGNORE),
              "MPI_Testall");
    return done_ = all_done != 0;
  }

  MatchedReceives& receives_;
  std::shared_ptr<Receive> receive_;
  bool done_ = false;
};

std::unique_ptr<Transfer> MatchedReceives::start(void* data, std::int64_t bytes, int from, int tag,
                                                 Transport::Accepts accepts) {
  auto receive = std::make_shared<Receive>(static_cast<std::byte*>(data), bytes, from, tag,
                                           std::move(accepts));
  {
    const std::lock_guard lock(mutex_);
    unmatched_[{from, tag}].push_back(receive);
    ++count_;
  }
  return std::make_unique<MatchedTransfer>(*this, std::move(receive));
}

bool MatchedReceives::remove(const Receive& receive) {
  const std::lock_guard lock(mutex_);
  if (receive.matched) return false;
  const auto queue = unmatched_.find({receive.from, receive.tag});
  count_ -= static_cast<int>(
      std::erase_if(queue->second, [&](const auto& other) { return other.get() == &receive; }));
  if (queue->second.empty()) unmatched_.erase(queue);
  return true;
}

void MatchedReceives::progress() {
  if (count_ == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) match_all();
}

std::optional<Envelope> MatchedReceives::probe(std::optional<int> from, std::optional<int> tag) {
  const std::lock_guard lock(mutex_);
  while (true) {
    match_all();
    int found = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(from.value_or(MPI_ANY_SOURCE), tag.value_or(MPI_ANY_TAG), comm_, &found,
                         &status),
              "MPI_Iprobe");
    if (!found) return {};
    // One that has arrived since then may be that of a receive, which takes it first.
    if (!unmatched_.contains({status.MPI_SOURCE, status.MPI_TAG})) {
      return Envelope{status.MPI_SOURCE, status.MPI_TAG};
    }
  }
}

void MatchedReceives::match_all() {
  for (auto& [source_and_tag, queue] : unmatched_) match(queue);
  std::erase_if(unmatched_, [](const auto& entry) { return entry.second.empty(); });
}

void MatchedReceives::progress(const Receive& receive) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || receive.matched) return;
  const auto queue = unmatched_.find({receive.from, receive.tag});
  if (queue->second.front().get() != &receive) return;
  match(queue->second);
  if (queue->second.empty()) unmatched_.erase(queue);
}

void MatchedReceives::match(Queue& queue) {
  while (!queue.empty()) {
    match(*queue.front());
    if (!queue.front()->matched) return;
    queue.pop_front();
    --count_;
  }
}

void MatchedReceives::match(Receive& receive) {
  while (!receive.matched) {
    int found = 0, count = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check_mpi(MPI_Improbe(receive.from, receive.tag, comm_, &found, &message, &status),
              "MPI_Improbe");
    if (!found) return;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    const std::int64_t remaining = receive.bytes - receive.matched_bytes;
    std::byte* to = receive.data + receive.matched_bytes;
    if (count != std::min(kMaxMessageBytes, remaining)) {
      receive.error = "recv: expected " + std::to_string(receive.bytes) + " bytes from rank " +
                      std::to_string(receive.from) + ", got " +
                      std::to_string(receive.matched_bytes + count);
    } else if (receive.accepts && !receive.accepts()) {
      receive.error = kNotAccepted;
    }
    if (!receive.error.empty()) {
      receive.dropped_data.resize(static_cast<std::size_t>(count));
      to = receive.dropped_data.data();
    }
    if (count <= kShortBytes) {
      check_mpi(MPI_Mrecv(to, count, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    } else {
      check_mpi(MPI_Imrecv(to, count, MPI_BYTE, &message, &receive.requests.emplace_back()),
                "MPI_Imrecv");
    }
    --comms_->unreceived;
    receive.matched_bytes += count;
    receive.matched = !receive.error.empty() || receive.matched_bytes == receive.bytes;
  }
}

}  // namespace renga
