"""Variable: an array together with the graph that computed it.

The class is defined in the core; this module adds the methods written in Python, but
``mean``, which ``renga.functions.math.average`` adds.
"""

from __future__ import annotations

import functools
import types
import warnings
from typing import Any, Callable, TypeVar, overload

import numpy

from renga import _core
from renga.backends import cuda
from renga.core import backend
from renga.core.around_call import prepare_unchain, require_own_graph
from renga.core.types import Array, ArrayLike, Operand

Variable = _core.Variable
VariableNode = _core.VariableNode
_T = TypeVar("_T")


def as_variable(obj: object) -> Variable:
    """``obj``; if it is an array, a Variable over it that requires no gradient."""
    if isinstance(obj, _core.Variable):
        return obj
    return _core.Variable(obj, requires_grad=False)


@overload
def as_array(obj: Variable) -> Array: ...
@overload
def as_array(obj: _T) -> _T: ...
def as_array(obj: object) -> object:
    """The array of a Variable; anything else as it is."""
    return obj.array if isinstance(obj, _core.Variable) else obj


def as_number(value: Variable | float) -> float:
    """A number, or the only element of a Variable, which is waited for."""
    return float(value.item() if isinstance(value, _core.Variable) else value)


def as_factor(factor: Operand, array: Array) -> Array | float:
    """A number, or an array of the dtype of ``array``, by which it is multiplied."""
    if not isinstance(factor, _core.Variable):
        return factor
    return _core.ops.cast(factor, array.dtype).array


def holds_numbers(x: ArrayLike) -> bool:
    """Whether functions compute with ``x``; Variables of other dtypes only hold them.

    Objects, strings, dates and complex numbers go through ``copy``, ``identity``,
    ``get_item``, ``cast`` and ``pad_sequence`` alone.
    """
    return x.dtype.kind in "biuf"


def from_dlpack(array: object) -> Variable:
    """A Variable over the memory of another library's array, which it shares.

    ``array`` is anything with ``__dlpack__`` (PyTorch, JAX, CuPy, …) on a device
    that NumPy can see. The Variable requires no gradient. bfloat16 numbers are shared
    as well, but ``array`` is a copy of them as they were when it was first read.

    Raises:
        TypeError: ``array`` has no ``__dlpack__``.
        BufferError, ValueError: the memory is not the host's, or the dtype is unknown.
    """
    if not hasattr(array, "__dlpack__"):
        raise TypeError(
            f"from_dlpack: expected an array with __dlpack__, got {array!r:.100}"
        )
    try:
        data = numpy.from_dlpack(array)
    except (BufferError, RuntimeError):  # NumPy has no bfloat16
        return _core.from_dlpack(array.__dlpack__())
    return _core.Variable(data, requires_grad=False)


def variable_repr(var: object) -> str:
    """``variable name([…])``."""
    return _text(var, ", ")


def variable_str(var: object) -> str:
    """``variable name([…])`` with the elements formatted by NumPy's ``str``."""
    return _text(var, " ")


def _text(var: Any, separator: str) -> str:
    head = "variable(" if var.name is None else f"variable {var.name}("
    array = var.array
    if array is None:
        return f"{head}None)"
    if separator == ", " and array.size == 0 and array.shape != (0,):
        return f"{head}[], shape={array.shape})"
    array = cuda.to_cpu(array)
    return head + numpy.array2string(array, separator=separator, prefix=head) + ")"


_OF_EVERY_CLASS = {"__annotations__", *vars(type("", (), {}))}


def attach(*classes: type) -> Callable[[type], type]:
    """Decorator that adds the members of a class body to C++ classes."""

    def add(body: type) -> type:
        for name, member in vars(body).items():
            if name not in _OF_EVERY_CLASS:
                for cls in classes:
                    setattr(cls, name, member)
        return body

    return add


@attach(_core.Variable, _core.VariableNode)
class _CreatorMethods:
    """Members of Variable and VariableNode about the function that computed them."""

    creator_node: Any
    shape: tuple[int, ...]
    dtype: Any

    @property
    def creator(self) -> Any:
        """The function that computed it, None for a leaf."""
        node = self.creator_node
        return getattr(node, "function", node)

    @creator.setter
    def creator(self, function: Any) -> None:
        self.creator_node = getattr(function, "node", function)

    @property
    def label(self) -> str:
        """Shape and dtype."""
        shape = ", ".join(map(str, self.shape))
        return f"({shape}), {self.dtype}" if self.shape else str(self.dtype)


