// Messages between two ranks.
#include "communicator.h"
#include "devices/gil_release.h"

namespace renga {

int Communicator::checked_rank(const char* name, std::int64_t rank) const {
  require<std::invalid_argument>(rank >= 0 && rank < size(), name, ": expected a rank in [0, ",
                                 size(), "), got ", rank);
  return static_cast<int>(rank);
}

int Communicator::checked_tag(const char* name, std::int64_t tag) const {
  const int greatest = transport_->max_tag();
  require<std::invalid_argument>(tag >= 0 && tag <= greatest, name, ": expected a tag in [0, ",
                                 greatest, "], got ", tag);
  return static_cast<int>(tag);
}

template <class Start>
Communicator::Result Communicator::message(Call call, const std::vector<Array>& xs,
                                           const LaunchOptions& options, const Start& start) {
  require<std::runtime_error>(
      fork_count_ == fork_count, call.op,
      ": this communicator belongs to the process that has forked this one");
  if (!xs.empty()) call.with(xs.back().shape(), xs.back().dtype());
  const CollectiveContext context{*transport_, call.at(options.call_site), timeout_seconds_, true};
  const auto work = std::make_shared<TransferWork>(context, transport_, xs);
  const GilRelease lend;
  for (const Array& x : xs) work->add(start(x.data(), x.size() * x.itemsize()));
  if (!options.wait) return work;
  work->wait_without_gil(timeout_seconds_);
  return nullptr;
}

Communicator::Result Communicator::send(const std::vector<Array>& xs, std::int64_t to,
                                        std::int64_t tag, const LaunchOptions& options) {
  const int destination = checked_rank("send", to), checked = checked_tag("send", tag);
  std::erase_if(sends_, [](const Result& work) { return work->is_done(); });
  std::vector<Array> buffers;
  for (const Array& x : xs) buffers.push_back(contiguous(x));
  Result work = message(Call("send").with_peer(destination), buffers, options,
                        [=, this](const std::byte* data, std::int64_t bytes) {
                          return transport_->send(data, bytes, destination, checked);
                        });
  // Keeps the bytes until they are sent, even if the caller drops the Work.
  if (work) sends_.push_back(work);
  return work;
}

Communicator::Result Communicator::receive(const std::vector<Array>& xs, std::int64_t from,
                                           std::int64_t tag, const LaunchOptions& options) {
  const int source = checked_rank("recv", from), checked = checked_tag("recv", tag);
  for (const Array& x : xs) {
    require(x.is_contiguous(), "recv: expected a contiguous result, got strides ", x.strides());
  }
  return message(Call("recv").with_peer(source), xs, options,
                 [=, this](std::byte* data, std::int64_t bytes) {
                   return transport_->receive(data, bytes, source, checked);
                 });
}

}  // namespace renga
