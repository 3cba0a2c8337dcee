"""CupyMemoryProfileHook, which does not apply to renga's allocator on GPUs."""

from __future__ import annotations

from renga.core.function_hook import FunctionHook


class CupyMemoryProfileHook(FunctionHook):
    """Not available: memory on GPUs comes from renga's own allocator.

    ``renga.profiler`` reports the memory traffic of each function. The constructor
    raises RuntimeError.
    """

    name = "CupyMemoryProfileHook"

    def __init__(self) -> None:
        raise RuntimeError(
            "CupyMemoryProfileHook: not available, because memory on GPUs is not "
            "CuPy's; use renga.profiler()"
        )
