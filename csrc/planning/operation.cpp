#include "planning/operation.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>

#include "tensor/error.h"

namespace renga::planning {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - static_cast<std::int64_t>(a % b != 0 && a < 0);
}

Range read_range(const InputAxis& axis, std::int64_t extent, const Range& output) {
  const std::int64_t begin = floor_divide(output.begin - axis.offset, axis.divide);
  const std::int64_t end = -floor_divide(axis.offset - output.end, axis.divide);
  const Range read{begin * axis.stride - axis.pad, (end - 1) * axis.stride - axis.pad + axis.reach};
  return {std::clamp<std::int64_t>(read.begin, 0, extent),
          std::clamp<std::int64_t>(read.end, 0, extent)};
}

// The index along each axis of a part, and along the reduction.
struct Coordinates {
  std::array<int, kMaxAxes> axes{};
  int reduction = 0;
  int replica = 0;
  auto operator<=>(const Coordinates&) const = default;
};

Coordinates coordinates(const Configuration& configuration, int part) {
  Coordinates found;
  for (int axis = static_cast<int>(configuration.degrees.size()) - 1; axis >= 0; --axis) {
    found.axes[axis] = part % configuration.degrees[axis];
    part /= configuration.degrees[axis];
  }
  found.reduction = part % configuration.reduction;
  found.replica = part / configuration.reduction;
  return found;
}

}  // namespace

std::int64_t overlap(const Box& a, const Box& b) {
  std::int64_t size = 1;
  for (int i = 0; i < a.axes; ++i) {
    const std::int64_t common =
        std::min(a.ranges[i].end, b.ranges[i].end) - std::max(a.ranges[i].begin, b.ranges[i].begin);
    if (common <= 0) return 0;
    size *= common;
  }
  return size;
}

int Configuration::parts() const {
  return std::accumulate(degrees.begin(), degrees.end(), reduction * replicas, std::multiplies<>());
}

void check(const Operation& operation, const std::vector<Operation>& before) {
  using Error = std::invalid_argument;
  require<Error>(!operation.extents.empty() && operation.extents.size() <= kMaxAxes,
                 "planning: expected an output with 1 to ", kMaxAxes, " axes, got ",
                 operation.extents.size());
  require<Error>(operation.is_parameter.size() == operation.extents.size(),
                 "planning: expected is_parameter for each axis of the output");
  for (const Input& input : operation.inputs) {
    require<Error>(input.producer >= 0 && input.producer < static_cast<int>(before.size()),
                   "planning: expected a producer among the ", before.size(),
                   " operations before, got ", input.producer);
    require<Error>(input.extents == before[input.producer].extents &&
                       input.axes.size() == input.extents.size(),
                   "planning: expected an input with the extents of operation ", input.producer);
    for (const InputAxis& axis : input.axes) {
      require<Error>(axis.source >= InputAxis::kReduction &&
                         axis.source < static_cast<int>(operation.extents.size()) &&
                         axis.divide > 0 && axis.stride > 0,
                     "planning: expected an input's axis to name one of the output, got ",
                     axis.source);
    }
  }
}

void check(const Configuration& configuration, const Operation& operation, int devices) {
  using Error = std::invalid_argument;
  require<Error>(configuration.degrees.size() == operation.extents.size(),
                 "planning: expected a degree for each of ", operation.extents.size(),
                 " axes, got ", configuration.degrees.size());
  for (std::size_t i = 0; i < operation.extents.size(); ++i) {
    require<Error>(
        configuration.degrees[i] >= 1 && configuration.degrees[i] <= operation.extents[i],
        "planning: expected a degree from 1 to ", operation.extents[i], " for axis ", i, ", got ",
        configuration.degrees[i]);
  }
  require<Error>(configuration.reduction >= 1 && configuration.reduction <= operation.reduction,
                 "planning: expected a degree from 1 to ", operation.reduction,
                 " for the reduction, got ", configuration.reduction);
  require<Error>(configuration.replicas >= 1, "planning: expected a replica, got ",
                 configuration.replicas);
  require<Error>(static_cast<int>(configuration.devices.size()) == configuration.parts(),
                 "planning: expected a device for each of ", configuration.parts(), " tasks, got ",
                 configuration.devices.size());
  require<Error>(configuration.parts() <= (1 << 16), "planning: expected at most ", 1 << 16,
                 " tasks, got ", configuration.parts());
  for (const int device : configuration.devices) {
    require<Error>(device >= 0 && device < devices, "planning: expected a device in [0, ", devices,
                   "), got ", device);
  }
}

Range part_of(std::int64_t extent, int parts, int index) {
  const std::int64_t size = extent / parts, more = extent % parts;
  const std::int64_t begin = index * size + std::min<std::int64_t>(index, more);
  return {begin, begin + size + static_cast<std::int64_t>(index < more)};
}

Box output_box(const Operation& operation, const Configuration& configuration, int part) {
  const Coordinates at = coordinates(configuration, part);
  Box box{static_cast<int>(operation.extents.size()), {}};
  for (int i = 0; i < box.axes; ++i) {
    box.ranges[i] = part_of(operation.extents[i], configuration.degrees[i], at.axes[i]);
  }
  return box;
}

Box input_box(const Operation& operation, const Configuration& configuration, int part,
              std::size_t index) {
  const Input& input = operation.inputs[index];
  const Box output = output_box(operation, configuration, part);
  const Range terms = part_of(operation.reduction, configuration.reduction,
                              coordinates(configuration, part).reduction);
  Box box{static_cast<int>(input.extents.size()), {}};
  for (int i = 0; i < box.axes; ++i) {
    const InputAxis& axis = input.axes[i];
    box.ranges[i] = {0, input.extents[i]};
    if (axis.source == InputAxis::kReduction) {
      box.ranges[i] = read_range(axis, input.extents[i], terms);
    } else if (axis.source != InputAxis::kWhole) {
      box.ranges[i] = read_range(axis, input.extents[i], output.ranges[axis.source]);
    }
  }
  return box;
}

int readers(const Operation& operation, const Configuration& configuration, std::size_t index) {
  std::array<bool, kMaxAxes> is_read{};
  int different = 1;
  for (const InputAxis& axis : operation.inputs[index].axes) {
    if (axis.source >= 0) is_read[axis.source] = true;
    if (axis.source == InputAxis::kReduction) different = configuration.reduction;
  }
  for (std::size_t i = 0; i < configuration.degrees.size(); ++i) {
    if (is_read[i]) different *= configuration.degrees[i];
  }
  return configuration.pieces() / different;
}

std::vector<std::vector<int>> parameter_groups(const Operation& operation,
                                               const Configuration& configuration) {
  std::map<Coordinates, std::vector<int>> groups;
  for (int part = 0; part < configuration.parts(); ++part) {
    Coordinates at = coordinates(configuration, part);
    for (std::size_t i = 0; i < operation.extents.size(); ++i) {
      if (!operation.is_parameter[i]) at.axes[i] = 0;
    }
    groups[at].push_back(part);
  }
  std::vector<std::vector<int>> found;
  for (auto& [at, group] : groups) found.push_back(std::move(group));
  return found;
}

}  // namespace renga::planning
