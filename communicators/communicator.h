// A group of ranks that communicate. All ranks call the same collectives in the same order.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "tensor/array.h"
#include "transport/transport.h"
#include "work.h"

namespace renga {

struct LaunchOptions {
  bool wait = true;            // false: runs on the communicator's thread while the caller goes on
  std::string call_site = {};  // of the user, for error messages
};

// Every method that moves data returns null if it waited and a Work otherwise. Arrays may have any
// strides and must not be touched before the Work is done. Throws TimeoutError if a rank does not
// call it within the time-out, CallMismatch if ranks call different things.
class Communicator {
 public:
  using Result = std::shared_ptr<Work>;
  using Body = std::function<void(const CollectiveContext&)>;

  // All ranks call it. `timeout_seconds` is the time-out of every wait, 0 for none. `debug`: call
  // sites are recorded, at a cost for every call. `parent`: of the communicator that is split.
  Communicator(std::shared_ptr<Transport> transport, double timeout_seconds, bool debug,
               std::shared_ptr<Traffic> parent = nullptr);
  ~Communicator();

  const Topology& topology() const { return transport_->topology(); }
  int rank() const { return topology().rank; }
  int size() const { return topology().size; }
  const std::shared_ptr<Transport>& transport() const { return transport_; }
  bool records_call_sites() const { return debug_; }
  const Traffic& traffic() const { return *traffic_; }
  // Whether the ranks of this node share memory.
  bool shares_memory() const { return node_segment_ != nullptr; }
  // Ranks with the same `color` form a group, ordered by `key`, then rank. No color: null.
  std::shared_ptr<Communicator> split(std::optional<int> color, int key,
                                      const LaunchOptions& options);

  // Checks the arguments and runs the collective. `called`: its name in errors and traffic. Arrays
  // on devices are communicated by the devices' library (see DeviceCollectives).
  Result call(const Collective& collective, const char* called, Arguments arguments,
              const LaunchOptions& options);
  // Connects the ranks' devices by an id of the library's, which they have got on another way; else
  // their first collective does.
  void connect_devices(std::span<const std::byte> id, Device device);
  // all_reduce of a small contiguous array in place, waited for. Does nothing and returns false if
  // call() would take another path or is required to check the arguments.
  bool all_reduce_small(std::byte* x, const Shape& shape, Dtype dtype, ReduceOp reduction,
                        const LaunchOptions& options);
  // Returns when every rank has called it.
  void barrier(const LaunchOptions& options);

  // One message for each array, in order; the tag is not negative.
  Result send(const std::vector<Array>& xs, std::int64_t to, std::int64_t tag,
              const LaunchOptions& options);
  // Into contiguous arrays, which have the sizes of those sent. If the first, a header, is not
  // equal to `expected`, the others are not written to, and the receive fails.
  Result receive(const std::vector<Array>& xs, std::int64_t from, std::int64_t tag,
                 const LaunchOptions& options, const std::optional<Array>& expected = {});
  // A message that has arrived, from any rank and with any tag unless they are given; the next
  // receive of its source and tag gets it. Waits for one as a receive would, or at most for
  // `seconds`, after which there is none; then it sleeps most of the time.
  std::optional<Envelope> probe(std::optional<std::int64_t> from, std::optional<std::int64_t> tag,
                                std::optional<double> seconds);

  // An array of `bytes` in memory that the ranks of this node share, in which collectives need no
  // copies; in ordinary memory if they do not. All ranks call it, and use the same parts of their
  // arrays in a collective.
  Array window(std::int64_t bytes, const LaunchOptions& options);
  // Row-major copies of arrays in one window, each with its own storage; none if the ranks do not
  // share memory.
  std::vector<Array> copy_to_window(const std::vector<Array>& xs, const LaunchOptions& options);
  // The array at the same offset in the window of another rank of this node.
  Array window_of_peer(const Array& x, std::int64_t local_rank);
  Windows::Found find_windows(const std::vector<Array>& xs) { return windows_.find(xs); }

  // Runs `body` on each rank as one collective. It begins with a barrier, at which ranks whose
  // `call` differs throw CallMismatch.
  Result launch(Call call, const LaunchOptions& options, Body body);
  // The segment of all ranks; null if they are on several nodes or do not share memory.
  SharedSegment* segment() const { return collectives_->segment(); }

  // Latency and bandwidth of messages between the halves of the ranks.
  all_reduce::NetworkModel measure_network(const LaunchOptions& options);
  // Makes all_reduce send messages, by this algorithm; none: the fastest path.
  void set_algorithm(std::optional<all_reduce::Algorithm> algorithm) { algorithm_ = algorithm; }

  // Ends the job (processes) or the group (threads).
  void abort(int code) { transport_->abort(code); }

 private:
  // Whether a collective runs on the caller's thread.
  bool runs_at_once(const LaunchOptions& options) const;
  // Throws if this process or thread may not call collectives now.
  void check_usable(const Call& call) const;
  Result call_on_device(const Collective& collective, Device device, Call call, Arguments arguments,
                        const LaunchOptions& options);
  template <class Run>
  void run_collective(const CollectiveContext& context, const Run& run);
  // This calls run_collective(), too, and counts what the collective sends.
  void run_and_count(const CollectiveContext& context, const Body& body);
  // Starts a message for each array by start(array). `sends`: it is sent, not received.
  template <class Start>
  Result message(Call call, const std::vector<Array>& xs, bool sends, const LaunchOptions& options,
                 const Start& start);
  int checked_tag(const char* name, std::int64_t tag) const;

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<Traffic> traffic_;
  std::unique_ptr<SharedSegment> node_segment_;
  std::unique_ptr<HostCollectives> collectives_;
  double timeout_seconds_;
  bool debug_;
  std::int64_t sequence_ = 0;
  int fork_count_;                  // of the process when this was made
  std::atomic<bool> busy_ = false;  // a caller is in a collective
  std::string failure_;             // why no collective can be called any more
  std::vector<Result> sends_;       // not waited for
  Windows windows_;
  std::optional<all_reduce::Algorithm> algorithm_;
  std::shared_ptr<DeviceCollectives> device_collectives_;             // since their first use
  std::unique_ptr<WorkQueue> queue_ = std::make_unique<WorkQueue>();  // destroyed before the others
};

}  // namespace renga
