#include "communicator.h"

#include <dlfcn.h>

#include <algorithm>

#include "collectives/buffers.h"
#include "collectives/point_to_point.h"
#include "collectives/shared_memory.h"
#include "devices/gil_release.h"

namespace renga {

namespace {

bool is_small(const std::vector<Array>& xs) {
  std::int64_t bytes = 0;
  for (const Array& x : xs) bytes += x.size() * x.itemsize();
  return bytes <= shared_memory::kSmallBytes;
}

// The device of the arrays.
Device device_of(const char* name, const Arguments& arguments) {
  std::optional<Device> device;
  for (const std::vector<Array>* const arrays : {&arguments.xs, &arguments.ys}) {
    for (const Array& x : *arrays) {
      if (!x.defined()) continue;
      if (x.device() != device.value_or(x.device())) {
        fail<std::invalid_argument>(name, ": expected arrays on one device, got ",
                                    to_string(*device), " and ", to_string(x.device()));
      }
      device = x.device();
    }
  }
  return device.value_or(Device{});
}

const DeviceLibrary& library_for(const char* name, Device device) {
  if (device_library == nullptr) dlopen("librenga_nccl.so", RTLD_NOW | RTLD_GLOBAL);
  require<std::runtime_error>(device_library != nullptr, name, ": expected NCCL for arrays on ",
                              to_string(device), ", got none");
  return *device_library;
}

// Buffers take the place of arrays that are not direct; the other arrays stay in `arguments`, as a
// caller that has the GIL gives their memory back faster.
void run_on_buffers(Collectives& collectives, const Collective& collective,
                    const CollectiveContext& context, Arguments& arguments, IsDirect is_direct) {
  std::vector<Array> ys;  // the caller's, if there are buffers
  arguments.xs = send_buffers(std::move(arguments.xs), is_direct);
  if (!are_direct(arguments.ys, is_direct)) {
    ys = std::exchange(arguments.ys, receive_buffers(arguments.ys, is_direct));
  }
  (collectives.*collective.run)(context, arguments);
  copy_received(arguments.ys, ys);
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
  if (memory != nullptr) {
    node_segment_ = std::make_unique<SharedSegment>(memory, local_rank, ranks, rank() - local_rank);
  }
  // With one rank per node there is nothing to reduce within nodes, and 16-bit operands are sent as
  // such instead of as 32-bit partial results.
  const bool one_rank_per_node = topology().inter_size == size();
  if (memory != nullptr && topology().inter_size == 1) {
    collectives_ = shared_memory::collectives(*node_segment_);
  } else if (memory != nullptr && !one_rank_per_node) {
    collectives_ = point_to_point::two_levels(*node_segment_);
  } else {
    collectives_ = point_to_point::messages();
  }
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

template <class Run>
void Communicator::run_collective(const CollectiveContext& context, const Run& run) {
  if (!failure_.empty()) {
    fail<std::runtime_error>(context.call.op,
                             ": this communicator cannot be used after: ", failure_);
  }
  try {
    transport_->check_failure();
    collectives_->begin(context.call);
    run(context);
    collectives_->end(context);
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

bool Communicator::runs_at_once(const LaunchOptions& options) const {
  return queue_->is_idle() && (options.wait || !transport_->concurrent());
}

Communicator::Result Communicator::launch(Call call, const LaunchOptions& options, Body body) {
  check_usable(call);
  call.sequence = ++sequence_;
  CollectiveContext context{*transport_, call.at(options.call_site), timeout_seconds_};
  if (runs_at_once(options)) {
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

Communicator::Result Communicator::call(const Collective& collective, const char* called,
                                        Arguments arguments, const LaunchOptions& options) {
  Call call = collective.check(called, arguments, topology());
  if (const Device device = device_of(called, arguments); !device.is_host()) {
    return call_on_device(collective, device, call, std::move(arguments), options);
  }
  arguments.algorithm = algorithm_;
  if (arguments.in_place && segment() != nullptr && !algorithm_ && !is_small(arguments.xs)) {
    Windows::Found found = windows_.find(arguments.xs);
    call.in_windows(found.layout);
    arguments.peers = std::move(found.peers);
  }
  auto body = [this, &collective,
               arguments = std::move(arguments)](const CollectiveContext& context) mutable {
    run_on_buffers(*collectives_, collective, context, arguments, FlatBucket::has_long_runs);
  };
  // In a short collective, a copy on the heap would take a tenth of the time.
  if (runs_at_once(options)) return launch(call, options, std::ref(body));
  return launch(call, options, std::move(body));
}

Communicator::Result Communicator::call_on_device(const Collective& collective, Device device,
                                                  Call call, Arguments arguments,
                                                  const LaunchOptions& options) {
  check_usable(call);
  if (device_collectives_ == nullptr) {
    const DeviceLibrary& library = library_for(call.op, device);
    const Array id = empty({library.id_bytes}, Dtype::uint8);
    if (rank() == 0) library.create_id(id.data());
    Arguments sent{{}, {}};
    (rank() == 0 ? sent.xs : sent.ys) = {id};
    sent.root = 0;
    this->call(collective_named("broadcast"), "broadcast", std::move(sent), {});
    connect_devices({id.data(), static_cast<std::size_t>(id.size())}, device);
  }
  require<std::invalid_argument>(device == device_collectives_->device(), call.op,
                                 ": expected arrays on GPU ", device_collectives_->device().index,
                                 ", which rank ", rank(), " uses, got one on GPU ", device.index);
  const CollectiveContext context{*transport_, call.at(options.call_site), timeout_seconds_};
  std::vector<Array> arrays = arguments.xs;
  arrays.insert(arrays.end(), arguments.ys.begin(), arguments.ys.end());
  Result work = device_collectives_->start(context, std::move(arrays), [&] {
    run_on_buffers(*device_collectives_, collective, context, arguments, is_contiguous);
  });
  if (!options.wait) return work;
  work->wait(0);
  return nullptr;
}

void Communicator::connect_devices(std::span<const std::byte> id, Device device) {
  const DeviceLibrary& library = library_for("connect_devices", device);
  require<std::invalid_argument>(std::ssize(id) == library.id_bytes,
                                 "connect_devices: expected an id of ", library.id_bytes,
                                 " bytes, got ", id.size());
  device_collectives_ = library.connect(id.data(), rank(), size(), device, timeout_seconds_);
}

bool Communicator::all_reduce_small(std::byte* x, const Shape& shape, Dtype dtype,
                                    ReduceOp reduction, const LaunchOptions& options) {
  const std::int64_t bytes = shape.product() * size_of(dtype);
  if (bytes > shared_memory::kSmallBytes || segment() == nullptr || algorithm_ ||
      !queue_->is_idle() || (reduction == ReduceOp::mean && !is_float(dtype))) {
    return false;
  }
  CollectiveContext context{*transport_, Call("all_reduce"), timeout_seconds_, true};
  check_usable(context.call);
  context.call.with(shape, dtype).with_detail(name_of(reduction)).at(options.call_site);
  context.call.sequence = ++sequence_;
  traffic_->add_all_reduce();
  const BusyScope busy(busy_);
  run_collective(context, [&](const CollectiveContext&) {
    shared_memory::all_reduce_small(context, *segment(), x, bytes, dtype, reduction);
  });
  return true;
}

all_reduce::NetworkModel Communicator::measure_network(const LaunchOptions& options) {
  all_reduce::NetworkModel model;
  launch(Call("measure"), options, [&](const CollectiveContext& context) {
    collectives_->barrier(context);
    model = all_reduce::measure_network(context);
  });
  return model;
}

void Communicator::barrier(const LaunchOptions& options) {
  if (device_collectives_ != nullptr) device_collectives_->throw_failure();
  launch(Call("barrier"), options,
         [this](const CollectiveContext& context) { collectives_->barrier(context); });
}

std::shared_ptr<Communicator> Communicator::split(std::optional<int> color, int key,
                                                  const LaunchOptions& options) {
  struct Request {
    std::int32_t has_color, color, key;
  };
  const Array own = empty({3}, Dtype::int32), all = empty({size(), 3}, Dtype::int32);
  *reinterpret_cast<Request*>(own.data()) = {color.has_value(), color.value_or(0), key};
  call(collective_named("all_gatherv"), "split", {{own}, rows_of(all)}, options);
  const GilRelease lend;
  transport_->free_unused_splits();
  if (!color) return nullptr;
  const auto* requests = reinterpret_cast<const Request*>(all.data());
  std::vector<int> members;
  for (int r = 0; r < size(); ++r) {
    if (requests[r].has_color && requests[r].color == *color) members.push_back(r);
  }
  std::ranges::stable_sort(members, {}, [&](int r) { return requests[r].key; });
  return std::make_shared<Communicator>(transport_->split(members), timeout_seconds_, debug_,
                                        traffic_);
}

}  // namespace renga
