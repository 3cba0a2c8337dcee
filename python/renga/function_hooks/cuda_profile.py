"""CUDAProfileHook, which needs CuPy."""

from __future__ import annotations

from renga.backends import cuda
from renga.function_hook import FunctionHook


class CUDAProfileHook(FunctionHook):
    """Not available: it marks functions by CuPy. ``renga.profiler`` times them.

    The constructor raises RuntimeError.
    """

    name = "CUDAProfileHook"

    def __init__(self) -> None:
        cuda.check_cuda_available()