@attach(_core.VariableNode)
class _NodeMethods:
    """The other members of VariableNode."""

    creator: Any
    creator_node: Any

    def set_creator(self, creator: Any) -> None:
        """Sets the function that computed it."""
        self.creator = creator

    def set_creator_node(self, creator_node: Any) -> None:
        """Sets the function node that computed it."""
        self.creator_node = creator_node


class _Backward:
    """The core's ``backward``, which a loss in a pipeline cannot call.

    A descriptor and no method, so that warnings name the line of the caller. The class
    has it itself, so that a program which replaced it can set it again.
    """

    def __init__(self, method: Any) -> None:
        self._method = method
        functools.update_wrapper(self, method.__get__(None, _core.Variable))

    def __get__(self, var: Any, owner: type) -> Any:
        if var is None:
            return self
        _check_root(var)
        return self._method.__get__(var, owner)

    def __call__(self, var: Any, *args: Any, **kwargs: Any) -> None:
        _check_root(var)
        self._method.__get__(var, type(var))(*args, **kwargs)


def _check_root(var: Any) -> None:
    """Refuses or warns of a variable from which ``backward`` is to start."""
    if var.stage >= 0:
        require_own_graph("backward")
    elif var.ndim and var.size == 1 and var.grad_var is None:
        warnings.warn(
            "backward: a gradient of 1 for an array with only one element is "
            f"deprecated: expected the shape (), got {var.shape}",
            DeprecationWarning,
            stacklevel=3,
        )


_unchain = vars(_core.Variable)["unchain"]
_unchain_backward = vars(_core.Variable)["unchain_backward"]


