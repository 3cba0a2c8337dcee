// The tasks of a strategy: what each waits for, where it runs and how long it takes.
#pragma once

#include <cstdint>
#include <map>
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
// An order has room for so many operations and inputs, besides the tasks that check() allows.
inline constexpr int kMaxOperations = 1 << 17, kMaxInputs = 1 << 12;

// These messages carry what a part of an operation needs of another one, or its summed gradients,
// to `count` tasks, the first of which is the receiver. They leave one after the other. There are
// far more messages than tasks, but most of them are like the ones before them.
struct Messages {
  int receiver;
  int count;
  int resource;
  double seconds;    // of each
  double start = 0;  // of the first
};

// A message that a task waits for.
struct Receipt {
  int task;      // that sends it
  int messages;  // their index
  int message;   // its index among them
};

// The messages of a part along an input are one task: they are ready at the same time. So is what
// the parts with the same parameters do to sum their gradients.
// What a simulation reads of all tasks comes first, in a cache line of its own.
struct alignas(64) Task {
  std::uint64_t order;  // that of its key
  double seconds;
  std::vector<Messages> messages;
  std::vector<int> after;  // tasks that wait for all of it, if there are no messages
  int resource;
  unsigned generation = 0;        // counts the tasks that had this index before
  std::vector<int> before;        // tasks that it waits for
  std::vector<Receipt> received;  // messages that it waits for
  double ready = 0;
  double end = 0;
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
  // The tasks of this list that exist may be new; others of the list were removed again.
  const std::vector<int>& added() const { return added_; }
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
    std::vector<int> forward, backward, others;  // tasks, next to each other; two by part
    std::vector<int> incoming, outgoing;         // edges
  };

  int take_indices(int count);
  void give_back(int first, int count);
  void add_task(int index, const Key& key, int resource, double seconds);
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
  std::map<int, std::vector<int>> unused_;  // free ranges of indices, by length
  std::vector<int> added_;
  std::vector<int> disconnected_;  // edges
  std::int64_t size_ = 0;
  std::int64_t bytes_sent_ = 0;
  double earliest_removed_ = 0;
};

}  // namespace renga::planning
