#include "communicator.h"

#include <algorithm>

#include "collectives/arguments.h"
#include "collectives/buffers.h"
#include "collectives/call_comparison.h"
#include "collectives/hierarchical.h"
#include "collectives/peer_reads.h"
#include "collectives/point_to_point.h"
#include "collectives/safe_inputs.h"
#include "collectives/shared_memory.h"
#include "collectives/unequal_nodes.h"
#include "devices/gil_release.h"
#include "tensor/overlap.h"

namespace renga {

namespace {

// x[0], x[1], …
std::vector<Array> rows_of(const Array& x) {
  std::vector<Array> rows;
  const Shape shape(std::span(x.shape().begin() + 1, x.shape().end()));
  const Strides strides(std::span(x.strides().begin() + 1, x.strides().end()));
  for (std::int64_t r = 0; r < x.shape(0); ++r) {
    rows.emplace_back(x.storage(), x.data() + r * x.strides()[0], shape, strides, x.dtype());
  }
  return rows;
}

bool is_small(const std::vector<Array>& xs) {
  std::int64_t bytes = 0;
  for (const Array& x : xs) bytes += x.size() * x.itemsize();
  return bytes <= shared_memory::kSmallBytes;
}

// Marks a communicator as busy while a caller is in a collective.
class BusyScope {
 public:
  // Relaxed: callers hold the GIL when they read it.
  explicit BusyScope(std::atomic<bool>& busy) : busy_(busy) {
    busy_.store(true, std::memory_order_relaxed);
  }
  ~BusyScope() { busy_.store(false, std::memory_order_relaxed); }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  std::atomic<bool>& busy_;
};

}  // namespace

Communicator::Communicator(std::shared_ptr<Transport> transport, double timeout_seconds, bool debug,
                           std::shared_ptr<Traffic> parent)
    : transport_(std::move(transport)),
      traffic_(std::make_shared<Traffic>(std::move(parent))),
      timeout_seconds_(timeout_seconds),
      debug_(debug),
      fork_count_(fork_count) {
  const int local_rank = topology().intra_rank, ranks = topology().intra_size;
  const auto memory = transport_->allocate_shared(SharedSegment::bytes(ranks));
  if (memory == nullptr) return;
  node_segment_ = std::make_unique<SharedSegment>(memory, local_rank, ranks, rank() - local_rank);
  if (topology().inter_size == 1) common_segment_ = node_segment_.get();
}

Communicator::~Communicator() {
  // The queue's thread does not exist in a forked process, so joining it would never end.
  if (fork_count_ != fork_count) static_cast<void>(queue_.release());
}

void Communicator::check_usable(const Call& call) const {
  require<std::runtime_error>(
      fork_count_ == fork_count, call.op,
      ": this communicator belongs to the process that has forked this one");
  require<std::runtime_error>(!busy_, call.op, ": another thread is in a collective of this ",
                              "communicator; only one thread at a time may call them, and split() ",
                              "makes communicators for others");
}

void Communicator::compare_calls(const CollectiveContext& context) const {
  if (common_segment_ != nullptr) {
    common_segment_->barrier(context);
  } else {
    point_to_point::compare_calls(context);
  }
}

template <class Run>
void Communicator::run_collective(const CollectiveContext& context, const Run& run) {
  if (!failure_.empty()) {
    fail<std::runtime_error>(context.call.op,
                             ": this communicator cannot be used after: ", failure_);
  }
  try {
    transport_->check_failure();
    if (common_segment_ != nullptr) common_segment_->publish(context.call);
    run(context);
    // Of empty arrays, no chunk was moved, and so there was no barrier.
    if (common_segment_ != nullptr && common_segment_->is_call_unchecked()) {
      common_segment_->barrier(context);
    }
  } catch (const CallMismatch&) {
    throw;
  } catch (const std::exception& error) {
    failure_ = error.what();
    throw;
  }
}

void Communicator::run_and_count(const CollectiveContext& context, const Body& body) {
  // One collective runs at a time, so all that collectives send meanwhile is its own.
  struct Count {
    ~Count() {
      self.traffic_->add(context.call.op, sent.messages() - messages, sent.bytes() - bytes);
    }
    const Communicator& self;
    const CollectiveContext& context;
    const SentMessages& sent = self.transport_->collective_traffic();
    std::int64_t messages = sent.messages(), bytes = sent.bytes();
  };
  const Count count{*this, context};
  run_collective(context, body);
}

Communicator::Result Communicator::launch(Call call, const LaunchOptions& options, Body body) {
  check_usable(call);
  call.sequence = ++sequence_;
  CollectiveContext context{*transport_, call.at(options.call_site), timeout_seconds_};
  if (queue_->is_idle() && (options.wait || !transport_->concurrent())) {
    context.interruptible = true;
    const BusyScope busy(busy_);
    const GilRelease lend;
    run_and_count(context, body);
    return nullptr;
  }
  Result work = queue_->push(context, transport_, [this, context, body = std::move(body)] {
    run_and_count(context, body);
  });
  if (!options.wait) return work;
  work->wait(0);
  return nullptr;
}

Communicator::Result Communicator::all_reduce(const std::vector<Array>& xs,
                                              const std::vector<Array>& ys, Reduction reduction,
                                              std::optional<Dtype> communication_dtype,
                                              const LaunchOptions& options) {
  Call call = all_reduce_call(xs, ys, reduction, communication_dtype);
  const Dtype dtype = xs[0].dtype(), sent_as = communication_dtype.value_or(dtype);
  // In windows, an array is written before the next is read.
  bool in_place = sent_as == dtype && !MemoryRanges(ys).overlap();
  for (std::size_t i = 0; i < xs.size(); ++i) {
    in_place = in_place && xs[i].data() == ys[i].data();
  }
  if (in_place && common_segment_ != nullptr && !algorithm_ && !is_small(xs)) {
    if (const Windows::Found found = windows_.find(xs); !found.peers.empty()) {
      return launch(call.in_windows(found.layout), options,
                    [=, this](const CollectiveContext& context) {
                      shared_memory::all_reduce_windows(context, *common_segment_, xs, found.peers,
                                                        reduction);
                    });
    }
  }
  return launch(call, options,
                [=, this, inputs = safe_inputs(xs, ys)](const CollectiveContext& context) {
                  run_all_reduce(context, inputs, ys, sent_as, reduction);
                });
}

bool Communicator::all_reduce_small(std::byte* x, const Shape& shape, Dtype dtype,
                                    Reduction reduction, const LaunchOptions& options) {
  const std::int64_t bytes = shape.product() * size_of(dtype);
  if (bytes > shared_memory::kSmallBytes || common_segment_ == nullptr || algorithm_ ||
      !queue_->is_idle() || (reduction == Reduction::mean && !is_float(dtype))) {
    return false;
  }
  CollectiveContext context{*transport_, Call("all_reduce"), timeout_seconds_, true};
  check_usable(context.call);
  context.call.with(shape, dtype).with_detail(name_of(reduction)).at(options.call_site);
  context.call.sequence = ++sequence_;
  traffic_->add_all_reduce();
  const BusyScope busy(busy_);
  run_collective(context, [&](const CollectiveContext&) {
    shared_memory::all_reduce_small(context, *common_segment_, x, bytes, dtype, reduction);
  });
  return true;
}

void Communicator::run_all_reduce(const CollectiveContext& context, const std::vector<Array>& xs,
                                  const std::vector<Array>& ys, Dtype communication_dtype,
                                  Reduction reduction) {
  const std::vector<Array> results = receive_buffers(ys, FlatBucket::has_long_runs);
  const std::vector<Array> inputs = send_buffers(xs, FlatBucket::has_long_runs);
  const FlatBucket x(inputs, communication_dtype), y(results, communication_dtype);
  if (common_segment_ != nullptr && !algorithm_) {
    const bool same_dtype = inputs[0].dtype() == communication_dtype;
    if (!same_dtype || !all_reduce_by_reading(context, inputs, results, reduction)) {
      shared_memory::all_reduce(context, *common_segment_, x, y, communication_dtype, reduction);
    }
  } else if (common_segment_ == nullptr && !algorithm_ &&
             point_to_point::fits_first_message(context, x.bytes())) {
    point_to_point::all_reduce_small(context, x, y, communication_dtype, reduction);
  } else {
    compare_calls(context);
    const auto model = algorithm_ ? all_reduce::NetworkModel() : network(context);
    // With one rank per node there is nothing to reduce within nodes, and 16-bit operands are sent
    // as such instead of as 32-bit partial results.
    const bool one_rank_per_node = topology().inter_size == size();
    const bool unequal = !topology().uniform_nodes;
    if (algorithm_ || node_segment_ == nullptr || one_rank_per_node ||
        (unequal && !unequal_nodes::pays(context, model, x.bytes()))) {
      point_to_point::all_reduce(context, model, algorithm_, x, y, communication_dtype, reduction);
    } else if (unequal) {
      unequal_nodes::all_reduce(context, *node_segment_, x, y, communication_dtype, reduction);
    } else {
      hierarchical::all_reduce(context, *node_segment_, model, x, y, communication_dtype,
                               reduction);
    }
  }
  copy_received(results, ys);
}

bool Communicator::all_reduce_by_reading(const CollectiveContext& context,
                                         const std::vector<Array>& xs, const std::vector<Array>& ys,
                                         Reduction reduction) {
  if (!peer_reads::pays(context, xs)) return false;
  if (!reading_is_faster_) reading_is_faster_ = peer_reads::is_faster(context, *common_segment_);
  return *reading_is_faster_ &&
         peer_reads::all_reduce(context, *common_segment_, xs, ys, reduction);
}

const all_reduce::NetworkModel& Communicator::network(const CollectiveContext& context) {
  if (!network_) network_ = all_reduce::measure_network(context);
  return *network_;
}

all_reduce::NetworkModel Communicator::measure_network(const LaunchOptions& options) {
  all_reduce::NetworkModel model;
  launch(Call("measure"), options, [&](const CollectiveContext& context) {
    compare_calls(context);
    model = all_reduce::measure_network(context);
  });
  return model;
}

Communicator::Result Communicator::reduce_scatter(const Array& x, const Array& y,
                                                  Reduction reduction,
                                                  const LaunchOptions& options) {
  const Call call = reduce_scatter_call(x, y, reduction, size());
  const Array input = MemoryRanges({x, y}).overlap() ? copy_of(x) : x;
  return launch(call, options, [=, this](const CollectiveContext& context) {
    const std::vector<Array> results = receive_buffers({y}, FlatBucket::has_long_runs);
    const std::vector<Array> inputs = send_buffers({input}, FlatBucket::has_long_runs);
    const FlatBucket from(inputs), to(results);
    if (common_segment_ != nullptr) {
      shared_memory::reduce_scatter(context, *common_segment_, from, to, x.dtype(), reduction);
    } else {
      point_to_point::reduce_scatter(context, from, to, x.dtype(), reduction);
    }
    copy_received(results, {y});
  });
}

Communicator::Result Communicator::all_gather(const Array& x, const Array& y,
                                              const LaunchOptions& options) {
  const Call call = all_gather_call(x, y, size());
  const std::vector<Array> ys = rows_of(y);
  const Array input = safe_inputs({x}, ys, rank())[0];
  return all_gatherv(call, input, ys, options);
}

Communicator::Result Communicator::all_gatherv(const char* name, const Array& x,
                                               const std::vector<Array>& ys,
                                               const LaunchOptions& options) {
  require(std::ssize(ys) == size(), name, ": expected one result per rank, got ", ys.size());
  require_same_form(name, x, ys[rank()]);
  return all_gatherv(Call(name), x, ys, options);
}

Communicator::Result Communicator::all_gatherv(Call call, const Array& x,
                                               const std::vector<Array>& ys,
                                               const LaunchOptions& options) {
  return launch(call, options, [=, this](const CollectiveContext& context) {
    const bool shared = common_segment_ != nullptr;
    const IsDirect is_direct = shared ? FlatBucket::has_long_runs : is_contiguous;
    const std::vector<Array> results = receive_buffers(ys, is_direct);
    const Array input = send_buffers({x}, is_direct)[0];
    if (shared) {
      shared_memory::all_gather(context, *common_segment_, input, results);
    } else {
      point_to_point::all_to_allv(context, std::vector<Array>(ys.size(), input), results);
    }
    copy_received(results, ys);
  });
}

Communicator::Result Communicator::all_to_all(const Array& x, const Array& y,
                                              const LaunchOptions& options) {
  const Call call = all_to_all_call(x, y, size());
  const Array input = MemoryRanges({x, y}).overlap() ? copy_of(x) : x;
  return all_to_allv(call, rows_of(input), rows_of(y), options);
}

Communicator::Result Communicator::all_to_allv(const char* name, std::optional<std::int64_t> root,
                                               const std::vector<Array>& sent,
                                               const std::vector<Array>& received,
                                               const LaunchOptions& options) {
  require(std::ssize(sent) == size() && std::ssize(received) == size(), name,
          ": expected one array per rank, got ", sent.size(), " and ", received.size());
  Call call(name);
  if (root) call.with_peer(checked_rank(name, *root));
  return all_to_allv(call, sent, received, options);
}

Communicator::Result Communicator::all_to_allv(Call call, const std::vector<Array>& sent,
                                               const std::vector<Array>& received,
                                               const LaunchOptions& options) {
  return launch(call, options, [=, this](const CollectiveContext& context) {
    const bool shared = common_segment_ != nullptr;
    const IsDirect is_direct = shared ? FlatBucket::has_long_runs : is_contiguous;
    const std::vector<Array> results = receive_buffers(received, is_direct);
    const std::vector<Array> inputs = send_buffers(sent, is_direct);
    if (shared) {
      shared_memory::all_to_allv(context, *common_segment_, inputs, results);
    } else {
      point_to_point::all_to_allv(context, inputs, results);
    }
    copy_received(results, received);
  });
}

Communicator::Result Communicator::broadcast(const char* name, const Array& x, std::int64_t root,
                                             const LaunchOptions& options) {
  const int checked_root = checked_rank(name, root);
  const Call call = Call(name).with(x.shape(), x.dtype()).with_peer(checked_root);
  return launch(call, options, [=, this](const CollectiveContext& context) {
    const bool is_root = context.rank() == checked_root;
    const Array buffer = is_root ? contiguous(x) : receive_buffers({x}, is_contiguous)[0];
    if (common_segment_ != nullptr) {
      shared_memory::broadcast(context, *common_segment_, buffer, checked_root);
    } else {
      point_to_point::broadcast(context, buffer, checked_root);
    }
    if (!is_root) copy_received({buffer}, {x});
  });
}

void Communicator::barrier(const LaunchOptions& options) {
  launch(Call("barrier"), options,
         [this](const CollectiveContext& context) { compare_calls(context); });
}

std::shared_ptr<Communicator> Communicator::split(std::optional<int> color, int key,
                                                  const LaunchOptions& options) {
  struct Request {
    std::int32_t has_color, color, key;
  };
  const Array own = empty({3}, Dtype::int32), all = empty({size(), 3}, Dtype::int32);
  *reinterpret_cast<Request*>(own.data()) = {color.has_value(), color.value_or(0), key};
  all_gatherv("split", own, rows_of(all), options);
  if (!color) return nullptr;
  const auto* requests = reinterpret_cast<const Request*>(all.data());
  std::vector<int> members;
  for (int r = 0; r < size(); ++r) {
    if (requests[r].has_color && requests[r].color == *color) members.push_back(r);
  }
  std::ranges::stable_sort(members, {}, [&](int r) { return requests[r].key; });
  const GilRelease lend;
  return std::make_shared<Communicator>(transport_->split(members), timeout_seconds_, debug_,
                                        traffic_);
}

}  // namespace renga
