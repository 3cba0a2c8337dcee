"""Updates by rules that need whole parameters, of which each rank makes its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from renga.core.optimizer import GradientMethod, Optimizer, UpdateRule
from renga.core.parameter import Parameter

_GATHERING = "gathering of the parameters"  # the name of a hook


def update_own(
    optimizer: Optimizer,
    params: Sequence[Parameter],
    own: Sequence[Parameter],
    gather: Callable[[], None],
) -> None:
    """Updates a rank's own parameters of a model of which it has all mean gradients.

    Hooks see the whole model, as without shards: those after the update, what the
    other ranks have made of it.

    Args:
        optimizer: whose update it is.
        params: all parameters.
        own: those whose rules have states on this rank.
        gather: gets the others from the other ranks.
    """
    waiting = [gather]

    def gather_once(_: GradientMethod | None = None) -> None:
        if waiting:
            waiting.pop()()

    is_own = {id(param) for param in own}
    rules = [(p, p.update_rule) for p in params if id(p) not in is_own]
    post = optimizer.update_hooks("post")
    hooks = dict(post)
    post.clear()
    post.update({_GATHERING: gather_once, **hooks})
    for param, rule in rules:
        param.update_rule = None if rule is None else _elsewhere(rule)
    try:
        optimizer.update(None)
    finally:
        for param, rule in rules:
            param.update_rule = rule
        del post[_GATHERING]
    gather_once()  # an update that is skipped calls no hooks


def _elsewhere(rule: UpdateRule) -> UpdateRule:
    """A rule with the attributes of another one, which another rank applies."""
    cls: Any = type(rule)
    made: UpdateRule = object.__new__(_elsewhere_class(cls))
    made.__dict__ = rule.__dict__
    return made


@functools.cache
def _elsewhere_class(cls: Any) -> Any:
    class Elsewhere(cls):  # type: ignore[misc]
        def update(self, param: Parameter) -> None:
            if not self.enabled:
                return
            self.t += 1
            if not param.is_initialized:
                self._awaits_shape = True
                return
            for _, _, hook in self.timed_hooks():
                if hasattr(hook, "skip"):
                    hook.skip(self, param)

        def fuse(
            self, param: Parameter, scale: float = 1.0, decay: float = 0.0
        ) -> bool:
            return True

    return Elsewhere
