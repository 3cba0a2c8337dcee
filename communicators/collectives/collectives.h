// The interface that each kind of group implements, and the table of its collectives, by which
// their arguments are checked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/all_reduce/algorithm_selection.h"
#include "collectives/reduce.h"
#include "context/collective_context.h"
#include "shared_memory/shared_segment.h"
#include "shared_memory/windows.h"

namespace renga {

class Work;

// One rank's arguments of a collective.
struct Arguments {
  std::vector<Array> xs;  // operands, which may have any strides; undefined ones are empty
  std::vector<Array> ys;  // results
  ReduceOp reduction = ReduceOp::sum;
  std::optional<Dtype> sent_as = {};  // communication dtype of floating elements; none: their own
  std::optional<std::int64_t> root = {};

  // A check and the communicator add these members.
  bool in_place = false;                 // the results replace the operands, in the same dtype
  std::vector<PeerPointers> peers = {};  // of each array, if all are in windows
  std::optional<all_reduce::Algorithm> algorithm = {};  // has all_reduce() send messages

  Dtype dtype() const { return xs[0].dtype(); }
  Dtype communication_dtype() const { return sent_as.value_or(dtype()); }
};

// The collectives of one group of ranks. All ranks call the same in the same order, with arguments
// that have been checked.
class Collectives {
 public:
  virtual ~Collectives() = default;
  // ys[i] receives the reduction of xs[i], whose elements are added in float32 at least.
  virtual void all_reduce(const CollectiveContext& context, const Arguments& arguments) = 0;
  // xs[0] holds one block per rank; ys[0] receives the reduction of the blocks of this rank.
  virtual void reduce_scatter(const CollectiveContext& context, const Arguments& arguments) = 0;
  // ys[r] receives xs[0] of rank r, and has its size.
  virtual void all_gather(const CollectiveContext& context, const Arguments& arguments) = 0;
  // ys[r] receives xs[this rank] of rank r, and has its size.
  virtual void all_to_all(const CollectiveContext& context, const Arguments& arguments) = 0;
  // ys[0] receives xs[0] of the root, which has no ys; the other ranks have no xs.
  virtual void broadcast(const CollectiveContext& context, const Arguments& arguments) = 0;
};

// These are the collectives of arrays in the host's memory, which have long contiguous runs (see
// FlatBucket). They throw CallMismatch on all ranks, and move nothing, if the calls of the ranks
// differ.
class HostCollectives : public Collectives {
 public:
  // Returns when every rank has called it.
  virtual void barrier(const CollectiveContext& context) = 0;
  // The communicator calls begin() and end() around each collective.
  virtual void begin(const Call& /*call*/) {}
  virtual void end(const CollectiveContext& /*context*/) {}
  // The memory of all ranks, if they are on one node and share memory.
  virtual SharedSegment* segment() { return nullptr; }
};

// These are the collectives of contiguous arrays on one device of each rank: they launch what the
// devices do. They do not compare calls.
class DeviceCollectives : public Collectives {
 public:
  // Calls `launch`, which calls one of the methods. The device does that after what this thread has
  // had it do so far, and beside what follows; what follows a wait() of the Work comes after it.
  // The host waits for nothing, unless wait() is given a time-out. The Work keeps `arrays`.
  virtual std::shared_ptr<Work> start(const CollectiveContext& context, std::vector<Array> arrays,
                                      const std::function<void()>& launch) = 0;
  // Throws why no collective can be called any more, if there is a reason.
  virtual void throw_failure() = 0;
  virtual Device device() const = 0;
};

// A library of such collectives.
struct DeviceLibrary {
  std::int64_t id_bytes;
  // One rank creates the id of a group, and all ranks pass it to `connect`, which all call.
  void (*create_id)(std::byte* id);
  std::shared_ptr<DeviceCollectives> (*connect)(const std::byte* id, int rank, int size,
                                                Device device, double timeout_seconds);
};
// Null until librenga_nccl is loaded.
extern const DeviceLibrary* device_library;

// A row of the table.
struct Collective {
  const char* name;
  // Returns the call that ranks compare, or throws InvalidType or std::invalid_argument. Splits
  // arrays into rows, and copies operands that a result would overwrite. `called`: the name in
  // errors, of a method that is made of this collective.
  Call (*check)(const char* called, Arguments& arguments, const Topology& topology);
  void (Collectives::*run)(const CollectiveContext& context, const Arguments& arguments);
};

std::span<const Collective> all_collectives();
// Throws std::invalid_argument for an unknown name.
const Collective& collective_named(std::string_view name);

// x[0], x[1], …
std::vector<Array> rows_of(const Array& x);

// None for "". Communication dtypes are passed by name, because NumPy has no bfloat16. Throws
// std::invalid_argument for a dtype that is not floating.
std::optional<Dtype> floating_dtype(const std::string& name);

// Throws std::invalid_argument if there is no such rank. `name`: the operation in the error.
int checked_rank(const char* name, std::int64_t rank, int ranks);

}  // namespace renga
