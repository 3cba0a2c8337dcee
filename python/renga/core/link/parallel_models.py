"""Models that ranks compute together, beside models that share links with them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from renga import _core
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.link.own_values import own_persistent


class _ParallelModel:
    """A parallel model in use, and what the serial one trains and saves.

    Args:
        serial: the model as it was.
        parallel: a copy of it, or what has its parameters.
    """

    def __init__(self, serial: Link, parallel: Link) -> None:
        self._models = [weakref.ref(serial), weakref.ref(parallel)]
        self._parts = [weakref.ref(part) for _, part in _parts(serial)]

    @property
    def is_in_use(self) -> bool:
        return self._models[1]() is not None

    def is_of(self, model: Link) -> bool:
        """Whether it was made of a model, or is a part of it."""
        return model is self._models[0]() or self.is_in(model)

    def is_in(self, model: Link) -> bool:
        """Whether it is a model, or a part of it."""
        parallel = self._models[1]()
        return any(link is parallel for link in (model, *model.links()))

    def shared_with(self, model: Link) -> Iterator[str]:
        """The names of what the serial model has in common with another one."""
        here = [part for ref in self._parts if (part := ref()) is not None]
        keys = {key for part in here for key in _keys(part)}
        for name, part in _parts(model):
            if not keys.isdisjoint(_keys(part)):
                yield name


class _ModelsOfThread(threading.local):
    """Those of a rank."""

    def __init__(self) -> None:
        self.models: list[_ParallelModel] = []
        self.noted = 0  # how many there have been


_of_thread = _ModelsOfThread()


def note_parallel_model(serial: Link, parallel: Link) -> None:
    """Has other models with links of ``serial`` refused, as long as both are in use."""
    _of_thread.models.append(_ParallelModel(serial, parallel))
    _of_thread.noted += 1


def number_of_parallel_models() -> int:
    """How many this rank has made: a change tells that a model may share links now."""
    return _of_thread.noted


def require_own_parts(operation: str, model: Link) -> None:
    """Checks that no other model has parts of this one that ranks compute together.

    What two models share would be two things then.

    Raises:
        ValueError: if one has.
    """
    in_use = [each for each in _of_thread.models if each.is_in_use]
    _of_thread.models = in_use
    for each in in_use:
        if each.is_of(model):
            continue
        for name in each.shared_with(model):
            raise ValueError(
                f"{operation}: expected {type(model).__name__} to share nothing with "
                f"other models that are parallel already, got {name} in both: make one "
                "Chain of the models parallel, and use its children"
            )


def require_serial(operation: str, model: Link) -> None:
    """Checks that a model is one of a single process.

    Raises:
        ValueError: ranks compute it, or a part of it, together.
    """
    if any(each.is_in(model) for each in _of_thread.models):
        raise ValueError(
            f"{operation}: expected a model of one process, got "
            f"{type(model).__name__}, which ranks compute together: copyparams() it "
            "into a serial model"
        )


def _parts(model: Any) -> Iterator[tuple[str, Any]]:
    for each in distinct_params(model):
        yield each.name, each.param
    for name, link in model.namedlinks():
        if own_persistent(link):
            yield name, link


def _keys(part: Any) -> Iterator[tuple[str, int]]:
    """What tells whether two parts are one, or have one array."""
    yield "object", id(part)
    if isinstance(part, _core.Variable) and part.is_initialized and part.size:
        if not part.is_meta:
            yield "array", _core.addresses([part])[0]
