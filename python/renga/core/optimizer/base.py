"""Optimizer: owns the target link, the counts of updates and epochs, and the hooks."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, TypeVar

from renga.core.link import Link
from renga.core.link.parallel_models import number_of_parallel_models, require_own_parts
from renga.core.optimizer.hooks import Hookable, call_for_param, knows_shards
from renga.core.optimizer.loss_scaling import LossScaling
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.utils.argument import check_choice

_Self = TypeVar("_Self", bound="Optimizer")


def check_optimizer(function: str, optimizer: object, argument: str = "") -> None:
    """Raises TypeError unless it is an optimizer, given as the argument named."""
    if not hasattr(optimizer, "update") or not hasattr(optimizer, "target"):
        place = argument and f" as {argument!r}"
        raise TypeError(
            f"{function}: expected an optimizer{place}, got {type(optimizer).__name__}"
        )


def _sees_all(hook: Callable[..., object]) -> bool:
    """Whether a hook of the program gets the optimizer, and all parameters of it."""
    return not getattr(hook, "call_for_each_param", False) and not knows_shards(hook)


class Optimizer(Hookable, LossScaling):
    """Base of every optimizer.

    Hooks take the optimizer; those whose attribute ``call_for_each_param`` is true
    are called for every parameter with its update rule and the parameter.
    """

    target: Any = None
    t = 0
    epoch = 0
    _models_seen = 0  # models of this rank that were made parallel, at the last check
    use_auto_new_epoch = False

    def setup(self: _Self, link: Link) -> _Self:
        """Makes ``link`` the target and resets the counts and hooks."""
        if not isinstance(link, Link):
            raise TypeError(f"setup: expected a Link, got {type(link).__name__}")
        require_own_parts("setup", link)
        self._models_seen = number_of_parallel_models()
        if self.target is not None:
            self._read_device_loss_scale()
        self.target = link
        for each in link.links():
            each.note_optimizer(self)
        self.t = self.epoch = 0
        self.clear_update_hooks()
        return self

    def add_hook(
        self, hook: Callable[..., object], name: str | None = None, timing: str = "auto"
    ) -> None:
        """Adds a hook to those of the target, which ``setup`` removes.

        Raises:
            RuntimeError: before ``setup``.
            ValueError: a hook of the program reads all parameters at once, of which
                this rank has those of some stages.
        """
        if self.target is not None and _sees_all(hook):
            self.target.require_all_params(
                getattr(hook, "__name__", type(hook).__name__)
            )
        super().add_hook(hook, name, timing)
        self.require_target("add_hook")

    def update(
        self,
        lossfun: Callable[..., object] | None = None,
        *args: object,
        **kwds: object,
    ) -> None:
        """Updates the parameters of the target."""
        raise NotImplementedError

    def _require_own_parts(self, method: str) -> None:
        """Checks that no model has been made parallel that shares links with this."""
        if self._models_seen != number_of_parallel_models():
            require_own_parts(method, self.target)
            self._models_seen = number_of_parallel_models()

    def require_target(self, method: str) -> None:
        """Raises RuntimeError before ``setup``."""
        if self.target is None:
            raise RuntimeError(
                f"{type(self).__name__}.{method}: expected setup(model) before, got no "
                "model"
            )

    def new_epoch(self, auto: bool = False) -> None:
        """Counts an epoch; ``auto`` means that an updater calls, not the user."""
        if auto and not self.use_auto_new_epoch:
            raise RuntimeError(
                "invalid new_epoch call with auto=True: the updater has to set "
                "optimizer.use_auto_new_epoch = True"
            )
        if not auto and self.use_auto_new_epoch:
            raise RuntimeError(
                "duplicated new_epoch with the updater: pass auto_new_epoch=False to "
                "the updater or do not call new_epoch outside of it"
            )
        self.epoch += 1

    def call_hooks(self, timing: str = "pre") -> None:
        """Calls every hook of that timing, ``pre`` or ``post``."""
        check_choice("call_hooks: expected timing", timing, "pre", "post")
        for hook in self.update_hooks(timing).values():
            self.call_hook(hook)

    def call_hook(self, hook: Callable[..., object]) -> None:
        """Calls one hook, for each parameter if ``call_for_each_param``.

        Hooks of the program see whole parameters, also where ranks have shards.
        """
        if not getattr(hook, "call_for_each_param", False):
            with contextlib.ExitStack() as whole:
                for param in self.target.params() if _sees_all(hook) else ():
                    whole.enter_context(param.seen_whole())
                hook(self)
            return
        for param in self.target.params_of_all_stages():
            if not param.is_meta:
                call_for_param(hook, param.update_rule, param)
            elif hasattr(hook, "skip"):  # of a stage that another rank has
                hook.skip(param.update_rule, param)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the counts and the state of the update rules."""
        self.require_target("serialize")
        self._read_device_loss_scale()
        if isinstance(serializer, Deserializer):
            for link in self.target.links():
                link.note_optimizer(self, serializer)
        self.t = serializer("t", self.t)
        self.epoch = serializer("epoch", self.epoch)
        with self.target.serialized_parameters(serializer, self):
            for name, param in self.target.namedparams():
                rule = param.update_rule
                if rule is None:
                    continue
                own = serializer[name]
                if not (rule.sees_whole and isinstance(own, Deserializer)):
                    own = param.full_array_serializer(own)
                rule.serialize(own)
