#include "data_parallel/data_parallel.h"

#include <ranges>

#include "autograd/backward.h"
#include "world.h"

namespace renga {
namespace {

// Large enough that messages are not bound by latency, small enough that most are sent during the
// backward pass.
constexpr std::int64_t kBucketBytes = std::int64_t{4} << 20;

std::int64_t bytes(const Variable& x) { return x.size() * size_of(x.dtype()); }

// Averages of different parts would be of no parameter.
void require_same_parts(const nn::Module& model, Communicator& comm) {
  const auto parts = model.parts();
  if (parts.empty()) return;
  const auto count = std::ssize(parts);
  // The largest and, negative, the smallest part of all ranks.
  const Array extremes = empty({2, count}, Dtype::int64);
  auto* const largest = extremes.as<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    largest[i] = parts[static_cast<std::size_t>(i)].second;
    largest[count + i] = -largest[i];
  }
  communicators::all_reduce(comm, {extremes}, ReduceOp::max);
  for (std::int64_t i = 0; i < count; ++i) {
    require<std::invalid_argument>(
        largest[i] == -largest[count + i],
        "DataParallel: expected ranks with the same part of each parameter, got parts ",
        -largest[count + i], " to ", largest[i], " of ", parts[static_cast<std::size_t>(i)].first);
  }
}

}  // namespace

DataParallel::DataParallel(const nn::Module& model, std::shared_ptr<Communicator> comm)
    : comm_(std::move(comm)) {
  require<std::invalid_argument>(comm_ != nullptr,
                                 "DataParallel: expected a communicator, got none");
  if (comm_->size() == 1) return;
  require_same_parts(model, *comm_);
  std::vector<Array> arrays;
  for (const auto& [name, x] : model.arrays()) arrays.push_back(x.array());
  communicators::broadcast(*comm_, arrays);
  const std::vector<NamedVariable> parameters = model.parameters();
  std::int64_t size = kBucketBytes;
  for (const auto& [name, x] : std::views::reverse(parameters)) {
    if (size >= kBucketBytes || buckets_.back().parameters[0].dtype() != x.dtype()) {
      buckets_.emplace_back();
      size = 0;
    }
    size += bytes(x);
    buckets_.back().parameters.push_back(x);
    bucket_of_[x.body().get()] = buckets_.size() - 1;
  }
}

void DataParallel::send(const Bucket& bucket) {
  std::vector<Array> gradients;
  for (const Variable& x : bucket.parameters) {
    Variable& grad = x.body()->grad;
    if (!grad.defined()) grad = Variable(zeros(x.shape(), x.dtype(), x.device()));
    gradients.push_back(grad.array());
  }
  in_flight_.push_back(comm_->call(collective_named("all_reduce"), "all_reduce",
                                   {gradients, gradients, ReduceOp::mean}, {.wait = false}));
}

void DataParallel::backward(const Variable& loss) {
  if (comm_->size() == 1) return renga::backward(loss);
  check_loss(loss);
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
  std::size_t next = 0;  // all ranks send the buckets in their order
  PassContext context;
  context.add_hook([&](const Variable& leaf) {
    const auto found = bucket_of_.find(leaf.body().get());
    if (found == bucket_of_.end()) return;
    --buckets_[found->second].missing;
    while (next < buckets_.size() && buckets_[next].missing == 0) send(buckets_[next++]);
  });
  renga::backward(std::span(&loss, 1), {}, context);
  while (next < buckets_.size()) send(buckets_[next++]);
  for (const auto& work : std::exchange(in_flight_, {})) {
    if (work != nullptr) work->wait(0);
  }
}

}  // namespace renga
