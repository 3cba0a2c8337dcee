// A thread that spins executes this in between.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace renga {

inline void pause_spinning() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace renga
