#include "planning/transfers.h"

namespace renga::planning {
namespace {

// The replica of a piece on a device, or else one that depends on the reader.
int nearest_replica(const Configuration& configuration, int piece, int reader, int device) {
  const int pieces = configuration.pieces();
  for (int part = piece; part < configuration.parts(); part += pieces) {
    if (configuration.devices[part] == device) return part;
  }
  return piece + pieces * (reader % configuration.replicas);
}

std::int64_t bytes_of(std::int64_t size, std::int64_t itemsize, int terms, int readers) {
  const std::int64_t bytes = size * itemsize;
  return terms > 1 && readers > 1 ? (2 * bytes + readers - 1) / readers : bytes;
}

std::vector<Box> output_boxes(const Operation& operation, const Configuration& configuration) {
  std::vector<Box> boxes;
  for (int part = 0; part < configuration.parts(); ++part) {
    boxes.push_back(output_box(operation, configuration, part));
  }
  return boxes;
}

std::vector<Box> input_boxes(const Operation& operation, const Configuration& configuration,
                             std::size_t index) {
  std::vector<Box> boxes;
  for (int part = 0; part < configuration.parts(); ++part) {
    boxes.push_back(input_box(operation, configuration, part, index));
  }
  return boxes;
}

// The transfers go from pieces of `source` to all parts of `target`.
std::vector<Transfer> between(const Configuration& source, const std::vector<Box>& sent,
                              const Configuration& target, const std::vector<Box>& received,
                              std::int64_t itemsize, int terms, int readers) {
  std::vector<Transfer> transfers;
  for (int to = 0; to < target.parts(); ++to) {
    for (int piece = 0; piece < source.pieces(); ++piece) {
      const std::int64_t size = overlap(sent[piece], received[to]);
      if (size == 0) continue;
      const int from = nearest_replica(source, piece, to, target.devices[to]);
      const bool is_local = source.devices[from] == target.devices[to];
      transfers.push_back({from, to, is_local ? 0 : bytes_of(size, itemsize, terms, readers)});
    }
  }
  return transfers;
}

}  // namespace

std::vector<Transfer> forward_transfers(const Operation& producer, const Configuration& source,
                                        const Operation& reader, const Configuration& target,
                                        std::size_t index) {
  const int same = readers(reader, target, index) * target.replicas;
  return between(source, output_boxes(producer, source), target, input_boxes(reader, target, index),
                 producer.itemsize, source.reduction, same);
}

std::vector<Transfer> backward_transfers(const Operation& producer, const Configuration& source,
                                         const Operation& reader, const Configuration& target,
                                         std::size_t index) {
  const int same = source.replicas * source.reduction;
  return between(target, input_boxes(reader, target, index), source, output_boxes(producer, source),
                 producer.itemsize, readers(reader, target, index), same);
}

}  // namespace renga::planning
