"""Parameter: a variable that a link trains."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from renga import _core, initializers
from renga.backends import cuda
from renga.backends.device import Device, DeviceLike
from renga.core import backend, variable
from renga.core.dtypes import get_dtype
from renga.core.serializer import AbstractSerializer
from renga.core.types import Array, Initial, Shape
from renga.core.variable import Variable

_own_array: Any = Variable.array


class _Copies:
    """The parameters that have one array, as long as they are used.

    What is copied deeply or pickled shares its array with none of them.
    """

    def __init__(self) -> None:
        self._members: list[weakref.ref[Parameter]] = []

    def add(self, param: Parameter) -> None:
        """Adds a parameter, unless it is there already."""
        members = self.alive()
        if all(member is not param for member in members):
            self._members = [weakref.ref(member) for member in (*members, param)]

    def alive(self) -> list[Parameter]:
        """The parameters that still exist."""
        found = (member() for member in self._members)
        return [param for param in found if param is not None]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Copies, ()


class Parameter(Variable):
    """A variable registered in a link, with the rule that updates it.

    Without a shape it stays uninitialised (its ``array`` is None) until
    ``initialize`` is called, as a rule by the first forward pass.

    ``initializer`` is an array, a number, or a callable that fills an array; None
    means NaN. An array given without a shape is the value itself.
    """

    initializer: Any = None
    update_rule: Any = None  # an UpdateRule, once an optimizer is set up
    loads = 0  # how often it got the values of a file or of another parameter
    # The value of the gradient when the array is created; None: no gradient.
    _first_grad: float | None = numpy.nan
    _initial_device: Any = None
    _copies: _Copies | None = None

    def __init__(
        self,
        initializer: Initial | None = None,
        shape: int | Sequence[int] | None = None,
        name: str | None = None,
    ) -> None:
        is_array = isinstance(initializer, backend.get_array_types())
        if is_array and shape is None:
            super().__init__(initializer, name=name)
            self.initializer = initializer
            return
        super().__init__(None, name=name)
        if initializer is None:
            initializer = initializers.NaN()
        elif is_array or numpy.isscalar(initializer):
            initializer = initializers.Constant(initializer)  # type: ignore[arg-type]
        self.initializer = initializer
        if shape is not None:
            self.initialize(shape)

    def __copy__(self) -> Parameter:
        """A parameter with a gradient of its own, and always with this one's array.

        An array that one of them gets, by assignment or by ``initialize``, is that of
        both, until one of them moves to another device.
        """
        rebuild, args = self.__reduce__()[:2]
        clone: Parameter = rebuild(*args)
        if self._copies is None:
            self._copies = _Copies()
        vars(clone).update(vars(self))
        self._copies.add(self)
        self._copies.add(clone)
        return clone

    def with_array(self, array: Array | None) -> Parameter:
        """A parameter of this one's kind, with its attributes and another array."""
        new: Parameter = type(self).__new__(type(self))
        Variable.__init__(new, array, name=self.name)
        vars(new).update(vars(self), _copies=None)
        return new

    def _set_array(self, array: Any) -> None:
        _own_array.fset(self, array)
        for copied in () if self._copies is None else self._copies.alive():
            _own_array.fset(copied, array)

    array = property(_own_array.fget, _set_array, doc=_own_array.__doc__)
    data = array

    @property
    def dtype(self) -> numpy.dtype:
        """The dtype of the array, or the one it will have."""
        if self.is_initialized:
            return super().dtype
        return get_dtype(getattr(self.initializer, "dtype", None))

    @property
    def device(self) -> Device:
        """The device of the array, or the one it will have."""
        device = self._initial_device
        if device is not None and (not self.is_initialized or _is_of_users(device)):
            return device
        return super().device

    def to_device(self, device: DeviceLike) -> None:
        """Moves the array, or sets the device on which it will be created."""
        device = backend.get_device(device)
        if device != self.device:
            self._copies = None
        initialized = self.is_initialized
        if not initialized or _is_of_users(device) or _is_of_users(self.device):
            self._initial_device = device
        if initialized:
            super().to_device(device)

    def initialize(self, shape: int | Sequence[int]) -> None:
        """Gives the parameter an array of ``shape``, filled by its initializer."""
        fill = initializers.get_initializer(self.initializer)
        array = initializers.generate_array(
            fill, shape, numpy, device=self._initial_device
        )
        self.array = array
        self.grad = self._make_first_grad()

    def allocate(self, shape: int | Sequence[int]) -> None:
        """:meth:`initialize` on this rank alone, for values that are about to come."""
        self.initialize(shape)

    def restore_values(self, values: Array | None) -> None:
        """Sets the array to ``values``; None makes the parameter uninitialised."""
        if values is None:
            self.grad = None
            self.array = None
        else:
            self.array[...] = values

    def _make_first_grad(self) -> Any:
        if self._first_grad is None:
            return None
        # The core's allocator gives the memory, and reuses it for the first step's
        # gradients.
        grad = _core.empty(self.shape, self.dtype, self.device_name)
        grad.fill(self._first_grad)
        return grad

    def cleargrad(self) -> None:
        """Drops the gradient; an uninitialised parameter will start without one."""
        super().cleargrad()
        if not self.is_initialized:
            self._first_grad = None

    def _zero_grad(self) -> None:
        """Fills the gradient with zeros, now or when the array is created."""
        super()._zero_grad()
        if not self.is_initialized:
            self._first_grad = 0.0

    def addgrad(self, var: Variable) -> None:
        """Adds ``var``'s gradient, if any, initialising this parameter if needed."""
        if not self.is_initialized and var.grad is not None:
            self.cleargrad()
            self.initialize(var.shape)
        super().addgrad(var)

    def copydata(self, var: Parameter) -> None:
        """Copies ``var``'s values; an uninitialised one gets the other's shape."""
        if not var.is_initialized:
            if not self.is_initialized:
                return
            var.initialize(self.shape)
        array = var.full_array() if isinstance(var, Parameter) else var.array
        if not self.is_initialized:
            self.allocate(array.shape)
        if self.shape != array.shape:
            raise ValueError(
                f"copydata: expected shape {self.shape}, got {array.shape}"
            )
        self.array[...] = self.device.send(array)
        self.loads += 1

    @property
    def model_comm(self) -> Any:
        """The communicator of ranks that compute the model together, or None."""
        return None

    @property
    def is_divided(self) -> bool:
        """Whether it holds a shard of an array, of which other ranks have the rest."""
        return False

    def full_array_serializer(
        self, serializer: AbstractSerializer
    ) -> AbstractSerializer:
        """A serializer of the full array, for a parameter that holds a shard of it."""
        return serializer

    def full_array(self) -> Array:
        """The full array, for a parameter that holds a shard of it."""
        return self.array

    def part_of(self, array: Array) -> Array:
        """This parameter's part of a full array."""
        return array

    def loaded_array(self) -> Array | None:
        """The full array that this rank has loaded; None if it has loaded none."""
        return cuda.to_cpu(self.array) if self.is_initialized else None

    def loaded_state(self, key: str, value: Array) -> Array:
        """The full array of which ``value``, a state that was loaded, is a shard."""
        return value

    def forget_loaded(self) -> None:
        """Drops full arrays that are kept for the other ranks."""

    def whole_gradient(self, gradient: Variable) -> Variable:
        """The gradient of the full array; ``gradient`` is that of this part of it."""
        return gradient

    def seen_whole(self) -> contextlib.AbstractContextManager[None]:
        """A context in which array and gradient are the full ones."""
        return contextlib.nullcontext()

    def as_operand(self) -> Variable:
        """The operand for an operation before which nothing gathers numbers."""
        return self

    def draw(self, numbers: Callable[[Shape], Array]) -> Array:
        """Random ``numbers(shape)`` for the array; of a shard, its part of the whole's.

        Ranks that hold one parameter get the numbers of one of them.
        """
        return numbers(self.shape)

    def sum_over_shards(self, value: float) -> float:
        """``value`` summed over the ranks that hold the shards of this parameter."""
        return value

    def update(self) -> None:
        """Applies the update rule, if there is one."""
        if self.update_rule is not None:
            self.update_rule.update(self)


def _is_of_users(device: Any) -> bool:
    """Whether its class is not renga's, so that no array tells the device."""
    return not type(device).__module__.startswith("renga.")


def as_operand(x: Variable) -> Variable:
    """What an operation reads that nothing gathers parameters for."""
    return x.as_operand() if isinstance(x, Parameter) else x


# The name that Chainer has for it.
vars(variable)["Parameter"] = Parameter
