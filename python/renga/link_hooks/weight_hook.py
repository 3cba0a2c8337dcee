"""Hooks that replace a link's weight while the link runs."""

from __future__ import annotations

from typing import Any

from renga.core.configuration import no_backprop_mode
from renga.core.link import Link
from renga.core.link_hook import (
    LinkHook,
    _ForwardPostprocessCallbackArgs,
    _ForwardPreprocessCallbackArgs,
)
from renga.core.variable import Variable


class WeightHook(LinkHook):
    """Computes a link's weight for every call, in ``normalize_weight``.

    The parameter itself is not replaced: it gets the gradients, is updated and saved.
    The hook is added to one link, by ``add_hook``.

    Raises:
        ValueError: the link has no such parameter.
        NotImplementedError: used in a ``with`` statement.
    """

    original_weight: Any = None

    def __init__(self, weight_name: str, name: str | None) -> None:
        self.weight_name = weight_name
        if name is not None:
            self.name = name

    def __enter__(self) -> WeightHook:
        raise NotImplementedError(
            "WeightHook: expected Link.add_hook, got a with statement"
        )

    def __exit__(self, *_: Any) -> None:
        raise NotImplementedError(
            "WeightHook: expected Link.add_hook, got a with statement"
        )

    def added(self, link: Link) -> None:
        if getattr(link, self.weight_name, None) is None:
            raise ValueError(
                f"WeightHook: expected a parameter, got {self.weight_name!r}"
            )
        if self._weight(link).is_initialized:
            self.prepare(link)

    def prepare(self, link: Link) -> None:
        """Called once for a link, when its weight has a shape."""

    def normalize_weight(self, link: Link) -> Variable:
        """The weight for one call."""
        raise NotImplementedError

    def forward_preprocess(self, cb_args: _ForwardPreprocessCallbackArgs) -> None:
        link = cb_args.link
        # A call that raised has not restored the parameter.
        self._restore(link)
        if not self._weight(link).is_initialized:
            # The link initializes its weight for the shape of these inputs.
            with no_backprop_mode():
                link.forward(*cb_args.args, **cb_args.kwargs)
            self.prepare(link)
        weight = self.normalize_weight(link)
        self.original_weight = self._weight(link)
        vars(link)[self.weight_name] = weight

    def forward_postprocess(self, cb_args: _ForwardPostprocessCallbackArgs) -> None:
        self._restore(cb_args.link)

    def _restore(self, link: Any) -> None:
        if self.original_weight is not None:
            vars(link)[self.weight_name] = self.original_weight
            self.original_weight = None

    def _weight(self, link: Any) -> Any:
        return getattr(link, self.weight_name)
