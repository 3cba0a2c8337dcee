// Marks functions that kernels share with the host. On the host, those marked RENGA_INLINE are
// compiled for the target of their caller.
#pragma once

#ifdef __CUDACC__
#define RENGA_HOST_DEVICE __host__ __device__
#define RENGA_INLINE __host__ __device__ __forceinline__
#else
#define RENGA_HOST_DEVICE
#define RENGA_INLINE [[gnu::always_inline]] inline
#endif
