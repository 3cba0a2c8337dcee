"""The loss scale of gradients: hooks run before they are divided by it."""

from __future__ import annotations

from renga.core.parameter import Parameter


def scale_of(param: Parameter) -> float:
    """The loss scale by which the gradient of ``param`` is multiplied."""
    return 1.0 if param.loss_scale is None else param.loss_scale
