// Builds for a sanitizer (tools/sanitize) do not cache blocks of memory: reuse would hide
// accesses to a block after it was freed.
#pragma once

namespace renga {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kReusesBlocks = false;
#else
inline constexpr bool kReusesBlocks = true;
#endif

}  // namespace renga
