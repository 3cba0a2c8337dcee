"""The loss scale, which hooks meet in gradients that are not yet divided by it."""

from __future__ import annotations

from typing import Any


def scale_of(param: Any) -> float:
    """What the gradient of ``param`` is multiplied by."""
    return 1.0 if param._loss_scale is None else param._loss_scale
