// Blocks for tests (tools/sanitize guards). A block ends at a page that nothing may access, so an
// access beyond it ends the process, also one by instructions that no sanitizer sees.
#pragma once

#include <cstddef>

namespace renga {

// A block of at least `bytes`, aligned to 64, or nullptr. All its bytes are 255: floats of every
// size are NaN until they are written.
void* take_guarded_block(std::size_t bytes);
// Ends the process if bytes of the block's own pages beside it were written.
void release_guarded_block(void* block, std::size_t bytes) noexcept;

}  // namespace renga
