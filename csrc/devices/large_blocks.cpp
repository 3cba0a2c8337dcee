#include "devices/large_blocks.h"

#include <algorithm>
#include <iterator>

namespace renga {

// Adds a free block to the index by size.
void LargeBlocks::insert_free(Blocks::iterator block) {
  const auto& [at, info] = *block;
  free_of(info.state).emplace(info.bytes, at);
  if (info.state == State::cached) cached_ += info.bytes;
}

void LargeBlocks::remove_free(Blocks::iterator block) {
  const auto& [at, info] = *block;
  free_of(info.state).erase({info.bytes, at});
  if (info.state == State::cached) cached_ -= info.bytes;
}

// Merges the next block into this one if both are in the same state; neither is in the index after.
bool LargeBlocks::merge_next(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end() || next->second.starts_segment ||
      next->second.state != block->second.state) {
    return false;
  }
  remove_free(next);
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
  return true;
}

// Marks a block as free, merges it with its neighbours and adds it to the index.
LargeBlocks::Blocks::iterator LargeBlocks::mark_free(Blocks::iterator block, State state) {
  block->second.state = state;
  merge_next(block);
  if (!block->second.starts_segment && std::prev(block)->second.state == state) {
    const auto before = std::prev(block);
    remove_free(before);
    before->second.bytes += block->second.bytes;
    blocks_.erase(block);
    block = before;
  }
  insert_free(block);
  return block;
}

// Allocates the first `bytes` of a free block that is not in the index; the rest stays free.
void* LargeBlocks::split(Blocks::iterator block, std::size_t bytes) {
  auto& [at, info] = *block;
  if (info.bytes > bytes) {
    const Block rest{info.bytes - bytes, info.state, false};
    insert_free(blocks_.emplace_hint(std::next(block), at + bytes, rest));
    info.bytes = bytes;
  }
  info.state = State::allocated;
  return at;
}

// Extends the largest cached block that is followed by enough fresh memory.
void* LargeBlocks::extend_into_fresh(std::size_t bytes) {
  for (auto size = cached_blocks_.rbegin(); size != cached_blocks_.rend(); ++size) {
    const auto block = blocks_.find(size->second), next = std::next(block);
    if (next == blocks_.end() || next->second.starts_segment ||
        next->second.state != State::fresh || block->second.bytes + next->second.bytes < bytes) {
      continue;
    }
    remove_free(block);
    block->second.state = State::fresh;
    merge_next(block);
    return split(block, bytes);
  }
  return nullptr;
}

bool LargeBlocks::add_segment(std::size_t bytes) {
  Driver& driver = driver_of(device_);
  std::size_t segment = std::max(bytes, kSegment);
  void* memory = driver.reserve(segment, device_.index);
  if (memory == nullptr && segment > bytes) {
    segment = bytes;
    memory = driver.reserve(segment, device_.index);
  }
  if (memory == nullptr) return false;
  const auto at = static_cast<std::byte*>(memory);
  insert_free(blocks_.emplace(at, Block{segment, State::fresh, true}).first);
  return true;
}

LargeBlocks::Allocation LargeBlocks::allocate(std::size_t requested) {
  const std::size_t bytes = rounded(requested);
  const auto smallest = [&](Sizes& sizes) { return sizes.lower_bound({bytes, nullptr}); };
  if (const auto size = smallest(cached_blocks_); size != cached_blocks_.end()) {
    const auto block = blocks_.find(size->second);
    remove_free(block);
    return {split(block, bytes), true};
  }
  if (void* block = extend_into_fresh(bytes)) return {block, false};
  if (smallest(fresh_blocks_) == fresh_blocks_.end() && !add_segment(bytes))
    return {nullptr, false};
  const auto block = blocks_.find(smallest(fresh_blocks_)->second);
  remove_free(block);
  return {split(block, bytes), false};
}

void LargeBlocks::free(void* block) {
  mark_free(blocks_.find(static_cast<std::byte*>(block)), State::cached);
}

// Returns the blocks [first, end), none of which is allocated, to the system.
LargeBlocks::Blocks::iterator LargeBlocks::release_segment(Blocks::iterator first,
                                                           Blocks::iterator end) {
  std::byte* const at = first->first;
  std::size_t bytes = 0;
  for (auto block = first; block != end; block = blocks_.erase(block)) {
    remove_free(block);
    bytes += block->second.bytes;
  }
  driver_of(device_).release(at, bytes, device_.index);
  return end;
}

void LargeBlocks::release_cached() {
  Driver& driver = driver_of(device_);
  for (auto first = blocks_.begin(); first != blocks_.end();) {
    const auto end = std::find_if(std::next(first), blocks_.end(),
                                  [](const auto& b) { return b.second.starts_segment; });
    const bool in_use =
        std::any_of(first, end, [](const auto& b) { return b.second.state == State::allocated; });
    if (!in_use) {
      first = release_segment(first, end);
      continue;
    }
    for (auto block = first; block != end; ++block) {
      if (block->second.state != State::cached) continue;
      if (!driver.forget(block->first, block->second.bytes, device_.index)) continue;
      remove_free(block);
      block = mark_free(block, State::fresh);
    }
    first = end;
  }
}

}  // namespace renga
