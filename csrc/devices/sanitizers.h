// Builds for a sanitizer (tools/sanitize) do not cache blocks of memory: reuse would hide
// accesses to a block after it was freed.
#pragma once

namespace renga {

#ifdef RENGA_GUARDS
inline constexpr bool kGuardsBlocks = true;
#else
inline constexpr bool kGuardsBlocks = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(RENGA_GUARDS)
inline constexpr bool kReusesBlocks = false;
#else
inline constexpr bool kReusesBlocks = true;
#endif

}  // namespace renga
