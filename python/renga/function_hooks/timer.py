"""Times of functions."""

from __future__ import annotations

from renga.core.function_hook import Arrays, FunctionHook
from renga.core.operations import operation_name
from renga.core.types import CalledFunction
from renga.function_hooks.call_times import CallTimes


class TimerHook(CallTimes, FunctionHook):
    """Measures the time of functions, forward and backward.

    ``call_history`` lists each call's name and seconds, including nested functions.
    Functions on CUDA devices are timed there, by events that are waited for when it
    is read.
    """

    name = "TimerHook"

    def deleted(self, function: CalledFunction | None) -> None:
        if function is None:
            self._running.clear()

    def forward_preprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        self._start(function, in_data)

    def backward_preprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        self._start(function, (*in_data, *out_grad))

    def forward_postprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        self._stop(function, operation_name(function))

    def backward_postprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        self._stop(function, operation_name(function))
