"""CUDAProfileHook: functions as ranges of NVIDIA's profilers."""

from __future__ import annotations

from renga.backends import cuda
from renga.core.function_hook import Arrays, FunctionHook
from renga.core.operations import operation_name
from renga.core.types import CalledFunction


class CUDAProfileHook(FunctionHook):
    """Marks functions as ranges that NVIDIA's profilers show, by CuPy's NVTX.

    A range is called after its function, with ``.forward`` or ``.backward`` behind it.
    The constructor raises RuntimeError without CUDA, CuPy or its NVTX.
    """

    name = "CUDAProfileHook"

    def __init__(self) -> None:
        nvtx = getattr(cuda.cupy_function("cuda"), "nvtx", None)
        if nvtx is None:
            raise RuntimeError("CUDAProfileHook: expected a CuPy with NVTX")
        self._nvtx = nvtx

    def forward_preprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        self._push(function, "forward")

    def forward_postprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        self._nvtx.RangePop()

    def backward_preprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        self._push(function, "backward")

    def backward_postprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        self._nvtx.RangePop()

    def _push(self, function: CalledFunction, direction: str) -> None:
        self._nvtx.RangePush(f"{operation_name(function)}.{direction}")
