#include "communicator.h"

#include <algorithm>

#include "collectives/agreement.h"
#include "collectives/board.h"
#include "collectives/by_board.h"
#include "collectives/by_messages.h"
#include "collectives/by_nodes.h"
#include "collectives/overlap.h"
#include "devices/gil_release.h"

namespace renga {

namespace {

// Whether messages or the board can take an array as it lies.
using Suits = bool (*)(const Array& x);

bool is_message(const Array& x) { return x.is_contiguous(); }

// What is sent: the arrays themselves where they suit, copies without gaps otherwise.
std::vector<Array> leaving(const std::vector<Array>& xs, Suits suits) {
  std::vector<Array> result;
  for (const Array& x : xs) result.push_back(!x.defined() || suits(x) ? x : contiguous(x));
  return result;
}

// Arrays to receive into: the arrays themselves where they suit.
std::vector<Array> landing(const std::vector<Array>& ys, Suits suits) {
  std::vector<Array> result;
  for (const Array& y : ys) {
    result.push_back(!y.defined() || suits(y) ? y : empty(y.shape(), y.dtype()));
  }
  return result;
}

void move_landed(const std::vector<Array>& landed, const std::vector<Array>& ys) {
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].defined() && landed[i].data() != ys[i].data()) copy(landed[i], ys[i]);
  }
}

void require_same(const char* op, const Array& x, const Array& y) {
  require(x.shape() == y.shape() && x.dtype() == y.dtype(), op, ": expected a result of ",
          x.dtype(), " ", x.shape(), ", got ", y.dtype(), " ", y.shape());
}

// Row r of an array with one for each rank.
std::vector<Array> rows_of(const Array& x) {
  std::vector<Array> rows;
  const Shape shape(std::span(x.shape().begin() + 1, x.shape().end()));
  const Strides strides(std::span(x.strides().begin() + 1, x.strides().end()));
  for (std::int64_t r = 0; r < x.shape(0); ++r) {
    rows.emplace_back(x.storage(), x.data() + r * x.strides()[0], shape, strides, x.dtype());
  }
  return rows;
}

// While a caller is in a collective.
class InUse {
 public:
  explicit InUse(std::atomic<bool>& busy) : busy_(busy) { set(true); }
  ~InUse() { set(false); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  // Callers hold Python's lock when they look at it.
  void set(bool busy) { busy_.store(busy, std::memory_order_relaxed); }

  std::atomic<bool>& busy_;
};

// Whether copies to the board cost less than a second meeting.
bool is_short(const std::vector<Array>& xs) {
  std::int64_t bytes = 0;
  for (const Array& x : xs) bytes += x.size() * x.itemsize();
  return bytes <= by_board::kSmall;
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Transport> transport, double seconds, bool debug)
    : transport_(std::move(transport)), seconds_(seconds), debug_(debug), forks_(forks) {}

Communicator::~Communicator() {
  // A forked process has no such thread, but what the thread waits at.
  if (forks_ != forks) static_cast<void>(queue_.release());
}

void Communicator::check_use(const Call& call) const {
  require<std::runtime_error>(
      forks_ == forks, call.op,
      ": this communicator belongs to the process that has forked this one");
  require<std::runtime_error>(!busy_, call.op, ": another thread is in a collective of this ",
                              "communicator; only one thread at a time may call them, and split() ",
                              "makes communicators for others");
}

void Communicator::agree(const Turn& turn) const {
  if (Board* board = common_board()) {
    board->meet(turn);
  } else {
    by_messages::agree(turn);
  }
}

template <class Act>
void Communicator::take(const Turn& turn, const Act& body) {
  if (!broken_.empty()) {
    fail<std::runtime_error>(turn.call.op, ": this communicator cannot be used after: ", broken_);
  }
  try {
    transport_->check_failure();
    Board* board = common_board();
    if (board != nullptr) board->announce(turn.call);
    body(turn);
    // Where nothing was to be moved, the ranks have not met yet.
    if (board != nullptr && board->announced()) board->meet(turn);
  } catch (const Disagreement&) {
    throw;
  } catch (const std::exception& error) {
    broken_ = error.what();
    throw;
  }
}

Communicator::Result Communicator::start(Call call, const Issue& issue, Body body) {
  check_use(call);
  call.sequence = ++sequence_;
  Turn turn{*transport_, call.at(issue.site), seconds_};
  const bool here = queue_->idle() && (issue.wait || !transport_->concurrent());
  if (here) {
    turn.interruptible = true;
    const InUse use(busy_);
    const GilRelease lend;
    take(turn, body);
    return nullptr;
  }
  Result work =
      queue_->push(turn, transport_, [this, turn, body = std::move(body)] { take(turn, body); });
  if (!issue.wait) return work;
  work->wait(0);
  return nullptr;
}

Communicator::Result Communicator::all_reduce(const std::vector<Array>& xs,
                                              const std::vector<Array>& ys, Reduction reduction,
                                              std::optional<Dtype> wire, const Issue& issue) {
  require(!xs.empty() && xs.size() == ys.size(),
          "all_reduce: expected as many results as arrays, got ", xs.size(), " and ", ys.size());
  const Dtype dtype = xs[0].dtype(), travels_as = wire.value_or(dtype);
  // In place in windows, an array is read after another has been written.
  bool in_place = travels_as == dtype && !overlap(ys);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    require(xs[i].dtype() == dtype, "all_reduce: expected one dtype, got ", dtype, " and ",
            xs[i].dtype());
    require_same("all_reduce", xs[i], ys[i]);
    in_place = in_place && xs[i].data() == ys[i].data();
  }
  require(travels_as == dtype || (is_float(dtype) && is_float(travels_as)),
          "all_reduce: expected floating dtypes to convert between, got ", dtype, " and ",
          travels_as);
  require(reduction != Reduction::mean || is_float(dtype),
          "all_reduce: expected a floating dtype for mean, got ", dtype);
  Call call = Call("all_reduce").with(xs, travels_as).with_detail(name_of(reduction));
  if (in_place && common_board() != nullptr && !algorithm_ && !is_short(xs)) {
    if (const Windows::Found found = windows_.find(xs); !found.arrays.empty()) {
      return start(call.in_window(found.places), issue, [=, this](const Turn& turn) {
        by_board::all_reduce(turn, *common_board(), xs, found.arrays, reduction);
      });
    }
  }
  return start(call, issue, [=, this, from = safe_inputs(xs, ys)](const Turn& turn) {
    reduce_all(turn, from, ys, travels_as, reduction);
  });
}

