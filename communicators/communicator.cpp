#include "communicator.h"

#include <algorithm>

#include "collectives/board.h"
#include "collectives/by_board.h"
#include "collectives/by_messages.h"
#include "collectives/by_nodes.h"
#include "collectives/update.h"
#include "devices/long_work.h"

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

// One array keeps its shape in messages, several are told by their number of elements.
Shape shape_of(const std::vector<Array>& xs) {
  if (xs.size() == 1) return xs[0].shape();
  std::int64_t n = 0;
  for (const Array& x : xs) n += x.size();
  return {n};
}

// Whether copies to the board cost less than a second meeting.
bool is_short(const std::vector<Array>& xs) {
  std::int64_t bytes = 0;
  for (const Array& x : xs) bytes += x.size() * x.itemsize();
  return bytes <= by_board::kSmall;
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Transport> transport, double seconds, bool debug)
    : transport_(std::move(transport)), seconds_(seconds), debug_(debug) {}

template <class Act>
void Communicator::take(const Turn& turn, const Act& body) {
  if (!broken_.empty()) {
    fail<std::runtime_error>(turn.call.op, ": this communicator cannot be used after: ", broken_);
  }
  try {
    Board* board = common_board();
    if (board != nullptr) {
      board->announce(turn.call);
    } else if (debug_) {
      by_messages::agree(turn);
    }
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
  call.sequence = ++sequence_;
  Turn turn{*transport_, call.at(issue.site), seconds_};
  const bool here = queue_.idle() && (issue.wait || !transport_->concurrent());
  if (here) {
    turn.interruptible = true;
    const LongWork lend;
    take(turn, body);
    return nullptr;
  }
  Result work = queue_.push(turn, [this, turn, body = std::move(body)] { take(turn, body); });
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
  bool in_place = travels_as == dtype;
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
  Call call = Call("all_reduce").with(shape_of(xs), travels_as).with_detail(name_of(reduction));
  if (in_place && common_board() != nullptr && !algorithm_ && !is_short(xs)) {
    if (const Windows::Found found = windows_.find(xs); !found.arrays.empty()) {
      return start(call.in_window(found.places), issue, [=, this](const Turn& turn) {
        by_board::all_reduce(turn, *common_board(), xs, found.arrays, reduction);
      });
    }
  }
  return start(call, issue,
               [=, this](const Turn& turn) { reduce_all(turn, xs, ys, travels_as, reduction); });
}

bool Communicator::all_reduce_short(std::byte* x, const Shape& shape, Dtype dtype,
                                    Reduction reduction, const Issue& issue) {
  Board* board = common_board();
  const std::int64_t bytes = shape.product() * size_of(dtype);
  if (bytes > by_board::kSmall || board == nullptr || algorithm_ || !queue_.idle()) return false;
  if (reduction == Reduction::mean && !is_float(dtype)) return false;
  Turn turn{*transport_, Call("all_reduce"), seconds_, true};
  turn.call.with(shape, dtype).with_detail(name_of(reduction)).at(issue.site);
  turn.call.sequence = ++sequence_;
  take(turn,
       [&](const Turn&) { by_board::all_reduce_short(turn, *board, x, bytes, dtype, reduction); });
  return true;
}

void Communicator::update(const std::vector<Update>& updates, const Issue& issue) {
  std::vector<Array> arrays;
  for (const Update& update : updates) {
    const std::vector<Array> of_one = by_board::arrays_of(update);
    arrays.insert(arrays.end(), of_one.begin(), of_one.end());
  }
  const Windows::Found found = windows_.find(arrays);
  require<std::invalid_argument>(!found.arrays.empty() && common_board() != nullptr,
                                 "update: expected arrays in windows of one node's ranks");
  Call call = Call("update").with(shape_of(arrays), arrays[0].dtype()).in_window(found.places);
  start(call, issue, [=, this](const Turn& turn) {
    by_board::update(turn, *common_board(), updates, found.arrays);
  });
}

void Communicator::reduce_all(const Turn& turn, const std::vector<Array>& xs,
                              const std::vector<Array>& ys, Dtype wire, Reduction reduction) {
  const std::vector<Array> landed = landing(ys, Flat::suits), from = leaving(xs, Flat::suits);
  const Flat x(from, wire), y(landed, wire);
  // A node of one rank has no partial result, which is wider than an operand of 16 bits.
  const bool alone = placement().inter_size > 1 && placement().intra_size == 1;
  if (algorithm_ || transport_->board() == nullptr || alone) {
    const auto network = algorithm_ ? all_reduce::Network() : measured_network(turn);
    by_messages::all_reduce(turn, network, algorithm_, x, y, wire, reduction);
  } else if (Board* board = common_board()) {
    by_board::all_reduce(turn, *board, x, y, wire, reduction);
  } else {
    by_nodes::all_reduce(turn, *transport_->board(), measured_network(turn), x, y, wire, reduction);
  }
  move_landed(landed, ys);
}

const all_reduce::Network& Communicator::measured_network(const Turn& turn) {
  if (!network_) network_ = all_reduce::measure(turn);
  return *network_;
}

all_reduce::Network Communicator::measure_network(const Issue& issue) {
  all_reduce::Network network;
  start(Call("measure"), issue, [&](const Turn& turn) { network = all_reduce::measure(turn); });
  return network;
}

Board* Communicator::common_board() const {
  return placement().inter_size == 1 ? transport_->board() : nullptr;
}

Array Communicator::window(std::int64_t bytes, const Issue& issue) {
  require<std::invalid_argument>(bytes >= 0, "window: expected a size, got ", bytes);
  Call call = Call("window").with(Shape{bytes}, Dtype::uint8);
  Array result = empty({bytes}, Dtype::uint8);
  start(call, issue, [&](const Turn& turn) {
    Board* board = transport_->board();
    if (board == nullptr) return;
    board->meet(turn);
    const int size = board->size();
    if (auto memory = transport_->shared_memory(Windows::bytes_for(bytes, size))) {
      result = windows_.add(std::move(memory), bytes, board->place(), size);
    }
  });
  return result;
}

std::vector<Array> Communicator::place(const std::vector<Array>& xs, const Issue& issue) {
  constexpr std::int64_t line = 64;
  std::vector<std::int64_t> offsets{0};
  for (const Array& x : xs) {
    const std::int64_t bytes = x.size() * x.itemsize();
    offsets.push_back(offsets.back() + (bytes + line - 1) / line * line);
  }
  const Array memory = window(offsets.back(), issue);
  if (places({memory}) == 0) return {};
  std::vector<Array> placed;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    std::byte* const data = memory.data() + offsets[i];
    const auto bytes = static_cast<std::size_t>(xs[i].size() * xs[i].itemsize());
    const Ref<Storage> storage(new Storage(data, bytes, {}, [memory] {}));
    placed.emplace_back(storage, data, xs[i].shape(),
                        row_major_strides(xs[i].shape(), xs[i].itemsize()), xs[i].dtype());
    copy(xs[i], placed.back());
  }
  return placed;
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
  return start(call, issue, [=, this](const Turn& turn) {
    const std::vector<Array> landed = landing({y}, Flat::suits), from = leaving({x}, Flat::suits);
    const Flat flat_x(from), flat_y(landed);
    if (Board* board = common_board()) {
      by_board::reduce_scatter(turn, *board, flat_x, flat_y, x.dtype(), reduction);
    } else {
      by_messages::reduce_scatter(turn, flat_x, flat_y, x.dtype(), reduction);
    }
    move_landed(landed, {y});
  });
}

