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

template <class Post>
Communicator::Result Communicator::message(Call call, const std::vector<Array>& xs,
                                           const Issue& issue, const Post& post) {
  require<std::runtime_error>(
      forks_ == forks, call.op,
      ": this communicator belongs to the process that has forked this one");
  if (!xs.empty()) call.with(xs.back().shape(), xs.back().dtype());
  const Turn turn{*transport_, call.at(issue.site), seconds_, true};
  const auto work = std::make_shared<TransferWork>(turn, transport_, xs);
  const GilRelease lend;
  for (const Array& x : xs) work->add(post(x.data(), x.size() * x.itemsize()));
  if (!issue.wait) return work;
  work->complete(seconds_);
  return nullptr;
}

Communicator::Result Communicator::send(const std::vector<Array>& xs, std::int64_t given_to,
                                        std::int64_t given_tag, const Issue& issue) {
  const int to = checked_rank("send", given_to), tag = checked_tag("send", given_tag);
  std::erase_if(sent_, [](const Result& work) { return work->is_over(); });
  std::vector<Array> leaving;
  for (const Array& x : xs) leaving.push_back(contiguous(x));
  Result work = message(Call("send").with_peer(to), leaving, issue,
                        [=, this](const std::byte* data, std::int64_t bytes) {
                          return transport_->send(data, bytes, to, tag);
                        });
  // The bytes have to stay until they are sent, even if the caller drops the Work.
  if (work) sent_.push_back(work);
  return work;
}

Communicator::Result Communicator::receive(const std::vector<Array>& xs, std::int64_t given_from,
                                           std::int64_t given_tag, const Issue& issue) {
  const int from = checked_rank("recv", given_from), tag = checked_tag("recv", given_tag);
  for (const Array& x : xs) {
    require(x.is_contiguous(), "recv: expected a contiguous result, got strides ", x.strides());
  }
  return message(Call("recv").with_peer(from), xs, issue,
                 [=, this](std::byte* data, std::int64_t bytes) {
                   return transport_->receive(data, bytes, from, tag);
                 });
}

}  // namespace renga
