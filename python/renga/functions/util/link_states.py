"""Variables that links keep as attributes between calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable

from renga.core.link_hook import LinkHook, _ForwardPreprocessCallbackArgs, thread_hooks
from renga.core.parameter import Parameter
from renga.core.variable import Variable
from renga.functions.noise.seed import copy_stream

_ABSENT = object()


class LinkStates(LinkHook):
    """The attributes that a function reads and sets of the links it calls.

    During the first run, the Variables there are replaced by leaves. ``outputs`` are
    the Variables there after it.
    """

    def __init__(self) -> None:
        self.name = f"LinkStates at {id(self):#x}"
        self._before: dict[int, tuple[Any, dict[str, Any]]] = {}
        # The third is None once inputs() has returned it.
        self._found: list[tuple[Any, str, Any]] = []
        self._stand_ins: list[Variable] = []
        self._is_used: list[bool] = []
        self._written: list[tuple[Any, str, Any]] = []
        self.outputs: list[Variable] = []
        # Links whose attributes an inner recomputed function handles.
        self._ignored: list[Any] = []

    @contextlib.contextmanager
    def observed(self) -> Iterator[None]:
        """Context in which the function runs for the first time."""
        with self:
            try:
                yield
            finally:
                self._finish()

    def forward_preprocess(self, args: _ForwardPreprocessCallbackArgs) -> None:
        link = args.link
        if id(link) in self._before or any(link is other for other in self._ignored):
            return
        attributes = dict(vars(link))
        self._before[id(link)] = (link, attributes)
        for name, value in attributes.items():
            if is_state(value):
                self._found.append((link, name, value))
                self._stand_ins.append(detached(value))
                vars(link)[name] = self._stand_ins[-1]

    def _finish(self) -> None:
        for (link, name, value), stand_in in zip(self._found, self._stand_ins):
            if vars(link).get(name) is stand_in:
                vars(link)[name] = value
        for link, attributes in self._before.values():
            for name, value in vars(link).items():
                before = attributes.get(name, _ABSENT)
                if is_state(value) and value is not before:
                    # Where there was a Variable, it was replaced by a leaf.
                    known = None if is_state(before) else before
                    self._written.append((link, name, known))
                    self.outputs.append(value)
        self._before.clear()

    def inputs(self, leaves: set[object]) -> list[tuple[Variable, Variable]]:
        """The Variables used, each with the leaf that replaced it.

        ``leaves`` are the variable nodes that the outputs depend on. Attributes that
        they do not depend on keep the leaves, which have no graph.
        """
        self._is_used = [x.node in leaves for x in self._stand_ins]
        pairs = [
            (value, stand_in)
            for (_, _, value), stand_in, used in zip(
                self._found, self._stand_ins, self._is_used
            )
            if used
        ]
        self._found = [(link, name, None) for link, name, _ in self._found]
        return pairs

    def stand_ins_of_leaves(self) -> set[object]:
        """The variable nodes of the leaves that replaced leaves."""
        pairs = zip(self._found, self._stand_ins)
        return {y.node for (_, _, x), y in pairs if x.creator_node is None}

    def put(self, outputs: tuple[Variable, ...]) -> None:
        """Sets the attributes that the function has set, to these Variables."""
        for (link, name, _), value in zip(self._written, outputs):
            vars(link)[name] = value

    @contextlib.contextmanager
    def replayed(
        self, inputs: tuple[Variable, ...]
    ) -> Iterator[Callable[[], tuple[Variable, ...]]]:
        """Context in which the attributes have their values before the first run.

        The used ones are ``inputs``. Yields a function that returns the attributes that
        the function has set. At the end the current attributes are restored.
        """
        slots = [*self._found, *self._written]
        now = [(link, name, vars(link).get(name, _ABSENT)) for link, name, _ in slots]
        blind = [hook for hook in thread_hooks().values() if type(hook) is LinkStates]
        for hook in blind:
            hook._ignored += [link for link, _, _ in slots]
        for link, name, before in self._written:
            _set(link, name, before)
        given = iter(inputs)
        for (link, name, _), stand_in, used in zip(
            self._found, self._stand_ins, self._is_used
        ):
            _set(link, name, next(given) if used else stand_in)
        try:
            yield lambda: tuple([vars(link)[name] for link, name, _ in self._written])
        finally:
            for hook in blind:
                del hook._ignored[len(hook._ignored) - len(slots) :]
            for link, name, value in now:
                _set(link, name, value)


def detached(x: Variable) -> Variable:
    """A leaf over the array of ``x``."""
    if x.is_meta:
        return x
    leaf = Variable(x.array, requires_grad=x.requires_grad)
    leaf.stage = x.stage
    copy_stream(leaf, x)
    return leaf


def is_state(value: object) -> bool:
    """Whether a link's attribute is a Variable that it keeps between calls."""
    return isinstance(value, Variable) and not isinstance(value, Parameter)


def _set(link: Any, name: str, value: Any) -> None:
    if value is _ABSENT:
        vars(link).pop(name, None)
    else:
        vars(link)[name] = value
