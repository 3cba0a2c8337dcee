// Messages between two ranks.
#include <algorithm>
#include <cstring>

#include "communicator.h"
#include "context/backoff.h"
#include "devices/gil_release.h"

namespace renga {

namespace {

// Such a message is sent when its receiver has answered, and takes longer than to wake a thread.
constexpr std::int64_t kLongBytes = std::int64_t{1} << 20;

std::int64_t size_in_bytes(const Array& x) { return x.size() * x.itemsize(); }

// Whether xs[0] has received the bytes of `expected`.
Transport::Accepts is_equal(const std::vector<Array>& xs, const Array& expected) {
  require(!xs.empty() && size_in_bytes(xs[0]) == size_in_bytes(expected),
          "recv: expected a header of ", size_in_bytes(expected), " bytes");
  const Array header = contiguous(expected);
  const auto size = static_cast<std::size_t>(size_in_bytes(header));
  return [received = xs[0].data(), bytes = std::vector(header.data(), header.data() + size)] {
    return std::memcmp(received, bytes.data(), bytes.size()) == 0;
  };
}

}  // namespace

int Communicator::checked_tag(const char* name, std::int64_t tag) const {
  const int greatest = transport_->max_tag();
  require<std::invalid_argument>(tag >= 0 && tag <= greatest, name, ": expected a tag in [0, ",
                                 greatest, "], got ", tag);
  return static_cast<int>(tag);
}

template <class Start>
Communicator::Result Communicator::message(Call call, const std::vector<Array>& xs, bool sends,
                                           const LaunchOptions& options, const Start& start) {
  require<std::runtime_error>(
      fork_count_ == fork_count, call.op,
      ": this communicator belongs to the process that has forked this one");
  if (!xs.empty()) call.with(xs.back().shape(), xs.back().dtype());
  const CollectiveContext context{*transport_, call.at(options.call_site), timeout_seconds_, true};
  const auto work = std::make_shared<TransferWork>(context, transport_, xs);
  const GilRelease lend;
  std::int64_t messages = 0, bytes = 0;
  for (const Array& x : xs) {
    work->add(start(x));
    if (!sends) continue;
    ++messages;
    bytes += size_in_bytes(x);
  }
  traffic_->add(call.op, messages, bytes);
  if (!options.wait) {
    work->advance_in_background(bytes >= kLongBytes);
    return work;
  }
  work->wait_without_gil(timeout_seconds_);
  return nullptr;
}

Communicator::Result Communicator::send(const std::vector<Array>& xs, std::int64_t to,
                                        std::int64_t tag, const LaunchOptions& options) {
  const int destination = checked_rank("send", to, size()), checked = checked_tag("send", tag);
  std::erase_if(sends_, [](const Result& work) { return work->is_done(); });
  std::vector<Array> buffers;
  for (const Array& x : xs) buffers.push_back(contiguous(x));
  Result work = message(Call("send").with_peer(destination), buffers, true, options,
                        [=, this](const Array& x) {
                          return transport_->send(x.data(), size_in_bytes(x), destination, checked);
                        });
  // Keeps the bytes until they are sent, even if the caller drops the Work.
  if (work) sends_.push_back(work);
  return work;
}

Communicator::Result Communicator::receive(const std::vector<Array>& xs, std::int64_t from,
                                           std::int64_t tag, const LaunchOptions& options,
                                           const std::optional<Array>& expected) {
  const int source = checked_rank("recv", from, size()), checked = checked_tag("recv", tag);
  for (const Array& x : xs) {
    require(x.is_contiguous(), "recv: expected a contiguous result, got strides ", x.strides());
  }
  const Transport::Accepts accepts = expected ? is_equal(xs, *expected) : Transport::Accepts();
  return message(Call("recv").with_peer(source), xs, false, options, [&](const Array& x) {
    const bool is_first = &x == &xs.front();
    return transport_->receive(x.data(), size_in_bytes(x), source, checked,
                               is_first ? Transport::Accepts() : accepts);
  });
}

std::optional<Envelope> Communicator::probe(std::optional<std::int64_t> from,
                                            std::optional<std::int64_t> tag,
                                            std::optional<double> seconds) {
  require<std::runtime_error>(
      fork_count_ == fork_count,
      "recv: this communicator belongs to the process that has forked this one");
  std::optional<int> source, checked;
  if (from) source = checked_rank("recv", *from, size());
  if (tag) checked = checked_tag("recv", *tag);
  std::vector<int> peers;
  for (int r = 0; r < size(); ++r) {
    if (source ? r == *source : r != rank()) peers.push_back(r);
  }
  const CollectiveContext context{*transport_, Call("recv").with_peer(source.value_or(-1)),
                                  seconds.value_or(timeout_seconds_), true};
  const GilRelease lend;
  Backoff backoff(context, !seconds);
  if (seconds) backoff.sleep_at_once();
  while (true) {
    transport_->progress();
    if (const auto found = transport_->probe(source, checked)) return found;
    if (seconds && *seconds <= 0) return {};
    if (!backoff.wait()) break;
    const auto has_shut_down = [this](int peer) { return transport_->has_shut_down(peer); };
    if (!peers.empty() && std::ranges::all_of(peers, has_shut_down) &&
        backoff.has_lost(peers.front())) {
      throw_rank_failed(context, peers.front());
    }
  }
  if (!seconds) throw_timeout(context, peers);
  return {};
}

}  // namespace renga
