// The devices that tasks run on, and the network between them.
#pragma once

#include <cstdint>

namespace renga::planning {

// Devices are numbered node by node. Messages of a device leave one after the other, over one
// port to devices of its node and over another one to others.
struct Topology {
  int devices = 1;
  int devices_per_node = 1;
  double latency = 0;  // seconds, between nodes
  double seconds_per_byte = 0;
  double node_latency = 0;  // within a node
  double node_seconds_per_byte = 0;
  bool overlaps = true;  // if not, a device does not compute while it communicates

  bool is_same_node(int a, int b) const { return a / devices_per_node == b / devices_per_node; }
  double message(int from, int to, std::int64_t bytes) const {
    const auto size = static_cast<double>(bytes);
    return is_same_node(from, to) ? node_latency + size * node_seconds_per_byte
                                  : latency + size * seconds_per_byte;
  }

  // Tasks of one resource run one after the other: a device, its port to its node, or that to
  // other nodes.
  int resources() const { return 3 * devices; }
  int port(int from, int to) const {
    return overlaps ? (is_same_node(from, to) ? devices : 2 * devices) + from : to;
  }
  // Where the parameters of a device are synchronized.
  int sync_port(int device) const { return overlaps ? 2 * devices + device : device; }
};

}  // namespace renga::planning
