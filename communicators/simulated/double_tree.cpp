#include "simulated/double_tree.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <tuple>

namespace renga::simulated {
namespace {

class Network {
 public:
  explicit Network(const std::vector<Level>& levels) : levels_(levels) {
    std::size_t children = 1;
    for (const Level& level : levels) children *= level.size;
    for (const Level& level : levels) {
      for (auto& way : {&up_, &down_}) way->emplace_back(children * level.links, 0.0);
      children /= level.size;
    }
  }

  // When a message arrives that is ready now. It passes a link while it arrives there.
  double send(double now, int source, int destination, double bytes) {
    destinations_.clear();
    double end = now, latency = 0.0;
    for (std::size_t k = 0; source != destination; ++k) {
      latency = levels_[k].latency;
      pass(up_[k], k, source, bytes, now, end);
      destinations_.push_back(destination);
      source /= levels_[k].size;
      destination /= levels_[k].size;
    }
    for (std::size_t k = destinations_.size(); k-- > 0;) {
      pass(down_[k], k, destinations_[k], bytes, now, end);
    }
    return end + latency;
  }

 private:
  void pass(std::vector<double>& free, std::size_t k, int child, double bytes, double& now,
            double& end) {
    const auto first = free.begin() + static_cast<std::ptrdiff_t>(child) * levels_[k].links;
    const auto link = std::min_element(first, first + levels_[k].links);
    now = std::max(now, *link);
    *link = now + bytes / levels_[k].bandwidth;
    end = std::max(end, *link);
  }

  const std::vector<Level>& levels_;
  std::vector<std::vector<double>> up_, down_;  // until when each link is in use
  std::vector<int> destinations_;
};

// What a node does with a chunk in one tree.
enum Step { kGather, kUp, kDown, kScatter };

class Trees {
 public:
  Trees(const std::vector<Level>& levels, double chunk_bytes, int chunks, int slots)
      : network_(levels), bytes_(chunk_bytes), chunks_(chunks), slots_(slots) {
    width_ = levels.front().size;
    for (std::size_t k = 1; k < levels.size(); ++k) nodes_ *= levels[k].size;
    parents_.resize(nodes_);
    children_.resize(nodes_);
    for (int i = 0; i < nodes_; ++i) {
      const int step = (i + 1) & -(i + 1), up = ((i + 1 - step) | 2 * step);
      parents_[i] = up <= nodes_ ? up - 1 : i - step;
      if (parents_[i] >= 0) children_[parents_[i]].push_back(i);
    }
    waits_.resize(static_cast<std::size_t>(chunks) * 2 * nodes_);
    for (std::size_t task = 0; task < waits_.size(); ++task) {
      waits_[task].count = 1 + static_cast<int>(children_[task % nodes_].size());
    }
  }

  double seconds() {
    for (int chunk = 0; chunk < std::min(chunks_, slots_); ++chunk) {
      for (int task = 2 * chunk * nodes_; task < 2 * (chunk + 1) * nodes_; ++task) begin(task, 0.0);
    }
    while (!ready_.empty()) {
      const auto [now, task, step, rank] = ready_.top();
      ready_.pop();
      const int node = task % nodes_;
      const int first = first_rank(task, node);
      switch (step) {
        case kGather: {  // a rank of the node sends to the one before it
          const double end = network_.send(now, first + rank, first + rank - 1, bytes_);
          if (rank > 1) {
            ready_.emplace(end, task, kGather, rank - 1);
          } else {
            gathered(task, end);
          }
          break;
        }
        case kUp: {
          const int parent = parents_[node];
          const double end = network_.send(now, first, first_rank(task, parent), bytes_);
          gathered(task - node + parent, end);
          break;
        }
        case kDown:
          summed(task, network_.send(now, first_rank(task, parents_[node]), first, bytes_));
          break;
        case kScatter: {
          const double end = network_.send(now, first + rank - 1, first + rank, bytes_);
          scatter(task, rank + 1, end);
          break;
        }
      }
    }
    return end_;
  }

 private:
  struct Wait {
    int count;
    double latest = 0.0;
  };

  int first_rank(int task, int node) const {
    const int tree = task / nodes_ % 2;
    return (node + tree) % nodes_ * width_;
  }

  void begin(int task, double now) {
    if (width_ > 1) {
      ready_.emplace(now, task, kGather, width_ - 1);
    } else {
      gathered(task, now);
    }
  }

  // The first rank of a node has one more of what it adds up.
  void gathered(int task, double now) {
    Wait& wait = waits_[task];
    wait.latest = std::max(wait.latest, now);
    if (--wait.count > 0) return;
    if (parents_[task % nodes_] < 0) {
      summed(task, wait.latest);
    } else {
      ready_.emplace(wait.latest, task, kUp, 0);
    }
  }

  void summed(int task, double now) {
    const int node = task % nodes_;
    for (const int child : children_[node]) ready_.emplace(now, task - node + child, kDown, 0);
    scatter(task, 1, now);
  }

  void scatter(int task, int rank, double now) {
    end_ = std::max(end_, now);
    if (rank < width_) {
      ready_.emplace(now, task, kScatter, rank);
    } else if (task + 2 * slots_ * nodes_ < static_cast<int>(waits_.size())) {
      begin(task + 2 * slots_ * nodes_, now);
    }
  }

  using Message = std::tuple<double, int, Step, int>;

  Network network_;
  double bytes_, end_ = 0.0;
  int chunks_, slots_, width_, nodes_ = 1;
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
  std::vector<Wait> waits_;  // of a chunk, a tree and a node
  std::priority_queue<Message, std::vector<Message>, std::greater<>> ready_;
};

}  // namespace

double double_tree_seconds(const std::vector<Level>& levels, double chunk_bytes, int chunks,
                           int slots) {
  return Trees(levels, chunk_bytes, chunks, slots).seconds();
}

}  // namespace renga::simulated