@attach(_core.Variable)
class _VariableMethods:
    """The other members of Variable that are written in Python."""

    backward = _Backward(vars(_core.Variable)["backward"])
    array: Any
    grad: Any
    creator: Any
    creator_node: Any
    initialize: Any
    name: str | None
    requires_grad: bool
    shape: tuple[int, ...]
    dtype: Any

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'Variable': expected id(var) as a key")

    def __repr__(self) -> str:
        return variable_repr(self)

    def __str__(self) -> str:
        return variable_str(self)

    def set_creator(self, gen_func: Any) -> None:
        """Sets the function that computed it."""
        self.creator = gen_func

    def set_creator_node(self, fnode: Any) -> None:
        """Sets the function node that computed it."""
        self.creator_node = fnode

    def unchain(self) -> None:
        """Removes the creator."""
        prepare_unchain(self, is_backward=False)
        _unchain(self)

    def unchain_backward(self) -> None:
        """Removes the whole graph before this variable."""
        prepare_unchain(self, is_backward=True)
        _unchain_backward(self)

    def __bool__(self) -> bool:
        raise TypeError("Variable: expected var.array in a condition, got the Variable")

    def __pos__(self) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        content = (self.array, self.name, _own_grad(self), self.requires_grad)
        return _rebuild, (type(self), *content), vars(self) or None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The elements as a NumPy array, without the graph."""
        array = _initialized_array(self)
        if copy:
            return numpy.array(array, dtype)
        if copy is None or dtype is None or array.dtype == dtype:
            return numpy.asarray(array, dtype)
        raise ValueError(
            f"Variable: expected dtype {array.dtype} without a copy, got {dtype}"
        )

    def __dlpack__(self: Any, **options: Any) -> Any:
        """The array's memory as a DLPack capsule, for other libraries to share."""
        if _core.dtype_name(self) == "bfloat16":  # of which ``array`` is a copy
            if options.get("copy"):
                raise BufferError("__dlpack__: bfloat16 is shared, not copied")
            return _core.to_dlpack(self)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        """(device type, device id) of DLPack."""
        if _core.dtype_name(self) == "bfloat16":
            return 1, 0
        return self.array.__dlpack_device__()

    @property
    def T(self: Any) -> Variable:
        """The axes in reverse order."""
        return _core.ops.transpose(self)

    @property
    def xp(self) -> types.ModuleType:
        """The array module of the device."""
        return self.device.xp

    @property
    def device(self) -> Any:
        """The device of the array."""
        return backend.get_device_from_array(self)

    def to_device(self: Any, device: Any) -> None:
        """Moves the array and its gradient to a device."""
        device = backend.get_device(device)
        if self.array is None or device.is_array_supported(self.array):
            return
        grad = _own_grad(self)
        self.array = device.send(self.array)
        self.grad = None if grad is None else device.send(grad)

    def to_cpu(self) -> None:
        """Moves the array and its gradient to the main memory."""
        self.to_device(backend.CpuDevice())

    def to_gpu(self, device: int | None = None) -> None:
        """Moves the array and its gradient to a GPU."""
        self.to_device(backend.GpuDevice.from_device_id(device or 0))

    def to_intel64(self) -> None:
        """Raises RuntimeError: there is no iDeep device."""
        self.to_device("@intel64")

    def to_chx(self) -> None:
        """Raises RuntimeError: there are no ChainerX devices."""
        backend.to_chx(self.array)

    def from_chx(self) -> None:
        """Does nothing: no array is ChainerX's."""

    @property
    def chx_array(self) -> Any:
        """Raises ValueError: no array is ChainerX's."""
        raise ValueError("chx_array: expected a ChainerX array, got renga's")

    def item(self) -> Any:
        """The only element as a Python number; ValueError if there are more."""
        array = self.array
        on_host = isinstance(array, numpy.ndarray)
        return (array if on_host else cuda.to_cpu(array)).item()

    def reshape(self: Any, *shape: Any) -> Variable:
        """Its elements in another shape, given as numbers or as a tuple."""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        return _core.ops.reshape(self, shape)

    def transpose(self: Any, *axes: Any) -> Variable:
        """The axes in the given order (numbers or a tuple); by default reversed."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            (axes,) = axes
        return _core.ops.transpose(self, axes or None)

    def zerograd(self) -> None:
        """Fills the gradient with zeros; ``cleargrad`` drops it without that cost."""
        warnings.warn(
            "zerograd is deprecated: use cleargrad", DeprecationWarning, stacklevel=2
        )
        self._zero_grad()

    def _zero_grad(self) -> None:
        self.grad = None if self.array is None else self.xp.zeros_like(self.array)

    def copydata(self: Any, var: Any) -> None:
        """Copies another variable's elements into this one's array."""
        if var.array is None:
            return
        if self.array is None:
            self.initialize(var.shape)  # a Parameter
        backend.copyto(self.array, var.array)

    def summary(self) -> str:
        """Its name, or its address if it has none."""
        return f"<variable {self.name or f'at {id(self):#x}'}>"

    def debug_print(self) -> str:
        """Its name, device, shape, dtype, statistics and gradient, one per line."""
        lines = [self.summary()]
        array, names = self.array, "device backend shape dtype statistics grad"
        values: list[Any] = [None] * 6
        if array is not None:
            device = "CPU" if isinstance(array, numpy.ndarray) else self.device
            grad = None if self.grad is None else _statistics(self.grad)
            values = [device, type(array), self.shape, self.dtype]
            values += [_statistics(array), grad]
        lines += [f"- {name}: {v}" for name, v in zip(names.split(), values)]
        return "\n".join(lines)


def _initialized_array(var: Any) -> Any:
    array = var.array
    if array is None:
        raise RuntimeError(
            "Variable: expected an initialized array, but it has none yet"
        )
    return array


def _own_grad(var: Any) -> Any:
    """The gradient; None if it is that of an array that has been replaced."""
    array, grad = var.array, var.grad
    if array is None or grad is None:
        return grad
    fits = (grad.shape, grad.dtype) == (array.shape, array.dtype)
    return grad if fits else None


def _statistics(array: Any) -> str:
    if array.size == 0:
        return "no elements"
    array = cuda.to_cpu(array)
    return f"mean={array.mean():.8f}, std={array.std():.8f}"


def _rebuild(
    cls: Any, array: Any, name: str | None, grad: Any, requires_grad: bool
) -> Variable:
    """The inverse of ``__reduce__``: a subclass's own ``__init__`` does not run."""
    var = cls.__new__(cls)
    _core.Variable.__init__(
        var, array, name=name, grad=grad, requires_grad=requires_grad
    )
    return var


def _refuse_comparison(self: Any, other: Any) -> bool:
    raise TypeError("Variable: expected arrays to compare (var.array), got a Variable")


for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(_core.Variable, f"__{_name}__", _refuse_comparison)


def check_loss(what: str, loss: object) -> None:
    """Raises TypeError unless a loss function has returned a Variable."""
    if not hasattr(loss, "backward"):
        kind = type(loss).__name__
        raise TypeError(
            f"{what}: expected a Variable from the loss function, got {kind}"
        )
