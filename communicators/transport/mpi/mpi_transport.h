// Ranks that are processes of one MPI job.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <vector>

#include "transport/mpi/communicators.h"
#include "transport/mpi/matched_receives.h"
#include "transport/mpi/peer_memory.h"
#include "transport/progress_thread.h"
#include "transport/transport.h"

namespace renga {

// MPI counts are int, so a message is sent in chunks of at most this many bytes.
inline constexpr std::int64_t kMaxMessageBytes = std::int64_t{1} << 30;

class MpiTransport final : public Transport {
 public:
  // Duplicates `comm`, all of whose ranks call this. With `shares_memory`, the ranks of each node
  // share memory.
  MpiTransport(MPI_Comm comm, bool shares_memory);
  ~MpiTransport() override;

  const std::shared_ptr<MpiCommunicators>& communicators() const { return comms_; }
  // For a user, who may keep it: it is never freed.
  MPI_Comm lent_comm() const {
    comms_->is_lent = true;
    return comms_->user;
  }

  const Topology& topology() const override { return topology_; }
  void free_unused_splits() override { comms_->splits.free_unused(comms_->collective); }
  std::shared_ptr<Transport> split(const std::vector<int>& members) override;
  std::shared_ptr<std::byte> allocate_shared(std::size_t bytes) override;
  bool can_read_peers() const override { return !peers_.empty(); }
  void read_peer(int rank, const std::byte* from, std::byte* to, std::int64_t bytes) override {
    read_memory(peers_[static_cast<std::size_t>(rank)], from, to, bytes);
  }
  std::optional<Envelope> probe(std::optional<int> from, std::optional<int> tag) override {
    return receives_->probe(from, tag);
  }
  void progress() override;
  int max_tag() const override;
  bool concurrent() const override;
  ProgressThread* progress_thread() const override { return progress_thread_.get(); }
  bool has_shut_down(int rank) const override {
    return comms_->shut_down[static_cast<std::size_t>(rank)];
  }
  void abort(int code) override;

  // Tells the other ranks that this one exits and sends nothing more: a peer that waits for it
  // fails at once instead of timing out. Only the first call sends it.
  void send_shutdown_notice();

 private:
  std::unique_ptr<Transfer> start_send(const void* data, std::int64_t bytes, int to,
                                       int tag) override;
  std::unique_ptr<Transfer> start_receive(void* data, std::int64_t bytes, int from, int tag,
                                          Accepts accepts) override;
  MPI_Comm comm_for(int tag) const {
    return tag == kCollectiveTag ? comms_->collective : comms_->user;
  }

  bool shares_memory_;
  std::shared_ptr<MpiCommunicators> comms_;
  std::unique_ptr<MatchedReceives> receives_;
  std::shared_ptr<ProgressThread> progress_thread_;  // of all transports of this process
  Topology topology_;
  std::vector<pid_t> peers_;  // of one node, by rank; none if they are not readable
  bool shutdown_notice_sent_ = false;
};

// This is called before MPI is finalized.
void stop_progress_thread();

// Whether this process was forked from a rank: MPI must not be called in it.
bool in_forked_process();

// Whether MPI must not be called any more: it is finalized, or this process is forked.
bool mpi_is_finalized();

// Throws std::runtime_error with MPI's error text unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace renga
