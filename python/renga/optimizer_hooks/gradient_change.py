"""What hooks do to gradients as a part of updates, and the loss scale of gradients."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from renga.core.parameter import Parameter


class GradientChange(NamedTuple):
    """Makes a gradient ``scale * grad + decay * param``.

    Attributes:
        otherwise: does the same to a parameter whose update cannot.
    """

    otherwise: Callable[[Any], None]
    scale: float = 1.0
    decay: float = 0.0

    def __call__(self, param: Parameter) -> None:
        """Has the next update of a parameter do it, or does it."""
        rule = param.update_rule
        if rule is None or not rule.fuse(param, self.scale, self.decay):
            self.otherwise(param)


def scale_of(param: Parameter) -> float:
    """The loss scale by which the gradient of ``param`` is multiplied."""
    return 1.0 if param.loss_scale is None else param.loss_scale
