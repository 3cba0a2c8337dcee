"""Link: a node of a model, which owns parameters and persistent values."""

from __future__ import annotations

import contextlib
import copy
import functools
import numbers
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy

from renga import initializers
from renga.core import backend, link_hook
from renga.core.device_resident import (
    DeviceResident,
    DeviceResidentsVisitor,
    check_overridden_moves,
)
from renga.core.link.distinct_params import distinct_params
from renga.core.link.hooked import Hooked
from renga.core.link.stages import OneStage
from renga.core.parameter import Parameter
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Array, DTypeLike, Initial, Shape
from renga.utils.argument import check_choice

_Self = TypeVar("_Self", bound="Link")


class Missing:
    """An attribute set by ``Link.__init__``; reading it before that raises."""

    def __get__(self, link: Any, cls: type) -> Any:
        if link is None:
            return self
        raise RuntimeError("Link.__init__() has not been called.")


class _MissingHooks(Missing):
    """None in links that pickles of Chainer have made, which have no such attribute."""

    def __get__(self, link: Any, cls: type) -> Any:
        if link is not None and "_params" in vars(link):
            return None
        return super().__get__(link, cls)


class Link(OneStage, Hooked, DeviceResident):
    """A layer or a model: parameters, persistent values and a ``forward`` method.

    Parameters assigned within ``init_scope`` are registered. Persistent values are
    arrays and numbers that are saved with the link but not trained. Keyword
    arguments are shapes, or pairs of a shape and a dtype, of parameters to add.
    """

    _params: set[str] = Missing()  # type: ignore[assignment]
    _persistent: set[str] = Missing()  # type: ignore[assignment]
    _link_hooks: Any = _MissingHooks()
    _within_init_scope = False
    _how_to_register = "to a Chain, within `with self.init_scope():`"
    name: str | None = None

    def __init__(self, **params: object) -> None:
        super().__init__()
        self._params = set()
        self._persistent = set()
        self._link_hooks = None
        for name, value in params.items():
            shape, dtype = _shape_and_dtype(value)
            self.add_param(name, shape, dtype=dtype)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_overridden_moves(cls)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs ``forward``, with the hooks around it."""
        try:
            forward = self.forward  # type: ignore[attr-defined]
        except AttributeError:
            # The forward pass may be that of a class that is mixed in.
            mixed_in: Any = super()
            if not hasattr(mixed_in, "__call__"):  # noqa: B004
                raise
            forward = mixed_in.__call__
        if not link_hook.thread_hooks() and not self._link_hooks:
            return forward(*args, **kwargs)
        return self._run_with_hooks("forward", forward, *args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._within_init_scope and isinstance(value, Parameter):
            value.name = name
            self._params.add(name)
            self._persistent.discard(name)
        elif isinstance(value, (Link, Parameter)) and name not in self._registered():
            _warn_of_unregistered(self, name, value)
        super().__setattr__(name, value)

    def _registered(self) -> Iterable[str]:
        """The names of parameters and children; none before ``__init__``."""
        return vars(self).get("_params", ())

    def __delattr__(self, name: str) -> None:
        self._params.discard(name)
        self._persistent.discard(name)
        super().__delattr__(name)

    def __str__(self) -> str:
        specs = ", ".join(f"{name}={value}" for name, value in self.printable_specs)
        return f"{type(self).__name__}({specs})"

    @property
    def printable_specs(self) -> Iterator[tuple[str, object]]:
        """Names and values in the result of ``str``."""
        return iter(())

    @property
    def within_init_scope(self) -> bool:
        """Whether the code runs inside ``init_scope`` of this link."""
        return self._within_init_scope

    @contextlib.contextmanager
    def init_scope(self) -> Iterator[None]:
        """Context in which a parameter assigned to an attribute is registered."""
        self._params  # noqa: B018 (raises before __init__)
        before = self._within_init_scope
        self._within_init_scope = True
        try:
            yield
        finally:
            self._within_init_scope = before

    @classmethod
    def from_params(cls, *args: Any, **kwargs: Any) -> Link:
        """A link with the given parameter values; their shapes determine the sizes."""
        raise NotImplementedError(f"{cls.__name__}: from_params is not implemented")

    def add_param(
        self,
        name: str,
        shape: int | Shape | None = None,
        dtype: DTypeLike = numpy.float32,
        initializer: Initial | None = None,
    ) -> None:
        """Registers a new parameter, uninitialised if ``shape`` is None."""
        self._require_new("parameter", name)
        if initializer is None:
            initializer = initializers.NaN(dtype)
        param = Parameter(initializer, shape)
        with self.init_scope():
            setattr(self, name, param)

    def add_persistent(self, name: str, value: object) -> None:
        """Registers a value that is saved with the link."""
        self._require_new("persistent value", name)
        self._persistent.add(name)
        self._params.discard(name)
        setattr(self, name, value)

    def register_persistent(self, name: str) -> None:
        """Registers an attribute that already exists as a persistent value."""
        if not hasattr(self, name):
            raise AttributeError(
                f"register_persistent: expected an attribute, got {name!r}"
            )
        self._persistent.add(name)
        self._params.discard(name)

    def _require_new(self, kind: str, name: str) -> None:
        self._params  # noqa: B018 (raises before __init__)
        if name in vars(self) or name == "name":
            raise AttributeError(
                f"expected a new name for a {kind}, got {name!r}: attribute exists"
            )

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """The parameters of this link and its children, each of them once."""
        mine = vars(self)
        params = [mine[name] for name in sorted(self._params)]
        if not include_uninit:
            params = [param for param in params if param.is_initialized]
        for child in self.children():
            params += child.params(include_uninit)
        return iter({id(param): param for param in params}.values())

    def namedparams(
        self, include_uninit: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths, such as ``/conv/W``."""
        for name in sorted(self._params):
            param = vars(self)[name]
            if include_uninit or param.is_initialized:
                yield f"/{name}", param

    def links(self, skipself: bool = False) -> Iterator[Link]:
        """This link, unless skipped, and those under it."""
        for _, link in self.namedlinks(skipself):
            yield link

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        """This link, unless skipped, and those under it, with their paths."""
        if not skipself:
            yield "/", self

    def children(self) -> Iterator[Link]:
        """The links directly under this one."""
        return iter(())

    def count_params(self) -> int:
        """The number of elements of the parameters; warns of uninitialised ones.

        Tied parameters count once.
        """
        size = 0
        for each in distinct_params(self):
            if each.param.is_initialized:
                size += each.param.size
            else:
                warnings.warn(
                    f"Parameter {each.name!r} has not been initialized, so the count "
                    "does not include it.",
                    stacklevel=2,
                )
        return size

    def cleargrads(self) -> None:
        """Drops every gradient, before a backward pass."""
        for param in self.params():
            param.cleargrad()

    def zerograds(self) -> None:
        """Fills every gradient with zeros; ``cleargrads`` is faster."""
        warnings.warn(
            "zerograds is deprecated: use cleargrads", DeprecationWarning, stacklevel=2
        )
        for param in self.params():
            param.zerograd()

    def addgrads(self, link: Link) -> None:
        """Adds the gradients of ``link``, which has the same parameters.

        A gradient is added once to a parameter, whatever names both have.
        """
        sources = dict(link.namedparams())
        pairs = {
            (id(param), id(sources[name])): (param, sources[name])
            for name, param in self.namedparams()
        }
        for param, source in pairs.values():
            param.addgrad(source)

    def copied_link(self) -> Link:
        """The link that ``copyparams`` of another one copies from."""
        self._require_values("copyparams")
        return self

    def _require_values(self, operation: str) -> None:
        if self._params or self._persistent:
            self.require_all_stages(operation)

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        """Copies the parameters of ``link`` and, by default, its persistent values."""
        self._require_values("copyparams")
        link = link.copied_link()
        source, mine = vars(link), vars(self)
        for name in sorted(self._params):
            mine[name].copydata(source[name])
        if not copy_persistent:
            return
        for name in sorted(self._persistent):
            if isinstance(mine[name], backend.get_array_types()):
                value = self.own_part_of(name, link._full_persistent(name))
                mine[name][...] = self.device.send(value)
            else:
                mine[name] = copy.deepcopy(source[name])

    def _full_persistent(self, name: str) -> Any:
        """A persistent array, whole where this link holds a shard of it."""
        return vars(self)[name]

    def own_part_of(self, name: str, array: Array) -> Array:
        """Returns what this link holds of a whole persistent array."""
        return array

    def forget_loaded(self) -> None:
        """Drops full arrays that are kept for other ranks."""
        for name in self._params:
            vars(self)[name].forget_loaded()

    def loaded_persistent(self, name: str) -> object:
        """A persistent value that has been loaded, whole where this is a shard."""
        return vars(self)[name]

    def copy(self: _Self, mode: str = "share") -> _Self:
        """A copy: arrays shared (``share``), copied (``copy``) or redrawn (``init``).

        Parameters that are shared stay so: an array assigned to one of them, or that it
        gets in the first forward pass, is the other's, too, until one of them moves to
        another device. Gradients are the copy's own; tied parameters are tied in it.
        """
        if mode == "share":
            return self._shallow_copy({})
        check_choice("copy: expected mode", mode, "init", "copy", "share")
        clone = copy.deepcopy(self)
        if mode == "init":
            for param in clone.params(include_uninit=False):
                param.initialize(param.shape)
        return clone

    def _shallow_copy(self, memo: dict[int, Any]) -> Any:
        """A copy that shares arrays.

        ``memo`` has the copies of links and parameters by the ids of their originals.
        """
        clone = memo[id(self)] = copy.copy(self)
        clone._params = set(self._params)
        clone._persistent = set(self._persistent)
        clone.name = None
        for name in self._params:
            original = vars(self)[name]
            if id(original) not in memo:
                memo[id(original)] = copy.copy(original)
                memo[id(original)].grad = None
            vars(clone)[name] = memo[id(original)]
        return clone

    @property
    def update_enabled(self) -> bool:
        """Whether an optimizer changes any of the parameters."""
        rules = (param.update_rule for param in self.params())
        return any(rule is not None and rule.enabled for rule in rules)

    def enable_update(self) -> None:
        """Lets the optimizer change the parameters."""
        self._set_update_enabled(True)

    def disable_update(self) -> None:
        """Makes the optimizer leave the parameters alone."""
        self._set_update_enabled(False)

    def _set_update_enabled(self, enabled: bool) -> None:
        for param in self.params():
            if param.update_rule is not None:
                param.update_rule.enabled = enabled

    def device_resident_accept(self, visitor: DeviceResidentsVisitor) -> None:
        """Passes the parameters and persistent arrays to ``visitor``."""
        super().device_resident_accept(visitor)
        mine = vars(self)
        for name in self._params:
            visitor.visit_variable(mine[name])
        for name in self._persistent:
            if isinstance(mine[name], backend.get_array_types()):
                mine[name] = visitor.visit_array(mine[name])
            elif isinstance(mine[name], DeviceResident):
                mine[name].device_resident_accept(visitor)

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves the parameters and persistent values, or loads them."""
        self._require_values("serialize")
        mine = vars(self)
        for name in sorted(self._params):
            _serialize_param(serializer, name, mine[name])
        for name in sorted(self._persistent):
            old = mine[name]
            mine[name] = serializer(name, old)
            if mine[name] is not old and isinstance(serializer, Deserializer):
                serializer.on_failure(functools.partial(mine.__setitem__, name, old))


def shared_copy(link: Link, memo: dict[int, Link]) -> Link:
    """The copy of a child that shares its arrays; one for all places of the child."""
    if id(link) not in memo:
        has_own = type(link).copy is not Link.copy
        copied = link.copy("share") if has_own else link._shallow_copy(memo)
        memo[id(link)] = copied
    return memo[id(link)]


def _warn_of_unregistered(link: Link, name: str, value: Any) -> None:
    if value.name is not None:  # registered in another link and shared with this one
        return
    if "_params" not in vars(link):  # what is set before may be given to __init__
        return
    kind, how = "parameter", "within `with self.init_scope():`"
    if isinstance(value, Link):
        if not any(child._params or child._persistent for child in value.links()):
            return
        kind, how = "link", link._how_to_register
    warnings.warn(
        f"{type(link).__name__}.{name}: the {kind} is not registered, so an optimizer "
        f"does not train it and it is not saved: assign it {how}",
        stacklevel=_frames_in_links(),
    )


def _frames_in_links() -> int:
    """The stack level of the caller outside of the ``__setattr__`` methods."""
    level, frame = 3, sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name == "__setattr__":
        level, frame = level + 1, frame.f_back
    return level - 1


def _serialize_param(serializer: Any, name: str, param: Parameter) -> None:
    array = param.array
    data = param.full_array_serializer(serializer)(name, array)
    if isinstance(serializer, Deserializer):
        param.loads += 1
    if data is None or data is array:
        return
    if array is not None and not isinstance(serializer, Deserializer):
        return  # what a serializer returns for what it saves has no meaning
    if isinstance(serializer, Deserializer):
        values = None if array is None else array.copy()
        serializer.on_failure(functools.partial(param.restore_values, values))
    if not param.is_initialized:
        param.allocate(data.shape)
    param.array[...] = param.device.send(data)


def _shape_and_dtype(value: Any) -> tuple[Any, Any]:
    if isinstance(value, tuple) and len(value) == 2:
        if not isinstance(value[1], numbers.Integral):
            return value
    return value, numpy.float32
