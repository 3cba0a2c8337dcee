#include "planning/simulator.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <queue>
#include <stdexcept>

#include "tensor/error.h"

namespace renga::planning {
namespace {

// A task that waits for its resource only.
struct Ready {
  double ready;
  std::uint64_t order;
  int task;
  auto operator<=>(const Ready&) const = default;
};

}  // namespace

double Simulator::seconds() {
  graph_.connect();
  free_.resize(graph_.topology().resources(), 0.0);
  restart(first_change());
  graph_.clear_changes();
  return *std::max_element(free_.begin(), free_.end());
}

double Simulator::full_seconds() const {
  Simulator other(graph_.topology());
  for (std::size_t i = 0; i < graph_.operations().size(); ++i) {
    other.add_operation(graph_.operations()[i], graph_.configuration(static_cast<int>(i)));
  }
  return other.seconds();
}

// Everything that was ready earlier runs as before: a task is ready later than those it waits
// for, and so changes nothing before the first of the removed and added tasks.
double Simulator::first_change() const {
  if (events_.empty()) return 0;
  double first = graph_.earliest_removed();
  for (const int index : graph_.added()) {
    if (!graph_.tasks()[index].exists) continue;
    double ready = 0;
    bool is_known = true;
    for (const Wait& wait : graph_.tasks()[index].before) {
      is_known = is_known && !graph_.tasks()[wait.task].is_new;
      ready = std::max(ready, graph_.end_of(wait));
    }
    if (is_known) first = std::min(first, ready);
  }
  return first;
}

// Drops the events from a time on, and returns the tasks that have to run.
std::vector<int> Simulator::rewind(double from) {
  const auto begin =
      std::lower_bound(events_.begin(), events_.end(), from,
                       [](const Event& event, double time) { return event.ready < time; });
  std::vector<int> tasks;
  for (const int index : graph_.added()) {
    if (graph_.tasks()[index].exists) tasks.push_back(index);
  }
  const std::size_t kept = begin == events_.end() ? uses_.size() : begin->uses;
  for (; uses_.size() > kept; uses_.pop_back()) free_[uses_.back().resource] = uses_.back().free;
  for (auto event = begin; event != events_.end(); ++event) {
    const Task& task = graph_.tasks()[event->task];
    if (task.exists && task.generation == event->generation) tasks.push_back(event->task);
  }
  events_.erase(begin, events_.end());
  return tasks;
}

void Simulator::restart(double from) {
  std::vector<Task>& tasks = graph_.tasks();
  const std::vector<int> again = rewind(from);
  progress_.resize(tasks.size());
  for (const int index : again) progress_[index] = {0, 0};
  std::vector<Ready> ready;
  for (std::size_t i = 0; i < again.size(); ++i) {
    if (i + 16 < again.size()) __builtin_prefetch(&tasks[again[i + 16]]);
    if (i + 8 < again.size()) __builtin_prefetch(tasks[again[i + 8]].before.data());
    const int index = again[i];
    Progress& own = progress_[index];
    for (const Wait& wait : tasks[index].before) {
      if (progress_[wait.task].pending != kDone) {
        ++own.pending;
      } else {
        own.ready = std::max(own.ready, graph_.end_of(wait));
      }
    }
    if (own.pending == 0) ready.push_back({own.ready, tasks[index].order, index});
  }
  std::priority_queue queue(std::greater<>(), std::move(ready));
  const auto end_one = [&](int index, double end) {  // of those that a task waits for
    Progress& own = progress_[index];
    own.ready = std::max(own.ready, end);
    if (--own.pending > 0) return;
    queue.push({own.ready, tasks[index].order, index});
    __builtin_prefetch(&tasks[index].ready);
    __builtin_prefetch(tasks[index].after.data());
    __builtin_prefetch(tasks[index].messages.data());
  };
  std::size_t done = 0;
  for (; !queue.empty(); ++done) {
    const int index = queue.top().task;
    queue.pop();
    Task& task = tasks[index];
    task.ready = progress_[index].ready;
    progress_[index].pending = kDone;
    events_.push_back({task.ready, index, task.generation, uses_.size()});
    if (!task.messages.empty()) {
      send(task);
      for (const Message& message : task.messages) end_one(message.receiver, message.end);
      continue;
    }
    double& free = free_[task.resource];
    uses_.push_back({task.resource, free});
    task.start = std::max(task.ready, free);
    task.end = free = task.start + task.seconds;
    for (const int other : task.after) end_one(other, task.end);
  }
  require<std::logic_error>(done == again.size(), "planning: expected tasks without a cycle");
}

// One message after the other, as their resources are free.
void Simulator::send(Task& task) {
  int last = -1;
  for (Message& message : task.messages) {
    double& free = free_[message.resource];
    if (message.resource != last) uses_.push_back({message.resource, free});
    last = message.resource;
    message.start = std::max(task.ready, free);
    message.end = free = message.start + message.seconds;
  }
}

std::vector<double> Simulator::busy() const {
  std::vector<double> seconds(graph_.topology().resources(), 0.0);
  for (const Task& task : graph_.tasks()) {
    if (!task.exists) continue;
    if (task.messages.empty()) seconds[task.resource] += task.seconds;
    for (const Message& message : task.messages) seconds[message.resource] += message.seconds;
  }
  return seconds;
}

}  // namespace renga::planning
