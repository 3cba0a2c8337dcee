#include "transport/mpi/matched_receives.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "transport/mpi/mpi_transport.h"

namespace renga {

struct MatchedReceives::Receive {
  std::byte* data;
  std::int64_t bytes;
  int from;
  int tag;
  std::int64_t matched_bytes = 0;
  bool matched = false;
  std::int64_t unexpected_bytes = -1;           // size of a message that has another size
  std::vector<std::byte> unexpected_data = {};  // its contents, which are dropped
  std::vector<MPI_Request> requests = {};
};

class MatchedReceives::MatchedTransfer final : public Transfer {
 public:
  MatchedTransfer(MatchedReceives& receives, std::shared_ptr<Receive> receive)
      : Transfer(receive->from), receives_(receives), receive_(std::move(receive)) {}
  ~MatchedTransfer() override { cancel(); }

  bool test() override {
    receives_.progress();
    if (!is_done(false)) return false;
    if (receive_->unexpected_bytes >= 0) {
      throw std::runtime_error("recv: expected " + std::to_string(receive_->bytes) +
                               " bytes from rank " + std::to_string(peer()) + ", got " +
                               std::to_string(receive_->unexpected_bytes));
    }
    return true;
  }

  bool cancel() override { return is_done(true); }

 private:
  // `receives_` may be destroyed once the message has been matched, so it is not used then.
  bool is_done(bool cancelled) {
    if (done_) return true;
    if (!matched_) {
      matched_ = receives_.is_matched(*receive_);
      if (!matched_ && cancelled) {
        receives_.remove(*receive_);
        return done_ = true;
      }
      if (!matched_) return false;
    }
    if (cancelled && mpi_is_finalized()) return done_ = true;
    auto& requests = receive_->requests;
    int all_done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all_done,
                          MPI_STATUSES_IGNORE),
              "MPI_Testall");
    return done_ = all_done != 0;
  }

  MatchedReceives& receives_;
  std::shared_ptr<Receive> receive_;
  bool matched_ = false;
  bool done_ = false;
};

std::unique_ptr<Transfer> MatchedReceives::start(void* data, std::int64_t bytes, int from,
                                                 int tag) {
  auto receive =
      std::make_shared<Receive>(Receive{static_cast<std::byte*>(data), bytes, from, tag});
  {
    const std::lock_guard lock(mutex_);
    unmatched_.push_back(receive);
    empty_ = false;
  }
  return std::make_unique<MatchedTransfer>(*this, std::move(receive));
}

bool MatchedReceives::is_matched(const Receive& receive) {
  const std::lock_guard lock(mutex_);
  return receive.matched;
}

void MatchedReceives::remove(const Receive& receive) {
  const std::lock_guard lock(mutex_);
  unmatched_.remove_if([&](const auto& other) { return other.get() == &receive; });
  empty_ = unmatched_.empty();
}

void MatchedReceives::progress() {
  if (empty_) return;
  const std::lock_guard lock(mutex_);
  for (auto it = unmatched_.begin(); it != unmatched_.end();) {
    Receive& receive = **it;
    const auto precedes = [&](const auto& other) {
      return other->from == receive.from && other->tag == receive.tag;
    };
    if (std::any_of(unmatched_.begin(), it, precedes)) {
      ++it;
      continue;
    }
    match(receive);
    it = receive.matched ? unmatched_.erase(it) : std::next(it);
  }
  empty_ = unmatched_.empty();
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
      receive.unexpected_bytes = receive.matched_bytes + count;
      receive.unexpected_data.resize(static_cast<std::size_t>(count));
      to = receive.unexpected_data.data();
    }
    check_mpi(MPI_Imrecv(to, count, MPI_BYTE, &message, &receive.requests.emplace_back()),
              "MPI_Imrecv");
    receive.matched_bytes += count;
    receive.matched = receive.unexpected_bytes >= 0 || receive.matched_bytes == receive.bytes;
  }
}

}  // namespace renga
