// A group of ranks that act together. All ranks call the same collectives in the same order.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/all_reduce/choice.h"
#include "collectives/reduce.h"
#include "collectives/window.h"
#include "optimizers/update_rules.h"
#include "tensor/array.h"
#include "transport.h"
#include "work.h"

namespace renga {

// How a call is carried out: at once, or on the communicator's thread while the caller goes on.
struct Issue {
  bool wait = true;
  std::string site;  // where the user called
};

// Every method that moves data returns null when it waited and a Work otherwise; arrays may have
// any strides and must not be touched until the Work is over. Throws TimeOut when a rank stays away
// for longer than the communicator's time-out, InvalidType when ranks ask for different things.
class Communicator {
 public:
  using Result = std::shared_ptr<Work>;

  // `seconds` is the time-out of every wait, 0 for none. `debug` compares the ranks' calls even
  // where that costs a message.
  Communicator(std::shared_ptr<Transport> transport, double seconds, bool debug);
  ~Communicator();

  const Placement& placement() const { return transport_->placement(); }
  int rank() const { return placement().rank; }
  int size() const { return placement().size; }
  const std::shared_ptr<Transport>& transport() const { return transport_; }
  // Whether call sites are worth finding out: other ranks' messages show them.
  bool shows_sites() const { return debug_; }
  // Ranks with the same `color` form a group, ordered by `key`, then rank. No color: null.
  std::shared_ptr<Communicator> split(std::optional<int> color, int key, const Issue& issue);

  // xs[i] are reduced into ys[i]; all of one dtype. x and y may be the same. The elements travel
  // as `wire`, a floating dtype, where that is given; the sums are made in float32 at least.
  Result all_reduce(const std::vector<Array>& xs, const std::vector<Array>& ys, Reduction reduction,
                    std::optional<Dtype> wire, const Issue& issue);
  // The same for few elements without gaps, in place and waited for. False, and nothing is done,
  // where that is not what the other way would do.
  bool all_reduce_short(std::byte* x, const Shape& shape, Dtype dtype, Reduction reduction,
                        const Issue& issue);
  // Makes the gradients of `updates` the ranks' means and carries them out, each rank a share. All
  // their arrays lie in windows, and all ranks are on one node.
  void update(const std::vector<Update>& updates, const Issue& issue);
  // x: (size, …) -> y: (…), the reduction of everybody's x[rank].
  Result reduce_scatter(const Array& x, const Array& y, Reduction reduction, const Issue& issue);
  // x: (…) -> y: (size, …), everybody's x.
  Result all_gather(const Array& x, const Array& y, const Issue& issue);
  // ys[r] receives rank r's x, whose size it has to have; `name` is what errors call it.
  Result gather_parts(const char* name, const Array& x, const std::vector<Array>& ys,
                      const Issue& issue);
  // x: (size, …) -> y: (size, …), everybody's x[rank].
  Result all_to_all(const Array& x, const Array& y, const Issue& issue);
  // received[r] receives what rank r has at sent[rank]. Undefined arrays stand for nothing; `name`
  // is what errors call it, and `root` is compared.
  Result exchange(const char* name, std::optional<std::int64_t> root,
                  const std::vector<Array>& sent, const std::vector<Array>& received,
                  const Issue& issue);
  // The root's `x` into everybody's; `name` is what errors call it.
  Result broadcast(const char* name, const Array& x, std::int64_t root, const Issue& issue);
  // Returns when every rank has called it.
  void barrier(const Issue& issue);

  // One message for each array, in order; the tag is not negative.
  Result send(const std::vector<Array>& xs, std::int64_t to, std::int64_t tag, const Issue& issue);
  // Into contiguous arrays whose sizes are those sent.
  Result receive(const std::vector<Array>& xs, std::int64_t from, std::int64_t tag,
                 const Issue& issue);

  // An array of `bytes` in memory that all ranks of the node see, in which all_reduce in place
  // copies nothing; in ordinary memory where there is no such. Every rank calls it and uses its
  // array as the others use theirs.
  Array window(std::int64_t bytes, const Issue& issue);
  // Row-major copies of arrays in one window, each with a storage of its own; none of them where
  // there is no memory that all ranks see.
  std::vector<Array> place(const std::vector<Array>& xs, const Issue& issue);
  // A number that tells where in windows arrays lie; 0 where one does not.
  std::int32_t places(const std::vector<Array>& xs) { return windows_.find(xs).places; }

  // How long messages between the halves of the ranks take.
  all_reduce::Network measure_network(const Issue& issue);
  // Makes all_reduce go by messages, and by this algorithm; none: as it is fastest.
  void set_algorithm(std::optional<all_reduce::Algorithm> algorithm) { algorithm_ = algorithm; }

  // Ends the job (processes) or the group (threads).
  void abort(int code) { transport_->abort(code); }

 private:
  using Body = std::function<void(const Turn&)>;
  Result start(Call call, const Issue& issue, Body body);
  Result move_all(Call call, const std::vector<Array>& sent, const std::vector<Array>& received,
                  bool same_for_all, const Issue& issue);
  // Throws where the communicator cannot be used now.
  void check_use(const Call& call) const;
  // Compares the ranks' calls before anything is moved.
  void agree(const Turn& turn) const;
  template <class Act>
  void take(const Turn& turn, const Act& body);
  // The board where all ranks are on it, null otherwise.
  Board* common_board() const;
  const all_reduce::Network& measured_network(const Turn& turn);
  void reduce_all(const Turn& turn, const std::vector<Array>& xs, const std::vector<Array>& ys,
                  Dtype wire, Reduction reduction);
  // Calls post(bytes of x) for each array and waits for them, or returns what can be waited for.
  template <class Post>
  Result message(Call call, const std::vector<Array>& xs, const Issue& issue, const Post& post);
  int checked_rank(const char* name, std::int64_t rank) const;
  int checked_tag(const char* name, std::int64_t tag) const;

  std::shared_ptr<Transport> transport_;
  double seconds_;
  bool debug_;
  std::int64_t sequence_ = 0;
  int forks_;                       // how often the process had forked when this was made
  std::atomic<bool> busy_ = false;  // a caller is in a collective
  std::string broken_;
  std::vector<Result> sent_;
  Windows windows_;
  std::optional<all_reduce::Network> network_;
  std::optional<all_reduce::Algorithm> algorithm_;
  std::unique_ptr<WorkQueue> queue_ = std::make_unique<WorkQueue>();  // last: uses the others
};

}  // namespace renga
