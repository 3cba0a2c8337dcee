#include "transport/mpi/mpi_transport.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>

#include "transport/mpi/map_shared_memory.h"

namespace renga {

namespace {

// Messages with this tag go on the collectives' MPI_Comm.
constexpr int kMessageTag = 0;
static_assert(kMessageTag != kShutdownTag);

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(int peer, bool is_receive, std::shared_ptr<MpiCommunicators> communicators)
      : Transfer(peer), is_receive_(is_receive), communicators_(std::move(communicators)) {}
  ~MpiTransfer() override { cancel(); }

  bool cancel() override {
    const auto is_null = [](MPI_Request request) { return request == MPI_REQUEST_NULL; };
    if (std::ranges::all_of(requests_, is_null)) return true;
    if (mpi_is_finalized()) return true;
    bool all_done = true;
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      // Sends cannot be cancelled, nor a receive that has been matched.
      if (is_receive_ && !cancelled_) MPI_Cancel(&request);
      int done = 0;
      all_done = MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done && all_done;
    }
    cancelled_ = true;
    return all_done;
  }

  // start(offset, bytes, &request) for each chunk; an empty message is one empty chunk.
  template <class Start>
  void start(std::int64_t bytes, const Start& start) {
    expected_ = bytes;
    for (std::int64_t begin = 0; begin == 0 || begin < bytes; begin += kMaxMessageBytes) {
      start(begin, static_cast<int>(std::min(kMaxMessageBytes, bytes - begin)),
            &requests_.emplace_back());
      if (!is_receive_) ++communicators_->unreceived;
    }
  }

  bool test() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      int done = 0, count = 0;
      MPI_Status status;
      check_mpi(MPI_Test(&request, &done, &status), "MPI_Test");
      if (!done) return false;
      check_mpi(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
      received_ += count;
      if (is_receive_) --communicators_->unreceived;
    }
    if (is_receive_ && received_ != expected_) {
      throw std::runtime_error("recv: expected " + std::to_string(expected_) + " bytes from rank " +
                               std::to_string(peer()) + ", got " + std::to_string(received_));
    }
    return true;
  }

 private:
  bool is_receive_;
  std::shared_ptr<MpiCommunicators> communicators_;
  bool cancelled_ = false;
  std::vector<MPI_Request> requests_;
  std::int64_t expected_ = 0;
  std::int64_t received_ = 0;
};

// The first rank of each rank's node: it identifies the node.
std::vector<int> first_ranks_of_nodes(MPI_Comm comm, MPI_Comm node) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int first = rank;
  check_mpi(MPI_Bcast(&first, 1, MPI_INT, 0, node), "MPI_Bcast");
  std::vector<int> firsts(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, comm), "MPI_Allgather");
  return firsts;
}

// All communicators share this thread: each call of MPI lets the messages of all of them advance.
class CommonProgressThread {
 public:
  std::shared_ptr<ProgressThread> get() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<ProgressThread> thread = current_.lock();
    if (thread == nullptr) current_ = thread = std::make_shared<ProgressThread>();
    return thread;
  }

  std::shared_ptr<ProgressThread> current() {
    const std::lock_guard lock(mutex_);
    return current_.lock();
  }

 private:
  std::mutex mutex_;
  std::weak_ptr<ProgressThread> current_;
};

CommonProgressThread& common_progress_thread() {
  static CommonProgressThread thread;
  return thread;
}

}  // namespace

void stop_progress_thread() {
  if (const auto thread = common_progress_thread().current()) thread->stop();
}

bool in_forked_process() {
  static const pid_t first = getpid();
  return getpid() != first;
}

