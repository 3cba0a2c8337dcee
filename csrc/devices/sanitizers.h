// Builds for a sanitizer (make asan, make tsan) take each block from the system and give it back at
// once, for a block that is kept and handed out again hides what is done to it in between.
#pragma once

namespace renga {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kReusesBlocks = false;
#else
inline constexpr bool kReusesBlocks = true;
#endif

}  // namespace renga
