// When the tasks of a strategy run, and how long a training step takes.
#pragma once

#include <vector>

#include "planning/ready_queue.h"
#include "planning/task_graph.h"

namespace renga::planning {

// A task runs as soon as what it waits for has ended and its resource is free; a resource takes
// tasks in the order in which they become ready. Source: Jia et al., Beyond data and model
// parallelism for deep neural networks, 2019 (FlexFlow), algorithms 1 and 2.
class Simulator {
 public:
  explicit Simulator(const Topology& topology) : graph_(topology) {}

  void add_operation(const Operation& operation, const Configuration& configuration) {
    graph_.add_operation(operation, configuration);
  }
  // Replaces the tasks of one operation.
  void configure(int operation, const Configuration& configuration) {
    graph_.configure(operation, configuration);
  }
  // The seconds of a step: simulates again from the time at which the first task has changed.
  double seconds();
  // Returns the same number from a new task graph.
  double full_seconds() const;

  // A task, or one of its messages, on its resource.
  struct Span {
    int task;
    int resource;
    double start;
    double end;
  };

  const TaskGraph& graph() const { return graph_; }
  // Returns the spans of the last simulation, until an operation is changed.
  std::vector<Span> timeline() const;
  // Seconds for which each resource ran tasks.
  std::vector<double> busy() const;

 private:
  // A task that was started; `uses` is the number of those before it.
  struct Event {
    double ready;
    int task;
    unsigned generation;
    std::size_t uses;
  };
  // A Progress says how many of the tasks before a task have not ended, when the others had, and
  // which is the event of the first one that sent a message. A simulation goes from one task to
  // others all over the memory, so these are kept close together.
  struct Progress {
    double ready = 0;
    int pending = kDone;
    int first = 0;
  };
  static constexpr int kDone = -1;
  // When a resource was free before a task or some messages used it.
  struct Use {
    int resource;
    double free;
  };

  double first_change() const;
  void restart(double from);
  std::vector<int> rewind(double from);
  void await(int task);
  bool run(ReadyQueue& queue, std::size_t event, std::size_t use);

  TaskGraph graph_;
  std::vector<Event> events_;       // in order
  std::vector<Use> uses_;           // likewise
  std::vector<Progress> progress_;  // by task
  std::vector<double> free_;        // when each resource has run all tasks
};

}  // namespace renga::planning
