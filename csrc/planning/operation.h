// Operations of a network, and how they are distributed over devices.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace renga::planning {

inline constexpr int kMaxAxes = 5;

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Range&) const = default;
};

// Ranges along the first `axes` axes of a tensor.
struct Box {
  int axes = 0;
  std::array<Range, kMaxAxes> ranges{};
  bool operator==(const Box&) const = default;
};

// The number of elements in both boxes, which have the same axes.
std::int64_t overlap(const Box& a, const Box& b);

// An InputAxis says which elements of an input, along one of its axes, are read for elements [a, b)
// of the output along axis `source`: with a' = (a - offset) / divide rounded down and b' = (b -
// offset) / divide rounded up, [a' stride - pad, (b' - 1) stride - pad + reach).
struct InputAxis {
  static constexpr int kWhole = -1;      // all elements
  static constexpr int kReduction = -2;  // the products of this axis are summed, see Operation
  int source = kWhole;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  std::int64_t reach = 1;
  std::int64_t offset = 0;
  std::int64_t divide = 1;
};

struct Input {
  int producer = 0;  // an operation before this one
  std::vector<std::int64_t> extents;
  std::vector<InputAxis> axes;
  bool has_gradient = true;
};

// `extents` are those of the output. Along the reduction, an axis of the inputs that the output
// does not have, tasks compute terms of the output.
struct Operation {
  std::vector<std::int64_t> extents;
  std::int64_t reduction = 1;
  std::int64_t itemsize = 4;
  std::vector<bool> is_parameter;  // whether splitting an axis of the output splits parameters
  std::vector<Input> inputs;
};

// One task for each combination of a replica, a part of the reduction and parts of the output's
// axes; the last axis varies fastest. Replicas compute the same.
struct Configuration {
  std::vector<int> degrees;
  int reduction = 1;
  int replicas = 1;
  std::vector<int> devices;  // of the tasks
  double forward = 0;        // seconds of a task
  double backward = 0;
  double sync = 0;    // to add up the gradients of parameters that several tasks have
  double update = 0;  // of a task's parameters

  int parts() const;
  // Returns the number of parts of a replica, and so of each term of the output.
  int pieces() const { return parts() / replicas; }
};

// Throws std::invalid_argument where an operation is none, or does not follow its producers.
void check(const Operation& operation, const std::vector<Operation>& before);
// Throws std::invalid_argument where the configuration does not fit the operation or the devices.
void check(const Configuration& configuration, const Operation& operation, int devices);

// Elements [0, extent) in `parts` contiguous parts, of which the first have one more.
Range part_of(std::int64_t extent, int parts, int index);

Box output_box(const Operation& operation, const Configuration& configuration, int part);
// Returns what a part reads of input `index`.
Box input_box(const Operation& operation, const Configuration& configuration, int part,
              std::size_t index);
// How many parts of a replica read the same box of input `index`.
int readers(const Operation& operation, const Configuration& configuration, std::size_t index);
// Parts of the same replica that have the same parameters.
std::vector<std::vector<int>> parameter_groups(const Operation& operation,
                                               const Configuration& configuration);

}  // namespace renga::planning
