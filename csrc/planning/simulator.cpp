#include "planning/simulator.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "tensor/error.h"

namespace renga::planning {
namespace {

constexpr int kNone = std::numeric_limits<int>::max();

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
    const Task& task = graph_.tasks()[index];
    double ready = 0;
    bool is_known = task.received.empty();  // messages to new tasks are new
    for (const int before : task.before) {
      is_known = is_known && !graph_.tasks()[before].is_new;
      ready = std::max(ready, graph_.tasks()[before].end);
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
  const auto run = [&](int index) {
    tasks.push_back(index);
    progress_[index].pending = 0;
  };
  for (const int index : graph_.added()) {
    if (graph_.tasks()[index].exists) run(index);
  }
  const std::size_t kept = begin == events_.end() ? uses_.size() : begin->uses;
  for (; uses_.size() > kept; uses_.pop_back()) free_[uses_.back().resource] = uses_.back().free;
  for (auto event = begin; event != events_.end(); ++event) {
    const Task& task = graph_.tasks()[event->task];
    if (task.exists && task.generation == event->generation) run(event->task);
  }
  events_.erase(begin, events_.end());
  return tasks;
}

// Sets the progress of a task that has to run. Messages are far more than what else it waits for:
// those that were sent already are only looked for if there are some.
void Simulator::await(int index) {
  const Task& task = graph_.tasks()[index];
  Progress& own = progress_[index];
  const bool has_messages = own.first < static_cast<int>(events_.size()) && !task.is_new;
  own = {0, static_cast<int>(task.before.size() + task.received.size()), kNone};
  const auto arrive = [&](double end) {
    --own.pending;
    own.ready = std::max(own.ready, end);
  };
  for (const int before : task.before) {
    if (progress_[before].pending == kDone) arrive(graph_.tasks()[before].end);
  }
  if (!has_messages) return;
  for (const Receipt& receipt : task.received) {
    if (progress_[receipt.task].pending != kDone) continue;
    own.first = 0;
    const Messages& sent = graph_.tasks()[receipt.task].messages[receipt.messages];
    double end = sent.start;
    for (int i = 0; i <= receipt.message; ++i) end += sent.seconds;
    arrive(end);
  }
}

void Simulator::restart(double from) {
  const std::vector<Task>& tasks = graph_.tasks();
  progress_.resize(tasks.size());
  const std::vector<int> again = rewind(from);
  ReadyQueue queue;
  std::size_t uses = 0;
  for (std::size_t i = 0; i < again.size(); ++i) {
    if (i + 8 < again.size()) __builtin_prefetch(&tasks[again[i + 8]]);
    const int index = again[i];
    await(index);
    const Progress& own = progress_[index];
    if (own.pending == 0) queue.push(own.ready, tasks[index].order, index);
    uses += std::max<std::size_t>(1, tasks[index].messages.size());
  }
  const std::size_t first_event = events_.size(), first_use = uses_.size();
  events_.resize(first_event + again.size());
  uses_.resize(first_use + uses);
  const bool has_run = run(queue, first_event, first_use);
  require<std::logic_error>(has_run, "planning: expected tasks without a cycle");
}

// Runs all tasks that become ready, and returns whether these are as many as events are expected.
// The memory of events and uses is allocated already.
bool Simulator::run(ReadyQueue& queue, std::size_t event, std::size_t use) {
  Task* const tasks = graph_.tasks().data();
  Progress* const progress = progress_.data();
  double* const free_times = free_.data();
  Use* uses = uses_.data() + use;
  Event* events = events_.data() + event;
  const Event* const end_of_events = events_.data() + events_.size();
  const auto end_one = [&](int index, double end) -> Progress& {  // of those a task waits for
    Progress& own = progress[index];
    own.ready = std::max(own.ready, end);
    if (--own.pending == 0) {
      queue.push(own.ready, tasks[index].order, index);
      __builtin_prefetch(tasks[index].messages.data());
    }
    return own;
  };
  for (; !queue.empty() && events < end_of_events; ++events, ++event) {
    const int index = queue.pop();
    Task& task = tasks[index];
    const double start = task.ready = progress[index].ready;
    progress[index].pending = kDone;
    *events = {start, index, task.generation, static_cast<std::size_t>(uses - uses_.data())};
    for (Messages& messages : task.messages) {
      double& free = free_times[messages.resource];
      *uses++ = {messages.resource, free};
      double end = messages.start = std::max(start, free);
      for (int i = 0; i < messages.count; ++i) {
        end += messages.seconds;
        Progress& receiver = end_one(messages.receiver + i, end);
        receiver.first = std::min(receiver.first, static_cast<int>(event));
      }
      free = end;
    }
    if (task.messages.empty()) {
      double& free = free_times[task.resource];
      *uses++ = {task.resource, free};
      task.end = free = std::max(start, free) + task.seconds;
      for (const int other : task.after) end_one(other, task.end);
    }
  }
  return events == end_of_events;
}

std::vector<Simulator::Span> Simulator::timeline() const {
  std::vector<Span> found;
  for (const Event& event : events_) {
    const Task& task = graph_.tasks()[event.task];
    for (const Messages& messages : task.messages) {
      double end = messages.start;
      for (int i = 0; i < messages.count; ++i) {
        const double start = end;
        found.push_back({event.task, messages.resource, start, end += messages.seconds});
      }
    }
    if (!task.messages.empty()) continue;
    const double start = std::max(task.ready, uses_[event.uses].free);
    found.push_back({event.task, task.resource, start, task.end});
  }
  return found;
}

std::vector<double> Simulator::busy() const {
  std::vector<double> seconds(graph_.topology().resources(), 0.0);
  for (const Task& task : graph_.tasks()) {
    if (!task.exists) continue;
    if (task.messages.empty()) seconds[task.resource] += task.seconds;
    for (const Messages& messages : task.messages) {
      seconds[messages.resource] += messages.count * messages.seconds;
    }
  }
  return seconds;
}

}  // namespace renga::planning
