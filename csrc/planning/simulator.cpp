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
    for (const int other : graph_.tasks()[index].before) {
      is_known = is_known && !graph_.tasks()[other].is_new;
      ready = std::max(ready, graph_.tasks()[other].end);
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
  for (auto event = events_.end(); event != begin;) {
    --event;
    free_[event->resource] = event->free;
    const Task& task = graph_.tasks()[event->task];
    if (task.exists && task.generation == event->generation) tasks.push_back(event->task);
  }
  events_.erase(begin, events_.end());
  return tasks;
}

void Simulator::restart(double from) {
  std::vector<Task>& tasks = graph_.tasks();
  const std::vector<int> again = rewind(from);
  for (const int index : again) tasks[index].pending = 0;
  std::vector<Ready> ready;
  for (const int index : again) {
    Task& task = tasks[index];
    task.ready = 0;
    for (const int other : task.before) {
      if (tasks[other].pending >= 0) {
        ++task.pending;
      } else {
        task.ready = std::max(task.ready, tasks[other].end);
      }
    }
    if (task.pending == 0) ready.push_back({task.ready, task.key.order(), index});
  }
  std::priority_queue queue(std::greater<>(), std::move(ready));
  std::size_t done = 0;
  for (; !queue.empty(); ++done) {
    const int index = queue.top().task;
    queue.pop();
    Task& task = tasks[index];
    double& free = free_[task.resource];
    events_.push_back({task.ready, index, task.generation, task.resource, free});
    task.start = std::max(task.ready, free);
    task.end = free = task.start + task.seconds;
    task.pending = -1;
    for (const int other : task.after) {
      Task& next = tasks[other];
      next.ready = std::max(next.ready, task.end);
      if (--next.pending == 0) queue.push({next.ready, next.key.order(), other});
    }
  }
  require<std::logic_error>(done == again.size(), "planning: expected tasks without a cycle");
}

std::vector<double> Simulator::busy() const {
  std::vector<double> seconds(graph_.topology().resources(), 0.0);
  for (const Task& task : graph_.tasks()) {
    if (task.exists) seconds[task.resource] += task.seconds;
  }
  return seconds;
}

}  // namespace renga::planning
