#include "planning/simulator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <tuple>

namespace renga::planning {
namespace {

using Axis = InputAxis;

// Images (samples, channels, rows): a 3-wide convolution with `pad` over all channels.
Operation convolution(int producer, std::vector<std::int64_t> input, std::int64_t channels) {
  Operation op;
  op.extents = {input[0], channels, input[2]};
  op.reduction = input[1];
  op.is_parameter = {false, true, false};
  op.inputs = {{producer, input, {Axis{0}, Axis{Axis::kReduction}, Axis{2, 1, 1, 3}}}};
  return op;
}

Operation source(std::vector<std::int64_t> extents) {
  Operation op;
  op.extents = extents;
  op.is_parameter.assign(extents.size(), false);
  return op;
}

Operation sum(int a, int b, const std::vector<std::int64_t>& extents) {
  Operation op = source(extents);
  op.inputs = {{a, extents, {Axis{0}, Axis{1}, Axis{2}}},
               {b, extents, {Axis{0}, Axis{1}, Axis{2}}}};
  return op;
}

Configuration on(std::vector<int> degrees, std::vector<int> devices, double forward = 1,
                 double backward = 2) {
  return {std::move(degrees), 1, 1, std::move(devices), forward, backward, 0, 0};
}

// Two devices on two nodes; a byte takes a second.
const Topology kTwo{2, 1, 0, 1, 0, 1, true};

Configuration random_configuration(const Operation& op, const Topology& topology,
                                   std::mt19937& random) {
  Configuration c;
  const auto draw = [&](int n) { return static_cast<int>(random() % n); };
  for (const std::int64_t extent : op.extents) {
    c.degrees.push_back(1 + draw(static_cast<int>(std::min<std::int64_t>(extent, 3))));
  }
  c.reduction = 1 + draw(static_cast<int>(std::min<std::int64_t>(op.reduction, 2)));
  c.replicas = 1 + draw(2);
  for (int i = 0; i < c.parts(); ++i) c.devices.push_back(draw(topology.devices));
  c.forward = draw(4);
  c.backward = draw(4);
  c.sync = draw(3);
  c.update = draw(2);
  return c;
}

// A task, or one of its messages, which naive_seconds takes for a task of its own.
struct Item {
  static constexpr int kWhole = -1;
  const Task* task;
  int message;
  int resource = 0;
  double seconds = 0;
  auto operator<=>(const Item& other) const {
    return std::tuple(task, message) <=> std::tuple(other.task, other.message);
  }
};

// Simulates by looking at all tasks in each step.
double naive_seconds(const TaskGraph& graph) {
  std::vector<Item> waiting;
  std::map<const Task*, std::vector<Item>> before;
  for (const Task& task : graph.tasks()) {
    if (!task.exists) continue;
    for (const int other : task.before) {
      before[&task].push_back({&graph.tasks()[other], Item::kWhole});
    }
    if (task.messages.empty())
      waiting.push_back({&task, Item::kWhole, task.resource, task.seconds});
    int count = 0;
    for (const Messages& messages : task.messages) {
      for (int i = 0; i < messages.count; ++i) {
        waiting.push_back({&task, count++, messages.resource, messages.seconds});
        before[&graph.tasks()[messages.receiver + i]].push_back(waiting.back());
      }
    }
  }
  std::map<Item, double> ends;
  std::map<int, double> free;
  double last = 0;
  const auto key = [](double ready, const Item& item) {
    return std::tuple(ready, item.task->key.order(), item.message);
  };
  while (!waiting.empty()) {
    Item next{};
    double next_ready = 0;
    for (const Item& item : waiting) {
      double ready = 0;
      bool is_ready = true;
      for (const Item& other : before[item.task]) {
        const auto end = ends.find(other);
        is_ready = is_ready && end != ends.end();
        if (is_ready) ready = std::max(ready, end->second);
      }
      if (is_ready && (!next.task || key(ready, item) < key(next_ready, next))) {
        next = item;
        next_ready = ready;
      }
    }
    const double end = std::max(next_ready, free[next.resource]) + next.seconds;
    last = std::max(last, ends[next] = free[next.resource] = end);
    std::erase_if(waiting, [&](const Item& item) { return item <=> next == 0; });
  }
  return last;
}

TEST_CASE("planning: a part of a convolution reads its rows and one more on each side") {
  const std::vector<Operation> ops{source({4, 6, 10}), convolution(0, {4, 6, 10}, 8)};
  const Configuration c = on({2, 2, 2}, std::vector<int>(8));
  const Box box = input_box(ops[1], c, 7, 0);  // the last samples, channels and rows
  CHECK(box.ranges[0] == Range{2, 4});
  CHECK(box.ranges[1] == Range{0, 6});
  CHECK(box.ranges[2] == Range{4, 10});
  CHECK(output_box(ops[1], c, 7).ranges[1] == Range{4, 8});
  CHECK(readers(ops[1], c, 0) == 2);  // both parts of the channels read the same
  CHECK(parameter_groups(ops[1], c) == std::vector<std::vector<int>>{{0, 1, 4, 5}, {2, 3, 6, 7}});
}

TEST_CASE("planning: parts of a reduction read their terms, and so do replicas") {
  const std::vector<Operation> ops{source({4, 6, 10}), convolution(0, {4, 6, 10}, 8)};
  Configuration c = on({1, 1, 1}, std::vector<int>(4));
  c.reduction = c.replicas = 2;
  for (const int part : {0, 2}) CHECK(input_box(ops[1], c, part, 0).ranges[1] == Range{0, 3});
  for (const int part : {1, 3}) CHECK(input_box(ops[1], c, part, 0).ranges[1] == Range{3, 6});
}

TEST_CASE("planning: transfers are the elements that the reader needs and does not have") {
  std::mt19937 random(0);
  const Topology topology{5, 2, 0, 1, 0, 1, true};
  const std::vector<Operation> ops{source({3, 4, 7}), convolution(0, {3, 4, 7}, 5)};
  for (int round = 0; round < 200; ++round) {
    Configuration a = random_configuration(ops[0], topology, random);
    Configuration b = random_configuration(ops[1], topology, random);
    a.replicas = 1;
    a.devices.resize(a.parts());
    std::map<std::pair<int, int>, std::int64_t> expected;
    for (int to = 0; to < b.parts(); ++to) {
      for (int from = 0; from < a.parts(); ++from) {
        const Box sent = output_box(ops[0], a, from), read = input_box(ops[1], b, to, 0);
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < 3 * 4 * 7; ++i) {
          const std::array<std::int64_t, 3> at{i / 28, i / 7 % 4, i % 7};
          bool is_inside = true;
          for (int k = 0; k < 3; ++k) {
            is_inside = is_inside && at[k] >= sent.ranges[k].begin && at[k] < sent.ranges[k].end &&
                        at[k] >= read.ranges[k].begin && at[k] < read.ranges[k].end;
          }
          count += is_inside;
        }
        if (count > 0) expected[{from, to}] = a.devices[from] == b.devices[to] ? 0 : 4 * count;
      }
    }
    std::map<std::pair<int, int>, std::int64_t> found;
    for (const Transfer& t : forward_transfers(ops[0], a, ops[1], b, 0)) {
      found[{t.from, t.to}] = t.bytes;
    }
    CHECK(found == expected);
  }
}

TEST_CASE("planning: a chain on one device takes the sum of its tasks") {
  Simulator simulator(kTwo);
  simulator.add_operation(source({4, 2, 8}), on({1, 1, 1}, {0}));
  simulator.add_operation(convolution(0, {4, 2, 8}, 2), on({1, 1, 1}, {0}, 5, 7));
  CHECK(simulator.seconds() == doctest::Approx(1 + 5 + 7 + 2));
  // The reader is on another device: both the image and its gradient travel, 4 * 2 * 8 numbers of 4
  // bytes.
  simulator.configure(1, on({1, 1, 1}, {1}, 5, 7));
  CHECK(simulator.seconds() == doctest::Approx(1 + 5 + 7 + 2 + 2 * 256));
  CHECK(simulator.graph().bytes_sent() == 512);
  // Half of the samples on each: the same tasks take half as long, and half of the image travels.
  simulator.configure(1, on({2, 1, 1}, {0, 1}, 2.5, 3.5));
  CHECK(simulator.seconds() == doctest::Approx(1 + 2.5 + 3.5 + 2 + 2 * 128));
}

TEST_CASE("planning: gradients of shared parameters are synchronized behind the backward pass") {
  Simulator simulator(kTwo);
  simulator.add_operation(source({4, 2, 8}), on({2, 1, 1}, {0, 1}));
  Configuration c = on({2, 1, 1}, {0, 1}, 5, 7);
  c.sync = 100;
  c.update = 3;
  simulator.add_operation(convolution(0, {4, 2, 8}, 2), c);
  CHECK(simulator.seconds() == doctest::Approx(1 + 5 + 7 + 100 + 3));
  c.degrees = {1, 2, 1};  // each has channels of its own: no synchronization, but all samples
  simulator.configure(1, c);
  CHECK(simulator.seconds() == doctest::Approx(1 + 128 + 5 + 7 + 128 + 2));
}

TEST_CASE("planning: delta and full simulation and a naive one agree bit for bit") {
  std::mt19937 random(1);
  for (const bool overlaps : {true, false}) {
    const Topology topology{4, 2, 0.5, 0.01, 0.25, 0.003, overlaps};
    std::vector<Operation> ops{source({3, 4, 6})};
    for (int i = 1; i < 8; ++i) {
      const int producer = static_cast<int>(random() % i);
      ops.push_back(i % 3 == 2 ? sum(producer, i - 1, {3, 4, 6})
                               : convolution(producer, {3, 4, 6}, 4));
    }
    Simulator simulator(topology);
    for (const Operation& op : ops) {
      simulator.add_operation(op, random_configuration(op, topology, random));
    }
    std::set<double> different;
    for (int round = 0; round < 500; ++round) {
      const int changes = 1 + static_cast<int>(random() % 2);
      for (int k = 0; k < changes; ++k) {
        const std::size_t op = random() % ops.size();
        simulator.configure(static_cast<int>(op), random_configuration(ops[op], topology, random));
      }
      const double seconds = simulator.seconds();
      REQUIRE(seconds == simulator.full_seconds());
      if (round % 10 == 0) REQUIRE(seconds == naive_seconds(simulator.graph()));
      different.insert(seconds);
    }
    CHECK(different.size() > 300);
  }
}

TEST_CASE("planning: what is no operation or configuration is refused") {
  Simulator simulator(kTwo);
  simulator.add_operation(source({4, 2, 8}), on({1, 1, 1}, {0}));
  CHECK_THROWS_AS(simulator.add_operation(convolution(1, {4, 2, 8}, 2), on({1, 1, 1}, {0})),
                  std::invalid_argument);
  CHECK_THROWS_AS(simulator.add_operation(convolution(0, {4, 3, 8}, 2), on({1, 1, 1}, {0})),
                  std::invalid_argument);
  CHECK_THROWS_AS(simulator.configure(0, on({1, 1, 1}, {2})), std::invalid_argument);
  CHECK_THROWS_AS(simulator.configure(0, on({5, 1, 1}, {0, 0, 0, 0, 0})), std::invalid_argument);
  CHECK_THROWS_AS(simulator.configure(0, on({2, 1, 1}, {0})), std::invalid_argument);
  CHECK_THROWS_AS(simulator.configure(0, on({2, 1}, {0, 1})), std::invalid_argument);
}

}  // namespace
}  // namespace renga::planning
