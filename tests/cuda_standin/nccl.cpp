// NCCL for ranks that are threads of one process. A collective runs when it is the first operation
// on the streams of all ranks.
#include "nccl.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "numbers.h"
#include "standin.h"

using namespace cuda_standin;

namespace {

enum class What { all_reduce, reduce_scatter, all_gather, broadcast, messages };

struct Message {
  void* data;
  std::size_t bytes;
  int peer;
};

// A rank's arguments of a collective.
struct Arguments {
  What what = What::messages;
  const void* x = nullptr;
  void* y = nullptr;
  std::size_t n = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  std::vector<Message> sent, received;
  bool operator==(const Arguments& o) const {
    return what == o.what && n == o.n && type == o.type && op == o.op && root == o.root;
  }
};

struct Collective {
  std::map<int, Arguments> ranks;  // that have called it
  std::vector<bool> first;         // on the rank's stream
  bool done = false;
};

// The ranks of one unique id.
struct Ranks {
  int size;
  std::map<std::uint64_t, Collective> collectives;  // by number
  int joined = 0;
  std::set<int> aborted;  // ranks
};

std::map<std::string, std::shared_ptr<Ranks>> all_ranks;

std::size_t size_of_type(ncclDataType_t type) {
  const std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

template <class T>
T folded(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

// Element `at` of all ranks' x, reduced, into element `to` of y.
template <class T>
void reduce_integers(const std::vector<const void*>& xs, std::size_t at, void* y, std::size_t to,
                     ncclRedOp_t op) {
  T total = static_cast<const T*>(xs[0])[at];
  for (std::size_t r = 1; r < xs.size(); ++r) {
    total = folded(op, total, static_cast<const T*>(xs[r])[at]);
  }
  static_cast<T*>(y)[to] =
      op == ncclAvg ? static_cast<T>(total / static_cast<T>(xs.size())) : total;
}

void reduce(const std::vector<const void*>& xs, std::size_t at, void* y, std::size_t to,
            ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8:
      return reduce_integers<std::int8_t>(xs, at, y, to, op);
    case ncclUint8:
      return reduce_integers<std::uint8_t>(xs, at, y, to, op);
    case ncclInt32:
      return reduce_integers<std::int32_t>(xs, at, y, to, op);
    case ncclUint32:
      return reduce_integers<std::uint32_t>(xs, at, y, to, op);
    case ncclInt64:
      return reduce_integers<std::int64_t>(xs, at, y, to, op);
    case ncclUint64:
      return reduce_integers<std::uint64_t>(xs, at, y, to, op);
    default:
      break;
  }
  const Kind kind = type == ncclFloat16    ? Kind::float16
                    : type == ncclBfloat16 ? Kind::bfloat16
                    : type == ncclFloat32  ? Kind::float32
                                           : Kind::float64;
  const auto i = static_cast<std::int64_t>(at);
  double total = read(xs[0], kind, i);
  for (std::size_t r = 1; r < xs.size(); ++r) total = folded(op, total, read(xs[r], kind, i));
  if (op == ncclAvg) total /= static_cast<double>(xs.size());
  write(y, kind, static_cast<std::int64_t>(to), total);
}

// Results are computed apart from operands, which may be in the same place.
void run(Ranks& ranks, Collective& c) {
  const Access first(0), second(1);
  const Arguments& call = c.ranks.at(0);
  const auto size = static_cast<std::size_t>(ranks.size);
  for (const auto& [rank, arguments] : c.ranks) {
    if (!(arguments == call)) fault("nccl: ranks call different collectives");
  }
  const std::size_t item = size_of_type(call.type), bytes = call.n * item;
  std::vector<const void*> xs;
  for (const auto& [rank, arguments] : c.ranks) xs.push_back(arguments.x);
  std::vector<std::vector<std::byte>> results(size);
  for (std::size_t r = 0; r < size; ++r) {
    if (call.what == What::all_reduce || call.what == What::reduce_scatter) {
      results[r].resize(bytes);
      const std::size_t begin = call.what == What::all_reduce ? 0 : r * call.n;
      for (std::size_t i = 0; i < call.n; ++i) {
        reduce(xs, begin + i, results[r].data(), i, call.type, call.op);
      }
    } else if (call.what == What::all_gather) {
      for (const void* x : xs) {
        const auto* from = static_cast<const std::byte*>(x);
        results[r].insert(results[r].end(), from, from + bytes);
      }
    } else if (call.what == What::broadcast) {
      const auto* from = static_cast<const std::byte*>(xs[static_cast<std::size_t>(call.root)]);
      results[r].assign(from, from + bytes);
    }
  }
  for (std::size_t r = 0; r < size; ++r) {
    std::memcpy(c.ranks.at(static_cast<int>(r)).y, results[r].data(), results[r].size());
  }
  for (auto& [rank, arguments] : c.ranks) {
    for (const Message& message : arguments.received) {
      auto& sent = c.ranks.at(message.peer).sent;
      const auto found = std::find_if(sent.begin(), sent.end(), [&, to = rank](const Message& m) {
        return m.peer == to && m.bytes == message.bytes;
      });
      if (found == sent.end()) fault("nccl: a message that no rank sends");
      std::memcpy(message.data, found->data, message.bytes);
      sent.erase(found);
    }
  }
}

}  // namespace

struct NcclStandin {
  std::shared_ptr<Ranks> ranks;
  int rank;
  int device;
  std::uint64_t calls = 0;
  bool joined = false;
};

namespace {

// Whether NCCL's kernels can read and write the operands of a call, of n elements at least.
bool are_on_device(const NcclStandin& comm, const Arguments& arguments) {
  const auto holds = [device = comm.device](const void* data, std::size_t bytes) {
    return bytes == 0 || (device_at(data) == device && is_allocated(device, data, bytes));
  };
  const auto holds_message = [&](const Message& m) { return holds(m.data, m.bytes); };
  if (arguments.what == What::messages) {
    return std::ranges::all_of(arguments.sent, holds_message) &&
           std::ranges::all_of(arguments.received, holds_message);
  }
  const std::size_t bytes = arguments.n * size_of_type(arguments.type);
  const bool sends = arguments.what != What::broadcast || arguments.root == comm.rank;
  return (!sends || holds(arguments.x, bytes)) && holds(arguments.y, bytes);
}

ncclResult_t call(ncclComm_t comm, cudaStream_t stream, const Arguments& arguments) {
  if (begin_call()) return ncclUnhandledCudaError;
  if (device_of(stream) != comm->device) return ncclInvalidArgument;
  if (!are_on_device(*comm, arguments)) return ncclInvalidArgument;
  const std::lock_guard lock(mutex());
  const std::uint64_t number = comm->calls++;
  Ranks* const ranks = comm->ranks.get();
  Collective& mine = ranks->collectives[number];
  mine.ranks[comm->rank] = arguments;
  mine.first.resize(static_cast<std::size_t>(ranks->size));
  const auto ready = [keep = comm->ranks, ranks, number, rank = comm->rank] {
    Collective& c = ranks->collectives[number];
    c.first[static_cast<std::size_t>(rank)] = true;
    return ranks->aborted.contains(rank) ||
           std::all_of(c.first.begin(), c.first.end(), [](bool first) { return first; });
  };
  const auto execute = [keep = comm->ranks, ranks, number, rank = comm->rank] {
    Collective& c = ranks->collectives[number];
    if (!ranks->aborted.contains(rank) && !std::exchange(c.done, true)) run(*ranks, c);
  };
  return enqueue(stream, {execute, ready}) ? ncclUnhandledCudaError : ncclSuccess;
}

// The messages of a group, of one thread.
struct Group {
  bool open = false;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  Arguments messages;
};
thread_local Group group;

Arguments arguments_of(What what, const void* x, void* y, std::size_t n, ncclDataType_t type) {
  Arguments arguments;
  arguments.what = what;
  arguments.x = x;
  arguments.y = y;
  arguments.n = n;
  arguments.type = type;
  return arguments;
}

}  // namespace

extern "C" {
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess           ? "no error"
         : result == ncclInvalidArgument ? "invalid argument"
         : result == ncclRemoteError     ? "remote process exited or there was a network error"
         : result == ncclInProgress      ? "operation in progress"
                                         : "unhandled cuda error";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex());
  static int count = 0;
  std::memset(id->internal, 0, sizeof id->internal);
  std::snprintf(id->internal, sizeof id->internal, "ranks %d", count++);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (begin_call()) return ncclUnhandledCudaError;
  if (config->blocking != 0) fault("nccl: a blocking communicator has no time-outs");
  const std::lock_guard lock(mutex());
  auto& ranks = all_ranks[std::string(id.internal, sizeof id.internal)];
  if (!ranks) ranks = std::make_shared<Ranks>(Ranks{size, {}, 0, {}});
  *comm = new NcclStandin{ranks, rank, current_device()};
  ++ranks->joined;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard lock(mutex());
  Ranks& ranks = *comm->ranks;
  bool waits = false;  // for ranks that are gone
  for (std::uint64_t i = 0; i < comm->calls; ++i) waits |= !ranks.collectives[i].done;
  *error = waits && !ranks.aborted.empty() ? ncclRemoteError
           : ranks.joined == ranks.size    ? ncclSuccess
                                           : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(mutex());
  comm->ranks->aborted.insert(comm->rank);
  wake();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  group = {true, nullptr, nullptr, {}};
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  group.open = false;
  return group.comm == nullptr ? ncclSuccess : call(group.comm, group.stream, group.messages);
}

ncclResult_t ncclSend(const void* x, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (!group.open) fault("nccl: messages outside of a group may wait for each other");
  group.comm = comm;
  group.stream = stream;
  group.messages.sent.push_back({const_cast<void*>(x), n * size_of_type(type), peer});
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* y, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (!group.open) fault("nccl: messages outside of a group may wait for each other");
  group.comm = comm;
  group.stream = stream;
  group.messages.received.push_back({y, n * size_of_type(type), peer});
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* x, void* y, std::size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Arguments arguments = arguments_of(What::all_reduce, x, y, n, type);
  arguments.op = op;
  return call(comm, stream, arguments);
}

ncclResult_t ncclReduceScatter(const void* x, void* y, std::size_t n, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Arguments arguments = arguments_of(What::reduce_scatter, x, y, n, type);
  arguments.op = op;
  return call(comm, stream, arguments);
}

ncclResult_t ncclAllGather(const void* x, void* y, std::size_t n, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, arguments_of(What::all_gather, x, y, n, type));
}

ncclResult_t ncclBroadcast(const void* x, void* y, std::size_t n, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  Arguments arguments = arguments_of(What::broadcast, x, y, n, type);
  arguments.root = root;
  return call(comm, stream, arguments);
}
}
