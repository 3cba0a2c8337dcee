#include "mpi/matched_receives.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi/mpi_transport.h"

namespace renga {

struct MatchedReceives::Receive {
  std::byte* data;
  std::int64_t bytes;
  int from;
  int tag;
  std::int64_t taken = 0;
  bool matched = false;
  std::int64_t wrong = -1;           // what has come instead
  std::vector<std::byte> room = {};  // for that
  std::vector<MPI_Request> requests = {};
};

class MatchedReceives::Matched final : public Transfer {
 public:
  Matched(MatchedReceives& all, std::shared_ptr<Receive> receive)
      : Transfer(receive->from), all_(all), receive_(std::move(receive)) {}
  ~Matched() override { cancel(); }

  bool test() override {
    all_.advance();
    if (!is_over(false)) return false;
    if (receive_->wrong >= 0) {
      throw std::runtime_error("recv: expected " + std::to_string(receive_->bytes) +
                               " bytes from rank " + std::to_string(peer()) + ", got " +
                               std::to_string(receive_->wrong));
    }
    return true;
  }

  bool cancel() override { return is_over(true); }

 private:
  // Once it is matched, the others are not asked any more: they may be gone.
  bool is_over(bool cancelled) {
    if (over_) return true;
    if (!matched_) {
      matched_ = all_.is_matched(*receive_);
      if (!matched_ && cancelled) {
        all_.forget(*receive_);
        return over_ = true;
      }
      if (!matched_) return false;
    }
    if (cancelled && mpi_is_over()) return over_ = true;
    auto& requests = receive_->requests;
    int done = 0;
    check_mpi(
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
        "MPI_Testall");
    return over_ = done != 0;
  }

  MatchedReceives& all_;
  std::shared_ptr<Receive> receive_;
  bool matched_ = false;
  bool over_ = false;
};

std::unique_ptr<Transfer> MatchedReceives::start(void* data, std::int64_t bytes, int from,
                                                 int tag) {
  auto receive =
      std::make_shared<Receive>(Receive{static_cast<std::byte*>(data), bytes, from, tag});
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(receive);
    empty_ = false;
  }
  return std::make_unique<Matched>(*this, std::move(receive));
}

bool MatchedReceives::is_matched(const Receive& receive) {
  const std::lock_guard lock(mutex_);
  return receive.matched;
}

void MatchedReceives::forget(const Receive& receive) {
  const std::lock_guard lock(mutex_);
  waiting_.remove_if([&](const auto& other) { return other.get() == &receive; });
  empty_ = waiting_.empty();
}

void MatchedReceives::advance() {
  if (empty_) return;
  const std::lock_guard lock(mutex_);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Receive& receive = **it;
    const auto is_before = [&](const auto& other) {
      return other->from == receive.from && other->tag == receive.tag;
    };
    if (std::any_of(waiting_.begin(), it, is_before)) {
      ++it;
      continue;
    }
    match(receive);
    it = receive.matched ? waiting_.erase(it) : std::next(it);
  }
  empty_ = waiting_.empty();
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
    const std::int64_t rest = receive.bytes - receive.taken;
    std::byte* to = receive.data + receive.taken;
    if (count != std::min(kLongestMessage, rest)) {
      receive.wrong = receive.taken + count;
      receive.room.resize(static_cast<std::size_t>(count));
      to = receive.room.data();
    }
    check_mpi(MPI_Imrecv(to, count, MPI_BYTE, &message, &receive.requests.emplace_back()),
              "MPI_Imrecv");
    receive.taken += count;
    receive.matched = receive.wrong >= 0 || receive.taken == receive.bytes;
  }
}

}  // namespace renga
