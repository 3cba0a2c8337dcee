"""Function hooks that time functions, or print their arrays."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.function_hooks import (
    cuda_profile as cuda_profile,
    cupy_memory_profile as cupy_memory_profile,
)
from renga.function_hooks.cuda_profile import CUDAProfileHook as CUDAProfileHook
from renga.function_hooks.cupy_memory_profile import (
    CupyMemoryProfileHook as CupyMemoryProfileHook,
)
from renga.function_hooks.debug_print import PrintHook as PrintHook
from renga.function_hooks.timer import TimerHook as TimerHook

_suggest_names(__name__)
