#include "mpi/mpi_transport.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "mpi/shared_memory.h"

namespace renga {

namespace {

// Among a collective's messages, whose tag is 0.
constexpr int kFarewellTag = 1;

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(int peer, bool receives) : Transfer(peer), receives_(receives) {}
  ~MpiTransfer() override { cancel(); }

  bool cancel() override {
    const auto is_over = [](MPI_Request request) { return request == MPI_REQUEST_NULL; };
    if (std::ranges::all_of(requests_, is_over)) return true;
    if (mpi_is_over()) return true;
    bool over = true;
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      // A message that has been matched still comes; sends cannot be cancelled.
      if (receives_ && !cancelled_) MPI_Cancel(&request);
      int done = 0;
      over = MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done && over;
    }
    cancelled_ = true;
    return over;
  }

  // start(offset, bytes, &request) for each chunk; an empty message is one empty chunk.
  template <class Start>
  void start(std::int64_t bytes, const Start& start) {
    expected_ = bytes;
    for (std::int64_t begin = 0; begin == 0 || begin < bytes; begin += kLongestMessage) {
      start(begin, static_cast<int>(std::min(kLongestMessage, bytes - begin)),
            &requests_.emplace_back());
    }
  }

  bool test() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      int over = 0, count = 0;
      MPI_Status status;
      check_mpi(MPI_Test(&request, &over, &status), "MPI_Test");
      if (!over) return false;
      check_mpi(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
      arrived_ += count;
    }
    if (receives_ && arrived_ != expected_) {
      throw std::runtime_error("recv: expected " + std::to_string(expected_) + " bytes from rank " +
                               std::to_string(peer()) + ", got " + std::to_string(arrived_));
    }
    return true;
  }

 private:
  bool receives_;
  bool cancelled_ = false;
  std::vector<MPI_Request> requests_;
  std::int64_t expected_ = 0;
  std::int64_t arrived_ = 0;
};

// Where each rank's node begins, so that two ranks on one node have the same number.
std::vector<int> first_ranks(MPI_Comm comm, MPI_Comm node) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int first = rank;
  check_mpi(MPI_Bcast(&first, 1, MPI_INT, 0, node), "MPI_Bcast");
  std::vector<int> firsts(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, comm), "MPI_Allgather");
  return firsts;
}

}  // namespace

bool in_forked_process() {
  static const pid_t first = getpid();
  return getpid() != first;
}

bool mpi_is_over() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized || in_forked_process();
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " + std::string(text, length));
}

MpiTransport::MpiTransport(MPI_Comm comm, Boards boards) : boards_(boards) {
  in_forked_process();  // remembers this one
  check_mpi(MPI_Comm_dup(comm, &users_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_dup(comm, &own_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(users_, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(own_, MPI_ERRORS_RETURN);
  received_ = std::make_unique<MatchedReceives>(users_);
  int rank = 0;
  MPI_Comm_rank(own_, &rank);
  check_mpi(MPI_Comm_split_type(own_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node_),
            "MPI_Comm_split_type");
  placement_ = place_on_nodes(rank, first_ranks(own_, node_));
  departed_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(placement_.size));
  const bool several_nodes = placement_.inter_size > 1;
  if (boards == Boards::none || (several_nodes && boards == Boards::one_node)) return;
  if (!placement_.in_rows) return;
  const int place = placement_.intra_rank, size = placement_.intra_size;
  if (auto memory = shared_memory(Board::bytes(size))) {
    board_ = std::make_unique<Board>(memory.get(), place, size, rank - place, memory);
  }
}

MpiTransport::~MpiTransport() {
  // The communicators stay: freeing them is collective, and this rank may be the only one here.
  if (!mpi_is_over()) say_farewell();
}

std::shared_ptr<std::byte> MpiTransport::shared_memory(std::size_t bytes) {
  return renga::shared_memory(node_, bytes);
}

void MpiTransport::say_farewell() {
  if (said_farewell_) return;
  said_farewell_ = true;
  for (int r = 0; r < placement_.size; ++r) {
    if (r == placement_.rank) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_BYTE, r, kFarewellTag, own_, &request) == MPI_SUCCESS) {
      MPI_Request_free(&request);
    }
  }
}

std::unique_ptr<Transfer> MpiTransport::send(const void* data, std::int64_t bytes, int to,
                                             int tag) {
  auto transfer = std::make_unique<MpiTransfer>(to, false);
  transfer->start(bytes, [&](std::int64_t begin, int count, MPI_Request* request) {
    check_mpi(MPI_Isend(static_cast<const std::byte*>(data) + begin, count, MPI_BYTE, to,
                        std::max(tag, 0), comm_for(tag), request),
              "MPI_Isend");
  });
  return transfer;
}

std::unique_ptr<Transfer> MpiTransport::receive(void* data, std::int64_t bytes, int from, int tag) {
  if (tag != kCollectiveTag) return received_->start(data, bytes, from, tag);
  auto transfer = std::make_unique<MpiTransfer>(from, true);
  transfer->start(bytes, [&](std::int64_t begin, int count, MPI_Request* request) {
    check_mpi(
        MPI_Irecv(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, from, 0, own_, request),
        "MPI_Irecv");
  });
  return transfer;
}

std::shared_ptr<Transport> MpiTransport::split(const std::vector<int>& members) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(own_, &all), "MPI_Comm_group");
  const int size = static_cast<int>(members.size());
  check_mpi(MPI_Group_incl(all, size, members.data(), &some), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(own_, some, 0, &comm), "MPI_Comm_create_group");
  MPI_Group_free(&all);
  MPI_Group_free(&some);
  auto transport = std::make_shared<MpiTransport>(comm, boards_);
  MPI_Comm_free(&comm);
  return transport;
}

void MpiTransport::progress() {
  received_->advance();
  int found = 0;
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;  // no other thread receives it
  MPI_Improbe(MPI_ANY_SOURCE, kFarewellTag, own_, &found, &message, &status);
  if (!found) return;
  MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  departed_[static_cast<std::size_t>(status.MPI_SOURCE)] = true;
}

int MpiTransport::max_tag() const {
  int* greatest = nullptr;
  int found = 0;
  MPI_Comm_get_attr(users_, MPI_TAG_UB, &greatest, &found);
  return found ? *greatest : 32767;  // the least that MPI allows
}

bool MpiTransport::concurrent() const {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

void MpiTransport::abort(int code) {
  if (in_forked_process()) _exit(code);
  MPI_Abort(MPI_COMM_WORLD, code);
}

}  // namespace renga