Communicator::Result Communicator::all_gather(const Array& x, const std::vector<Array>& ys,
                                              const Issue& issue) {
  require(std::ssize(ys) == size(), "all_gather: expected one result per rank, got ", ys.size());
  require_same("all_gather", x, ys[rank()]);
  return start(Call("all_gather"), issue, [=, this](const Turn& turn) {
    Board* board = common_board();
    const Suits suits = board != nullptr ? Flat::suits : is_message;
    const std::vector<Array> landed = landing(ys, suits), from = leaving({x}, suits);
    if (board != nullptr) {
      by_board::all_gather(turn, *board, from[0], landed);
    } else {
      by_messages::exchange(turn, std::vector<Array>(size(), from[0]), landed);
    }
    move_landed(landed, ys);
  });
}

Communicator::Result Communicator::exchange(const char* name, const std::vector<Array>& sent,
                                            const std::vector<Array>& received,
                                            const Issue& issue) {
  require(std::ssize(sent) == size() && std::ssize(received) == size(), name,
          ": expected one array per rank, got ", sent.size(), " and ", received.size());
  return start(Call(name), issue, [=, this](const Turn& turn) {
    Board* board = common_board();
    const Suits suits = board != nullptr ? Flat::suits : is_message;
    const std::vector<Array> landed = landing(received, suits), from = leaving(sent, suits);
    if (board != nullptr) {
      by_board::exchange(turn, *board, from, landed);
    } else {
      by_messages::exchange(turn, from, landed);
    }
    move_landed(landed, received);
  });
}

