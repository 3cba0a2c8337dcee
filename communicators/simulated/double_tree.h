// An all-reduce along two trees, message by message.
#pragma once

#include <vector>

namespace renga::simulated {

// Children of a switch: each has links to it, which send and receive at the same time.
struct Level {
  int size;
  double bandwidth;  // bytes per second of a link, in one direction
  double latency;    // seconds of a message whose uppermost switch this is
  int links;         // of each child
};

// Seconds until all ranks have the sum of an array of which each tree moves so many chunks.
//
// Ranks of a node pass chunks on in a chain to its first rank, and back. First ranks are a binary
// tree in order of their nodes; in the second tree all have moved by one node. A node begins a
// chunk when it has finished the one that came `slots` before. A message has one of the links of
// each level on its way, and waits for it in the order in which messages are ready.
double double_tree_seconds(const std::vector<Level>& levels, double chunk_bytes, int chunks,
                           int slots);

}  // namespace renga::simulated
