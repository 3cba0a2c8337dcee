#include "mpi/mpi_transport.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "mpi/shared_memory.h"

namespace renga {

namespace {

// MPI counts in int; so one message may be several of at most this many bytes.
constexpr std::int64_t kChunk = std::int64_t{1} << 30;

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(int peer, bool receives) : Transfer(peer), receives_(receives) {}
  ~MpiTransfer() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      // A receive that nobody waits for must not write into memory that others will use.
      if (receives_) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }

  // start(offset, bytes, &request) for each chunk; an empty message is one empty chunk.
  template <class Start>
  void start(std::int64_t bytes, const Start& start) {
    expected_ = bytes;
    for (std::int64_t begin = 0; begin == 0 || begin < bytes; begin += kChunk) {
      start(begin, static_cast<int>(std::min(kChunk, bytes - begin)), &requests_.emplace_back());
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
  std::vector<MPI_Request> requests_;
  std::int64_t expected_ = 0;
  std::int64_t arrived_ = 0;
};

// The node's number, counted in the order of the nodes' first ranks, and how many nodes there are.
void place_nodes(MPI_Comm comm, MPI_Comm node, Placement& placement) {
  int first = placement.rank;
  check_mpi(MPI_Bcast(&first, 1, MPI_INT, 0, node), "MPI_Bcast");
  std::vector<int> firsts(placement.size);
  check_mpi(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, comm), "MPI_Allgather");
  std::ranges::sort(firsts);
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  placement.inter_rank = static_cast<int>(std::ranges::find(firsts, first) - firsts.begin());
  placement.inter_size = static_cast<int>(firsts.size());
}

Placement place(MPI_Comm comm) {
  Placement placement;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_rank(comm, &placement.rank);
  MPI_Comm_size(comm, &placement.size);
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, placement.rank, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  MPI_Comm_rank(node, &placement.intra_rank);
  MPI_Comm_size(node, &placement.intra_size);
  place_nodes(comm, node, placement);
  MPI_Comm_free(&node);
  return placement;
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " + std::string(text, length));
}

MpiTransport::MpiTransport(MPI_Comm comm, bool with_board) : with_board_(with_board) {
  check_mpi(MPI_Comm_dup(comm, &users_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_dup(comm, &own_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(users_, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(own_, MPI_ERRORS_RETURN);
  placement_ = place(own_);
  if (!with_board || placement_.inter_size > 1) return;
  const int size = placement_.size;
  if (auto memory = shared_memory(own_, Board::bytes(size))) {
    board_ = std::make_unique<Board>(memory.get(), placement_.rank, size, memory);
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
  auto transfer = std::make_unique<MpiTransfer>(from, true);
  transfer->start(bytes, [&](std::int64_t begin, int count, MPI_Request* request) {
    check_mpi(MPI_Irecv(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, from,
                        std::max(tag, 0), comm_for(tag), request),
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
  auto transport = std::make_shared<MpiTransport>(comm, with_board_);
  MPI_Comm_free(&comm);
  return transport;
}

void MpiTransport::progress() {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, own_, &found, MPI_STATUS_IGNORE);
}

bool MpiTransport::concurrent() const {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

void MpiTransport::abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

}  // namespace renga
