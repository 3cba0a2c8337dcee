#include "planning/task_graph.h"

#include <algorithm>
#include <limits>

#include "tensor/error.h"

namespace renga::planning {
namespace {

// So that a task is ready later than those it waits for, whatever the order of equal times.
constexpr double kShortest = 1e-9;

// Erases a task, if it is in the list.
void erase(std::vector<int>& list, int task) {
  const auto found = std::find(list.begin(), list.end(), task);
  if (found == list.end()) return;
  *found = list.back();
  list.pop_back();
}

}  // namespace

void TaskGraph::clear_changes() {
  for (const int index : added_) tasks_[index].is_new = tasks_[index].is_listed = false;
  added_.clear();
  earliest_removed_ = std::numeric_limits<double>::infinity();
}

// Consecutive ones, so that messages to them need not be listed one by one.
int TaskGraph::take_indices(int count) {
  std::vector<int>& unused = unused_[count];
  int first = static_cast<int>(tasks_.size());
  if (unused.empty()) {
    tasks_.resize(tasks_.size() + count);
  } else {
    first = unused.back();
    unused.pop_back();
  }
  return first;
}

void TaskGraph::give_back(int first, int count) { unused_[count].push_back(first); }

void TaskGraph::add_task(int index, const Key& key, int resource, double seconds) {
  Task& task = tasks_[index];
  task.key = key;
  task.order = key.order();
  task.resource = resource;
  task.seconds = std::max(seconds, kShortest);
  task.exists = task.is_new = true;
  if (!task.is_listed) added_.push_back(index);
  task.is_listed = true;
  ++size_;
}

void TaskGraph::add_message(int send, int receiver, int resource, double seconds) {
  std::vector<Messages>& all = tasks_[send].messages;
  const double least = std::max(seconds, kShortest);
  const auto follows = [&](const Messages& last) {
    return last.resource == resource && last.seconds == least &&
           last.receiver + last.count == receiver;
  };
  if (all.empty() || !follows(all.back())) all.push_back({receiver, 0, resource, least});
  const int index = static_cast<int>(all.size()) - 1;
  tasks_[receiver].received.push_back({send, index, all.back().count++});
  ++size_;
}

void TaskGraph::remove_task(int index) {
  Task& task = tasks_[index];
  for (const int other : task.before) erase(tasks_[other].after, index);
  for (const int other : task.after) erase(tasks_[other].before, index);
  for (const Messages& messages : task.messages) size_ -= messages.count;
  task.before.clear();
  task.received.clear();
  task.after.clear();
  task.messages.clear();
  if (!task.is_new) earliest_removed_ = std::min(earliest_removed_, task.ready);
  task.exists = task.is_new = false;
  ++task.generation;
  --size_;
}

void TaskGraph::depend(int before, int after) {
  tasks_[before].after.push_back(after);
  tasks_[after].before.push_back(before);
}

void TaskGraph::add_operation(const Operation& operation, const Configuration& configuration) {
  check(operation, operations_);
  require<std::invalid_argument>(
      operations_.size() < kMaxOperations && operation.inputs.size() <= kMaxInputs,
      "planning: expected at most ", kMaxOperations, " operations with ", kMaxInputs, " inputs");
  check(configuration, operation, topology_.devices);
  const int index = static_cast<int>(operations_.size());
  operations_.push_back(operation);
  nodes_.push_back({configuration, {}, {}, {}, {}, {}});
  make_tasks(index);
  for (std::size_t input = 0; input < operation.inputs.size(); ++input) {
    const int edge = static_cast<int>(edges_.size());
    edges_.push_back({index, input, {}});
    disconnected_.push_back(edge);
    nodes_[index].incoming.push_back(edge);
    nodes_[operation.inputs[input].producer].outgoing.push_back(edge);
  }
}

void TaskGraph::configure(int operation, const Configuration& configuration) {
  check(configuration, operations_.at(operation), topology_.devices);
  Node& node = nodes_[operation];
  for (const auto* list : {&node.incoming, &node.outgoing}) {
    for (const int edge : *list) disconnect(edge);
  }
  for (const auto* list : {&node.forward, &node.backward, &node.others}) {
    for (const int task : *list) remove_task(task);
    if (!list->empty()) give_back(list->front(), static_cast<int>(list->size()));
  }
  node.current = configuration;
  make_tasks(operation);
}

void TaskGraph::connect() {
  for (const int edge : disconnected_) make_messages(edges_[edge]);
  disconnected_.clear();
}

void TaskGraph::make_tasks(int operation) {
  Node& node = nodes_[operation];
  const Configuration& current = node.current;
  node.forward.clear();
  node.backward.clear();
  node.others.clear();
  const int parts = current.parts();
  const int forward = take_indices(parts), backward = take_indices(parts);
  for (int part = 0; part < parts; ++part) {
    const int device = current.devices[part];
    add_task(forward + part, {Kind::forward, operation, 0, part}, device, current.forward);
    add_task(backward + part, {Kind::backward, operation, 0, part}, device, current.backward);
    node.forward.push_back(forward + part);
    node.backward.push_back(backward + part);
    depend(forward + part, backward + part);
  }
  if (current.update > 0) make_updates(operation);
}

void TaskGraph::make_updates(int operation) {
  Node& node = nodes_[operation];
  const Configuration& current = node.current;
  const auto groups = parameter_groups(operations_[operation], current);
  const auto is_summed = [&](const std::vector<int>& group) {
    return group.size() > 1 && current.sync > 0;
  };
  const auto sums = std::count_if(groups.begin(), groups.end(), is_summed);
  int next = take_indices(current.parts() + static_cast<int>(sums));
  const auto add = [&](Kind kind, int part, int resource, double seconds) {
    add_task(next, {kind, operation, 0, part}, resource, seconds);
    node.others.push_back(next);
    return next++;
  };
  for (const std::vector<int>& group : groups) {
    int sync = -1;
    if (is_summed(group)) {
      sync = add(Kind::sync, group[0], topology_.sync_port(current.devices[group[0]]), 0);
    }
    for (const int part : group) {
      const int device = current.devices[part];
      const int update = add(Kind::update, part, device, current.update);
      depend(node.backward[part], sync < 0 ? update : sync);
      if (sync >= 0) add_message(sync, update, topology_.sync_port(device), current.sync);
    }
  }
}

void TaskGraph::make_messages(Edge& edge) {
  edge.is_connected = true;
  const Operation& reader = operations_[edge.reader];
  const int producer = reader.inputs[edge.input].producer;
  const Node &from = nodes_[producer], &to = nodes_[edge.reader];
  const auto forward =
      forward_transfers(operations_[producer], from.current, reader, to.current, edge.input);
  make_messages(edge, Kind::send, forward, from.forward, to.forward, from.current, to.current);
  if (!reader.inputs[edge.input].has_gradient) return;
  const auto backward =
      backward_transfers(operations_[producer], from.current, reader, to.current, edge.input);
  make_messages(edge, Kind::send_gradient, backward, to.backward, from.backward, to.current,
                from.current);
}

void TaskGraph::make_messages(Edge& edge, Kind kind, const std::vector<Transfer>& transfers,
                              const std::vector<int>& senders, const std::vector<int>& receivers,
                              const Configuration& from, const Configuration& to) {
  std::vector<int> sends(senders.size(), -1);  // by part
  for (const Transfer& transfer : transfers) {
    const int sender = senders[transfer.from], receiver = receivers[transfer.to];
    if (transfer.bytes == 0) {
      depend(sender, receiver);
      continue;
    }
    int& send = sends[transfer.from];
    const int source = from.devices[transfer.from], target = to.devices[transfer.to];
    const int port = topology_.port(source, target);
    if (send < 0) {
      send = take_indices(1);
      add_task(send, {kind, edge.reader, static_cast<int>(edge.input), transfer.from}, port, 0);
      edge.sends.push_back(send);
      depend(sender, send);
    }
    add_message(send, receiver, port, topology_.message(source, target, transfer.bytes));
    edge.bytes += transfer.bytes;
    bytes_sent_ += transfer.bytes;
  }
}

void TaskGraph::disconnect(int index) {
  Edge& edge = edges_[index];
  if (!edge.is_connected) return;
  edge.is_connected = false;
  disconnected_.push_back(index);
  for (const int send : edge.sends) {
    remove_task(send);
    give_back(send, 1);
  }
  const int producer = operations_[edge.reader].inputs[edge.input].producer;
  for (const auto* receivers : {&nodes_[edge.reader].forward, &nodes_[producer].backward}) {
    for (const int task : *receivers) {
      std::erase_if(tasks_[task].received,
                    [&](const Receipt& receipt) { return !tasks_[receipt.task].exists; });
    }
  }
  edge.sends.clear();
  bytes_sent_ -= edge.bytes;
  edge.bytes = 0;
}

}  // namespace renga::planning