bool Communicator::all_reduce_short(std::byte* x, const Shape& shape, Dtype dtype,
                                    Reduction reduction, const Issue& issue) {
  Board* board = common_board();
  const std::int64_t bytes = shape.product() * size_of(dtype);
  if (bytes > by_board::kSmall || board == nullptr || algorithm_ || !queue_->idle()) return false;
  if (reduction == Reduction::mean && !is_float(dtype)) return false;
  Turn turn{*transport_, Call("all_reduce"), seconds_, true};
  check_use(turn.call);
  turn.call.with(shape, dtype).with_detail(name_of(reduction)).at(issue.site);
  turn.call.sequence = ++sequence_;
  const InUse use(busy_);
  take(turn,
       [&](const Turn&) { by_board::all_reduce_short(turn, *board, x, bytes, dtype, reduction); });
  return true;
}

void Communicator::reduce_all(const Turn& turn, const std::vector<Array>& xs,
                              const std::vector<Array>& ys, Dtype wire, Reduction reduction) {
  const std::vector<Array> landed = landing(ys, Flat::suits), from = leaving(xs, Flat::suits);
  const Flat x(from, wire), y(landed, wire);
  // A node of one rank has no partial result, which is wider than an operand of 16 bits.
  const bool alone = placement().inter_size > 1 && placement().intra_size == 1;
  if (Board* board = common_board(); board != nullptr && !algorithm_) {
    by_board::all_reduce(turn, *board, x, y, wire, reduction);
  } else if (board == nullptr && !algorithm_ && by_messages::goes_along(turn, x.bytes())) {
    by_messages::all_reduce_short(turn, x, y, wire, reduction);
  } else {
    agree(turn);
    const auto network = algorithm_ ? all_reduce::Network() : measured_network(turn);
    if (algorithm_ || transport_->board() == nullptr || alone) {
      by_messages::all_reduce(turn, network, algorithm_, x, y, wire, reduction);
    } else {
      by_nodes::all_reduce(turn, *transport_->board(), network, x, y, wire, reduction);
    }
  }
  move_landed(landed, ys);
}

const all_reduce::Network& Communicator::measured_network(const Turn& turn) {
  if (!network_) network_ = all_reduce::measure(turn);
  return *network_;
}

all_reduce::Network Communicator::measure_network(const Issue& issue) {
  all_reduce::Network network;
  start(Call("measure"), issue, [&](const Turn& turn) {
    agree(turn);
    network = all_reduce::measure(turn);
  });
  return network;
}

Board* Communicator::common_board() const {
  return placement().inter_size == 1 ? transport_->board() : nullptr;
}

Communicator::Result Communicator::reduce_scatter(const Array& x, const Array& y,
                                                  Reduction reduction, const Issue& issue) {
  Shape whole = y.shape();
  whole.insert(0, size());
  require(x.shape() == whole && x.dtype() == y.dtype(), "reduce_scatter: expected x of ", y.dtype(),
          " ", whole, " for a result of ", y.shape(), ", got ", x.dtype(), " ", x.shape());
  require(reduction != Reduction::mean || is_float(x.dtype()),
          "reduce_scatter: expected a floating dtype for mean, got ", x.dtype());
  const Call call =
      Call("reduce_scatter").with(x.shape(), x.dtype()).with_detail(name_of(reduction));
  const Array whole_x = overlap({x, y}) ? copy_of(x) : x;
  return start(call, issue, [=, this](const Turn& turn) {
    const std::vector<Array> landed = landing({y}, Flat::suits);
    const std::vector<Array> from = leaving({whole_x}, Flat::suits);
    const Flat flat_x(from), flat_y(landed);
    if (Board* board = common_board()) {
      by_board::reduce_scatter(turn, *board, flat_x, flat_y, x.dtype(), reduction);
    } else {
      by_messages::reduce_scatter(turn, flat_x, flat_y, x.dtype(), reduction);
    }
    move_landed(landed, {y});
  });
}

