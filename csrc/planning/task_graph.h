// The tasks of a strategy: what each waits for, where it runs and how long it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "planning/operation.h"
#include "planning/topology.h"
#include "planning/transfers.h"

namespace renga::planning {

enum class Kind : std::uint8_t { forward, send, backward, send_gradient, sync, update };

// Identifies a task whatever the order in which tasks were made: ties are broken by it.
struct Key {
  Kind kind;
  int operation;  // the reader, for messages
  int input;      // of the reader, for messages
  int part;       // the sender, for messages

  // Their order as one number.
  std::uint64_t order() const {
    const auto bits = [](int value) { return static_cast<std::uint64_t>(value); };
    return static_cast<std::uint64_t>(kind) << 61 | bits(operation) << 44 | bits(input) << 32 |
           bits(part);
  }
};
// What fits into an order, besides the tasks that check() allows.
inline constexpr int kMaxOperations = 1 << 17, kMaxInputs = 1 << 12;

// What a part of an operation needs of another one on its way, or its summed gradients.
struct Message {
  int receiver;  // a task
  int resource;
  double seconds;
  double start = 0;
  double end = 0;
};

// A task that has to end, or one of its messages.
struct Wait {
  static constexpr int kWhole = -1;
  int task;
  int message = kWhole;
};

// The messages of a part along an input are one task: they are ready at the same time, and leave
// one after the other. So is what the parts with the same parameters do to sum their gradients.
// There are far more messages than other tasks.
// What a simulation reads of all tasks comes first, in a cache line of its own.
struct alignas(64) Task {
  std::uint64_t order;  // that of its key
  double seconds;
  std::vector<int> after;  // tasks that wait for all of it
  std::vector<Message> messages;
  std::vector<Wait> before;
  double ready = 0;
  double start = 0;
  double end = 0;
  int resource;
  unsigned generation = 0;  // of the place, which other tasks had before
  Key key;
  bool exists = false;
  bool is_new = false;     // since the last simulation
  bool is_listed = false;  // among the added ones
};

// Tasks keep their index while their operations keep their configurations.
class TaskGraph {
 public:
  explicit TaskGraph(const Topology& topology) : topology_(topology) {}

  // Throws std::invalid_argument as check() does.
  void add_operation(const Operation& operation, const Configuration& configuration);
  // Removes the tasks of an operation, and the messages to and from it, and makes other tasks.
  void configure(int operation, const Configuration& configuration);
  // Makes the messages that are missing since. Later, as neighbours are often changed together.
  void connect();

  const Topology& topology() const { return topology_; }
  const std::vector<Operation>& operations() const { return operations_; }
  const Configuration& configuration(int operation) const { return nodes_[operation].current; }
  std::vector<Task>& tasks() { return tasks_; }
  const std::vector<Task>& tasks() const { return tasks_; }
  // Those that exist may be new; others of the list were removed again.
  const std::vector<int>& added() const { return added_; }
  double end_of(const Wait& wait) const {
    const Task& task = tasks_[wait.task];
    return wait.message == Wait::kWhole ? task.end : task.messages[wait.message].end;
  }
  // The earliest time at which a removed task was ready.
  double earliest_removed() const { return earliest_removed_; }
  // The number of tasks and messages.
  std::int64_t size() const { return size_; }
  void clear_changes();
  // Bytes that devices send, of activations and their gradients, when connected.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Edge {
    int reader;
    std::size_t input;
    std::vector<int> sends;  // tasks
    std::int64_t bytes = 0;
    bool is_connected = false;
  };
  struct Node {
    Configuration current;
    std::vector<int> forward, backward, others;  // tasks; the first two by part
    std::vector<int> incoming, outgoing;         // edges
  };

  int add_task(const Key& key, int resource, double seconds);
  void add_message(int send, int receiver, int resource, double seconds);
  void remove_task(int index);
  void depend(int before, int after);
  void make_tasks(int operation);
  void make_updates(int operation);
  void make_messages(Edge& edge);
  void make_messages(Edge& edge, Kind kind, const std::vector<Transfer>& transfers,
                     const std::vector<int>& senders, const std::vector<int>& receivers,
                     const Configuration& from, const Configuration& to);
  void disconnect(int edge);

  Topology topology_;
  std::vector<Operation> operations_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<Task> tasks_;
  std::vector<int> unused_, added_;
  std::vector<int> disconnected_;  // edges
  std::int64_t size_ = 0;
  std::int64_t bytes_sent_ = 0;
  double earliest_removed_ = 0;
};

}  // namespace renga::planning
