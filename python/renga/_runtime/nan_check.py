"""Debug mode: reports the first function that computes NaN."""

from __future__ import annotations

import threading
from typing import Any

import numpy

from renga import _core
from renga._core import Variable
from renga.backends import cuda
from renga.core.configuration import Settings, global_config
from renga.core.function_hook import Arrays, FunctionHook, get_function_hooks
from renga.core.types import CalledFunction


def has_nan(x: object) -> bool:
    """Whether ``x`` is a float array that contains NaN."""
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    return kind == "f" and bool(numpy.isnan(cuda.to_cpu(x)).any())


class NanCheck(FunctionHook):
    """Raises RuntimeError where a function of the core returns or receives NaN.

    Functions in Python check their outputs themselves.
    """

    name = "NanCheck"
    number = -1

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def forward_postprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        # A function in Python may have an attribute of that name.
        results = function.results if isinstance(function, _core.Call) else ()
        if any(has_nan(y.array) for y in results):
            raise RuntimeError(
                f"{function.label}: NaN in what it computed forward (debug mode)"
            )

    def backward_preprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        if any(has_nan(gy) for gy in out_grad):
            raise RuntimeError(
                f"{function.label}: NaN in the gradient of what it computed (debug "
                "mode); a function after it is to blame"
            )

    def leaf_is_ready(self, leaf: Variable) -> None:
        """Called with a leaf whose gradient is complete, in any thread."""
        if threading.get_ident() == self.thread and has_nan(leaf.grad):
            raise RuntimeError(
                f"backward: NaN in the gradient of {leaf.summary()} (debug mode)"
            )


def _follow_debug(value: Any, core: Any) -> None:
    """Turns the check on or off in this thread."""
    on = global_config.debug if value is None else value
    hooks = get_function_hooks()
    if on and NanCheck.name not in hooks:
        added = NanCheck()
        added.number = _core.add_gradient_ready_hook(added.leaf_is_ready)
        hooks[NanCheck.name] = added
        _core.set_function_hooks(hooks)
    elif not on and NanCheck.name in hooks:
        check = hooks.pop(NanCheck.name)
        assert isinstance(check, NanCheck)
        _core.remove_gradient_ready_hook(check.number)
        if not hooks:
            _core.set_function_hooks(None)


Settings.debug.follow = _follow_debug
