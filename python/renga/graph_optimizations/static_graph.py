"""Decorators of static graphs, which change nothing in what is computed.

On the CPU, recording the graph in every iteration costs less than a microsecond for
each function, in C++. On CUDA devices, calls in training become graphs of CUDA. What
scripts say about their schedules is taken down.
"""

from __future__ import annotations

import functools
from typing import Any

from renga import _core
from renga.core.configuration import config
from renga.graph_optimizations.recorded_calls import RecordedCalls
from renga.utils.containers import leaves


class ScheduleManager:
    """Counts the calls of a chain in training, by the shapes and dtypes of inputs.

    Attributes:
        in_use_count: the calls in this iteration, by mode, shapes and dtypes.
        train_count: the sum of them.
        max_in_use_train: the largest sum of an iteration.
        forward_over: whether the iteration was ended, and the next has not begun.
    """

    def __init__(
        self, minimize_cache_size: bool = True, verbosity_level: int = 0
    ) -> None:
        self.minimize_cache_size = minimize_cache_size
        self.verbosity_level = verbosity_level
        self.in_use_count: dict[str, int] = {}
        self.train_count = 0
        self.max_in_use_train = 0
        self.forward_over = False
        self.prev_train_config: bool | None = None
        self.recorded = RecordedCalls()

    def count(self, inputs: list[Any]) -> None:
        """Takes down a call."""
        self.forward_over = False
        if self.minimize_cache_size and config.train != self.prev_train_config:
            self.prev_train_config = config.train
            self.in_use_count.clear()
        if config.train and _core.backprop_enabled():
            self.train_count += 1
            arrays = [x for x in inputs if hasattr(x, "dtype")]
            key = "train:" + "".join(f"{x.shape}{x.dtype}" for x in arrays)
            self.in_use_count[key] = self.in_use_count.get(key, 0) + 1

    def end_forward(self) -> None:
        """Ends an iteration: the counts begin again."""
        if not self.forward_over:
            self.in_use_count = dict.fromkeys(self.in_use_count, 0)
            self.max_in_use_train = max(self.max_in_use_train, self.train_count)
            self.train_count = 0
            self.forward_over = True


def static_graph(
    *args: object,
    force_test_define_by_run: bool = False,
    minimize_cache_size: bool = False,
    verbosity_level: int = 0,
    enable_double_backprop: bool = False,
) -> Any:
    """Decorator of a chain's method with a static graph.

    On the CPU it runs as it is. On a CUDA device the third call in training, and its
    backward pass, are recorded as graphs of CUDA, and further calls with inputs of the
    same shapes and dtypes launch them: numbers that Python computes are those of the
    recorded call, while random numbers are drawn anew. A call that sets attributes,
    reads numbers on the host or depends on variables other than its inputs and the
    chain's parameters runs as it is; the log tells why. There is no double backprop
    through a recorded call: ``enable_double_backprop`` leaves all as they are.

    The first call gives the chain a ``schedule_manager`` and a ``static_schedule``,
    unless it is a call outside of training and ``force_test_define_by_run`` is set. The
    other options only exist.
    """

    def decorate(method: Any) -> Any:
        @functools.wraps(method)
        def call(self: Any, *inputs: object, **kwargs: object) -> Any:
            if config.use_static_graph and (
                config.train or not force_test_define_by_run
            ):
                if not hasattr(self, "schedule_manager"):
                    self.schedule_manager = ScheduleManager(
                        minimize_cache_size, verbosity_level
                    )
                    self.static_schedule = self.schedule_manager.recorded
                self.schedule_manager.count(list(leaves(inputs)))
                if not (kwargs or enable_double_backprop):
                    return self.schedule_manager.recorded.call(method, self, inputs)
            return method(self, *inputs, **kwargs)

        return call

    return decorate(args[0]) if args and callable(args[0]) else decorate


def static_code(*dec_args: object, **dec_kwargs: object) -> Any:
    """Decorator of code rerun by static graphs: returns the code unchanged."""
    if len(dec_args) == 1 and callable(dec_args[0]) and not dec_kwargs:
        return dec_args[0]
    return lambda code: code
