#include "data_parallel/sharded_update.h"

#include <span>

#include "collectives/partition.h"
#include "collectives/reduce.h"
#include "tensor/streaming.cpu.h"

namespace renga {

namespace {

// This much of each array is averaged, updated and written before the next part: it stays in the
// cache.
constexpr std::int64_t kBlockBytes = std::int64_t{1} << 16;

// The arrays of an update: gradient, parameter, states.
std::vector<Array> arrays_of(const Update& update) {
  std::vector<Array> arrays{update.g.array, update.x};
  arrays.insert(arrays.end(), update.states.begin(), update.states.end());
  return arrays;
}

// A range of bytes of a contiguous array.
Array byte_range(const Array& x, std::int64_t begin, std::int64_t length) {
  return {x.storage(), x.data() + begin, Shape{length / x.itemsize()}, Strides{x.itemsize()},
          x.dtype()};
}

void update_block(const Update& update, const std::vector<Array>& arrays,
                  std::span<const PeerPointers> peers, int local_rank, std::int64_t begin,
                  std::int64_t length) {
  std::vector<Array> blocks;
  for (const Array& x : arrays) blocks.push_back(byte_range(x, begin, length));
  const Array &g = blocks[0], &x = blocks[1];
  PeerPointers grads = peers[0];
  for (std::byte*& grad : grads) grad += begin;
  reduce(ReduceOp::mean, g.dtype(), Operands(grads), g.data(), g.size());
  update.apply(x, {g, update.g.scale, update.g.decay}, blocks.data() + 2);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t r = 0; r < peers[i].size(); ++r) {
      // Past the caches: the other ranks read it only after the barrier.
      if (static_cast<int>(r) != local_rank) stream(blocks[i].data(), peers[i][r] + begin, length);
    }
  }
}

// peers[i] are the pointers of the i-th array of all updates.
void run_updates(const CollectiveContext& context, SharedSegment& segment,
                 const std::vector<Update>& updates, const std::vector<PeerPointers>& peers) {
  const int local_rank = segment.local_rank(), ranks = segment.ranks();
  segment.barrier(context);  // all gradients are complete
  std::size_t first = 0;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const std::vector<Array> arrays = arrays_of(updates[i]);
    // An array of one cache line has one partition; which rank updates it rotates.
    const int rank = (local_rank + static_cast<int>(i)) % ranks;
    const Interval own = partition(arrays[0].size() * arrays[0].itemsize(), rank, ranks);
    for_each_chunk(own.length(), kBlockBytes, [&](std::int64_t begin, std::int64_t length) {
      update_block(updates[i], arrays, std::span(peers).subspan(first, arrays.size()), local_rank,
                   own.begin + begin, length);
    });
    first += arrays.size();
  }
  finish_streaming();
  segment.barrier(context);  // all results are written
}

}  // namespace

void sharded_update(Communicator& comm, const std::vector<Update>& updates,
                    const LaunchOptions& options) {
  std::vector<Array> arrays;
  for (const Update& update : updates) {
    const std::vector<Array> of_update = arrays_of(update);
    arrays.insert(arrays.end(), of_update.begin(), of_update.end());
  }
  const Windows::Found found = comm.find_windows(arrays);
  SharedSegment* const segment = comm.segment();
  require<std::invalid_argument>(!found.peers.empty() && segment != nullptr,
                                 "sharded_update: expected arrays in windows of one node's ranks");
  const Call call = Call("update").with(arrays, arrays[0].dtype()).in_windows(found.layout);
  comm.launch(call, options, [=](const CollectiveContext& context) {
    run_updates(context, *segment, updates, found.peers);
  });
}

}  // namespace renga