Communicator::Result Communicator::all_gather(const Array& x, const Array& y, const Issue& issue) {
  Shape whole = x.shape();
  whole.insert(0, size());
  require(y.shape() == whole && y.dtype() == x.dtype(), "all_gather: expected a result of ",
          x.dtype(), " ", whole, ", got ", y.dtype(), " ", y.shape());
  const std::vector<Array> ys = rows_of(y);
  const std::vector<Array> from(ys.size(), safe_inputs({x}, ys, rank())[0]);
  return move_all(Call("all_gather").with(x.shape(), x.dtype()), from, ys, true, issue);
}

Communicator::Result Communicator::gather_parts(const char* name, const Array& x,
                                                const std::vector<Array>& ys, const Issue& issue) {
  require(std::ssize(ys) == size(), name, ": expected one result per rank, got ", ys.size());
  require_same(name, x, ys[rank()]);
  return move_all(Call(name), std::vector<Array>(ys.size(), x), ys, true, issue);
}

Communicator::Result Communicator::all_to_all(const Array& x, const Array& y, const Issue& issue) {
  require(x.ndim() > 0 && x.shape(0) == size(), "all_to_all: expected one row for each of ", size(),
          " ranks, got shape ", x.shape());
  require_same("all_to_all", x, y);
  const Array from = overlap({x, y}) ? copy_of(x) : x;
  const Call call = Call("all_to_all").with(x.shape(), x.dtype());
  return move_all(call, rows_of(from), rows_of(y), false, issue);
}

Communicator::Result Communicator::exchange(const char* name, std::optional<std::int64_t> root,
                                            const std::vector<Array>& sent,
                                            const std::vector<Array>& received,
                                            const Issue& issue) {
  require(std::ssize(sent) == size() && std::ssize(received) == size(), name,
          ": expected one array per rank, got ", sent.size(), " and ", received.size());
  Call call(name);
  if (root) call.with_peer(checked_rank(name, *root));
  return move_all(call, sent, received, false, issue);
}

// What all ranks get is the same where `same_for_all` is true.
Communicator::Result Communicator::move_all(Call call, const std::vector<Array>& sent,
                                            const std::vector<Array>& received, bool same_for_all,
                                            const Issue& issue) {
  return start(call, issue, [=, this](const Turn& turn) {
    Board* board = common_board();
    const Suits suits = board != nullptr ? Flat::suits : is_message;
    const std::vector<Array> landed = landing(received, suits);
    if (same_for_all) {
      const Array from = leaving({sent[0]}, suits)[0];
      if (board != nullptr) {
        by_board::all_gather(turn, *board, from, landed);
      } else {
        by_messages::exchange(turn, std::vector<Array>(sent.size(), from), landed);
      }
    } else if (board != nullptr) {
      by_board::exchange(turn, *board, leaving(sent, suits), landed);
    } else {
      by_messages::exchange(turn, leaving(sent, suits), landed);
    }
    move_landed(landed, received);
  });
}

Communicator::Result Communicator::broadcast(const char* name, const Array& x, std::int64_t given,
                                             const Issue& issue) {
  const int root = checked_rank(name, given);
  const Call call = Call(name).with(x.shape(), x.dtype()).with_peer(root);
  return start(call, issue, [=, this](const Turn& turn) {
    const bool gives = turn.rank() == root;
    const Array place = gives ? contiguous(x) : landing({x}, is_message)[0];
    if (Board* board = common_board()) {
      by_board::broadcast(turn, *board, place, root);
    } else {
      by_messages::broadcast(turn, place, root);
    }
    if (!gives) move_landed({place}, {x});
  });
}

void Communicator::barrier(const Issue& issue) {
  start(Call("barrier"), issue, [this](const Turn& turn) { agree(turn); });
}

std::shared_ptr<Communicator> Communicator::split(std::optional<int> color, int key,
                                                  const Issue& issue) {
  const Array mine = empty({3}, Dtype::int32), all = empty({size(), 3}, Dtype::int32);
  mine.as<std::int32_t>()[0] = color ? 1 : 0;
  mine.as<std::int32_t>()[1] = color.value_or(0);
  mine.as<std::int32_t>()[2] = key;
  const std::vector<Array> rows = rows_of(all);
  gather_parts("split", mine, rows, issue);
  if (!color) return nullptr;
  std::vector<int> members;
  const auto wish = [&](int r) { return rows[r].as<std::int32_t>(); };
  for (int r = 0; r < size(); ++r) {
    if (wish(r)[0] == 1 && wish(r)[1] == *color) members.push_back(r);
  }
  std::ranges::stable_sort(members, {}, [&](int r) { return wish(r)[2]; });
  const GilRelease lend;
  return std::make_shared<Communicator>(transport_->split(members), seconds_, debug_);
}

}  // namespace renga
