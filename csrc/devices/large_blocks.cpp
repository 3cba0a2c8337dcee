#include "devices/large_blocks.h"

#include <algorithm>
#include <iterator>

namespace renga {

// Makes a block that is free findable by its size.
void LargeBlocks::enter(Blocks::iterator block) {
  const auto& [at, what] = *block;
  free_of(what.state).emplace(what.bytes, at);
  if (what.state == State::used) cached_ += what.bytes;
}

void LargeBlocks::leave(Blocks::iterator block) {
  const auto& [at, what] = *block;
  free_of(what.state).erase({what.bytes, at});
  if (what.state == State::used) cached_ -= what.bytes;
}

// Lets the next block become a part of this one, if it is of the same kind. Neither is entered.
bool LargeBlocks::join_next(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end() || next->second.starts_segment ||
      next->second.state != block->second.state) {
    return false;
  }
  leave(next);
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
  return true;
}

// Frees a block that is not entered, and joins it with its neighbours.
LargeBlocks::Blocks::iterator LargeBlocks::free_up(Blocks::iterator block, State state) {
  block->second.state = state;
  join_next(block);
  if (!block->second.starts_segment && std::prev(block)->second.state == state) {
    const auto before = std::prev(block);
    leave(before);
    before->second.bytes += block->second.bytes;
    blocks_.erase(block);
    block = before;
  }
  enter(block);
  return block;
}

// The first `bytes` of a free block that is not entered; the rest stays free.
void* LargeBlocks::cut(Blocks::iterator block, std::size_t bytes) {
  auto& [at, what] = *block;
  if (what.bytes > bytes) {
    const Block rest{what.bytes - bytes, what.state, false};
    enter(blocks_.emplace_hint(std::next(block), at + bytes, rest));
    what.bytes = bytes;
  }
  what.state = State::taken;
  return at;
}

// The largest used block that fresh memory follows in which the request fits together with it.
void* LargeBlocks::extend_into_fresh(std::size_t bytes) {
  for (auto size = used_.rbegin(); size != used_.rend(); ++size) {
    const auto block = blocks_.find(size->second), next = std::next(block);
    if (next == blocks_.end() || next->second.starts_segment ||
        next->second.state != State::fresh || block->second.bytes + next->second.bytes < bytes) {
      continue;
    }
    leave(block);
    block->second.state = State::fresh;
    join_next(block);
    return cut(block, bytes);
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
  enter(blocks_.emplace(at, Block{segment, State::fresh, true}).first);
  return true;
}

LargeBlocks::Taken LargeBlocks::take(std::size_t asked) {
  const std::size_t bytes = rounded(asked);
  const auto smallest = [&](Sizes& sizes) { return sizes.lower_bound({bytes, nullptr}); };
  if (const auto size = smallest(used_); size != used_.end()) {
    const auto block = blocks_.find(size->second);
    leave(block);
    return {cut(block, bytes), true};
  }
  if (void* block = extend_into_fresh(bytes)) return {block, false};
  if (smallest(fresh_) == fresh_.end() && !add_segment(bytes)) return {nullptr, false};
  const auto block = blocks_.find(smallest(fresh_)->second);
  leave(block);
  return {cut(block, bytes), false};
}

void LargeBlocks::give(void* block) {
  free_up(blocks_.find(static_cast<std::byte*>(block)), State::used);
}

// Gives the blocks [first, end), of which none is taken, back to the system.
LargeBlocks::Blocks::iterator LargeBlocks::release_segment(Blocks::iterator first,
                                                           Blocks::iterator end) {
  std::byte* const at = first->first;
  std::size_t bytes = 0;
  for (auto block = first; block != end; block = blocks_.erase(block)) {
    leave(block);
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
        std::any_of(first, end, [](const auto& b) { return b.second.state == State::taken; });
    if (!in_use) {
      first = release_segment(first, end);
      continue;
    }
    for (auto block = first; block != end; ++block) {
      if (block->second.state != State::used) continue;
      if (!driver.forget(block->first, block->second.bytes, device_.index)) continue;
      leave(block);
      block = free_up(block, State::fresh);
    }
    first = end;
  }
}

}  // namespace renga
