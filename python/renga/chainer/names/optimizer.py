"""The optimizer hooks under their names of Chainer 3, which warn."""

from __future__ import annotations

import warnings
from typing import Any

from renga import optimizer_hooks


def make_deprecation_message(module_name: str) -> str:
    """What the hook ``module_name`` warns of."""
    return f"optimizer.{module_name} is deprecated: use optimizer_hooks.{module_name}"


def _deprecated(hook: Any) -> Any:
    name = hook.__name__

    def __init__(self: Any, *args: object, **kwargs: object) -> None:
        message = make_deprecation_message(name)
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        hook.__init__(self, *args, **kwargs)

    return type(name, (hook,), {"__init__": __init__, "__doc__": hook.__doc__})


GradientClipping = _deprecated(optimizer_hooks.GradientClipping)
GradientHardClipping = _deprecated(optimizer_hooks.GradientHardClipping)
GradientNoise = _deprecated(optimizer_hooks.GradientNoise)
Lasso = _deprecated(optimizer_hooks.Lasso)
WeightDecay = _deprecated(optimizer_hooks.WeightDecay)