bool mpi_is_finalized() {
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

MpiTransport::MpiTransport(MPI_Comm comm, bool shares_memory) : shares_memory_(shares_memory) {
  in_forked_process();  // records the process that called first
  comms_ = std::make_shared<MpiCommunicators>(comm);
  receives_ = std::make_unique<MatchedReceives>(comms_);
  if (concurrent()) progress_thread_ = common_progress_thread().get();
  int rank = 0;
  MPI_Comm_rank(comms_->collective, &rank);
  topology_ = topology_of(rank, first_ranks_of_nodes(comms_->collective, comms_->node));
  if (shares_memory && topology_.inter_size == 1) {
    peers_ = readable_peers(comms_->node);
  }
}

MpiTransport::~MpiTransport() {
  if (in_forked_process()) {
    // The thread does not exist here, and may have been changing the receives.
    static_cast<void>(receives_.release());
    static_cast<void>(new std::shared_ptr(std::move(progress_thread_)));
  }
  if (!mpi_is_finalized()) send_shutdown_notice();
  comms_->is_unused = true;
}

std::shared_ptr<std::byte> MpiTransport::allocate_shared(std::size_t bytes) {
  if (!shares_memory_) return nullptr;
  std::shared_ptr<std::byte> memory = map_shared_memory(comms_->node, bytes);
  // Every node has it or none: ranks of different nodes have to take the same path.
  int mapped = memory != nullptr;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_MIN, comms_->collective),
            "MPI_Allreduce");
  return mapped ? memory : nullptr;
}

void MpiTransport::send_shutdown_notice() {
  if (shutdown_notice_sent_) return;
  shutdown_notice_sent_ = true;
  for (int r = 0; r < topology_.size; ++r) {
    if (r == topology_.rank) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_BYTE, r, kShutdownTag, comms_->collective, &request) ==
        MPI_SUCCESS) {
      MPI_Request_free(&request);
    }
  }
}

std::unique_ptr<Transfer> MpiTransport::start_send(const void* data, std::int64_t bytes, int to,
                                                   int tag) {
  auto transfer = std::make_unique<MpiTransfer>(to, false, comms_);
  transfer->start(bytes, [&](std::int64_t begin, int count, MPI_Request* request) {
    check_mpi(MPI_Isend(static_cast<const std::byte*>(data) + begin, count, MPI_BYTE, to,
                        tag == kCollectiveTag ? kMessageTag : tag, comm_for(tag), request),
              "MPI_Isend");
  });
  return transfer;
}

std::unique_ptr<Transfer> MpiTransport::start_receive(void* data, std::int64_t bytes, int from,
                                                      int tag, Accepts accepts) {
  if (tag != kCollectiveTag) {
    return receives_->start(data, bytes, from, tag, std::move(accepts));
  }
  auto transfer = std::make_unique<MpiTransfer>(from, true, comms_);
  transfer->start(bytes, [&](std::int64_t begin, int count, MPI_Request* request) {
    check_mpi(MPI_Irecv(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, from, kMessageTag,
                        comms_->collective, request),
              "MPI_Irecv");
  });
  return transfer;
}

std::shared_ptr<Transport> MpiTransport::split(const std::vector<int>& members) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(comms_->collective, &all), "MPI_Comm_group");
  const int size = static_cast<int>(members.size());
  check_mpi(MPI_Group_incl(all, size, members.data(), &some), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(comms_->collective, some, 0, &comm), "MPI_Comm_create_group");
  MPI_Group_free(&all);
  MPI_Group_free(&some);
  auto transport = std::make_shared<MpiTransport>(comm, shares_memory_);
  MPI_Comm_free(&comm);
  comms_->splits.add(transport->comms_, members);
  return transport;
}

void MpiTransport::progress() {
  receives_->progress();
  int found = 0;
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;  // a matched probe: no other thread receives it
  MPI_Improbe(MPI_ANY_SOURCE, kShutdownTag, comms_->collective, &found, &message, &status);
  if (!found) return;
  MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  comms_->shut_down[static_cast<std::size_t>(status.MPI_SOURCE)] = true;
}

int MpiTransport::max_tag() const {
  int* greatest = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comms_->user, MPI_TAG_UB, &greatest, &found);
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