Communicator::Result Communicator::broadcast(const Array& x, int root, const Issue& issue) {
  check_peer("broadcast", root);
  const Call call = Call("broadcast").with(x.shape(), x.dtype()).with_peer(root);
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
  start(Call("barrier"), issue, [this](const Turn& turn) {
    if (common_board() == nullptr) by_messages::agree(turn);
  });
}

std::shared_ptr<Communicator> Communicator::split(std::optional<int> color, int key,
                                                  const Issue& issue) {
  const Array mine = empty({3}, Dtype::int32), all = empty({size(), 3}, Dtype::int32);
  mine.as<std::int32_t>()[0] = color ? 1 : 0;
  mine.as<std::int32_t>()[1] = color.value_or(0);
  mine.as<std::int32_t>()[2] = key;
  std::vector<Array> rows;
  for (int r = 0; r < size(); ++r) {
    rows.emplace_back(all.storage(), all.data() + 12 * r, Shape{3}, Strides{4}, Dtype::int32);
  }
  all_gather(mine, rows, issue);
  if (!color) return nullptr;
  std::vector<int> members;
  const auto wish = [&](int r) { return rows[r].as<std::int32_t>(); };
  for (int r = 0; r < size(); ++r) {
    if (wish(r)[0] == 1 && wish(r)[1] == *color) members.push_back(r);
  }
  std::ranges::stable_sort(members, {}, [&](int r) { return wish(r)[2]; });
  const LongWork lend;
  return std::make_shared<Communicator>(transport_->split(members), seconds_, debug_);
}

void Communicator::check_peer(const char* name, int peer) const {
  require<std::invalid_argument>(peer >= 0 && peer < size(), name, ": expected a rank in [0, ",
                                 size(), "), got ", peer);
}

void Communicator::check_message(const char* name, int peer, int tag) const {
  check_peer(name, peer);
  require<std::invalid_argument>(tag >= 0, name, ": expected a tag of 0 or more, got ", tag);
}

template <class Post>
Communicator::Result Communicator::message(Call call, const std::vector<Array>& xs,
                                           const Issue& issue, const Post& post) {
  if (!xs.empty()) call.with(xs.back().shape(), xs.back().dtype());
  const LongWork lend;
  Transfers transfers;
  for (const Array& x : xs) transfers.push_back(post(x.data(), x.size() * x.itemsize()));
  const Turn turn{*transport_, call.at(issue.site), seconds_, true};
  if (!issue.wait) {
    return std::make_shared<TransferWork>(turn, transport_, std::move(transfers), xs);
  }
  finish(transfers, turn);
  return nullptr;
}

Communicator::Result Communicator::send(const std::vector<Array>& xs, int to, int tag,
                                        const Issue& issue) {
  check_message("send", to, tag);
  std::erase_if(sent_, [](const Result& work) { return work->test(); });
  Result work = message(Call("send").with_peer(to), leaving(xs, is_message), issue,
                        [=, this](const std::byte* data, std::int64_t bytes) {
                          return transport_->send(data, bytes, to, tag);
                        });
  // The bytes have to stay until they are sent, even if the caller drops the Work.
  if (work) sent_.push_back(work);
  return work;
}

Communicator::Result Communicator::receive(const std::vector<Array>& xs, int from, int tag,
                                           const Issue& issue) {
  check_message("recv", from, tag);
  for (const Array& x : xs) {
    require(x.is_contiguous(), "recv: expected a contiguous result, got strides ", x.strides());
  }
  return message(Call("recv").with_peer(from), xs, issue,
                 [=, this](std::byte* data, std::int64_t bytes) {
                   return transport_->receive(data, bytes, from, tag);
                 });
}

}  // namespace renga
