"""Functions of NumPy on Variables: those of renga, which keep the graph.

This module defines ``Variable.__array_function__`` and ``Variable.__array_ufunc__``.
"""

from __future__ import annotations

import inspect
import numbers
import operator
from collections.abc import Sequence
from typing import Any, Callable

import numpy

from renga import _core, functions as F
from renga.core.around_call import map_variables, variables_in
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.array.cast import promoted

# The operators, and their methods for an array on the left.
_OPERATORS: dict[Any, Callable[..., Any]] = {
    numpy.add: operator.add,
    numpy.subtract: operator.sub,
    numpy.multiply: operator.mul,
    numpy.true_divide: operator.truediv,
    numpy.floor_divide: operator.floordiv,
    numpy.power: operator.pow,
    numpy.matmul: operator.matmul,
}
_REFLECTED: dict[Any, Callable[..., Any]] = {
    ufunc: getattr(Variable, f"__r{apply.__name__}__")
    for ufunc, apply in _OPERATORS.items()
}
_UFUNCS: dict[Any, Callable[..., Any]] = {
    numpy.negative: operator.neg,
    numpy.positive: operator.pos,
    numpy.absolute: abs,
    numpy.fabs: abs,
    numpy.reciprocal: lambda x: 1 / x,
    **_OPERATORS,
    **{
        getattr(numpy, name): getattr(F, name)
        for name in (
            "arccos arcsin arctan arctan2 arctanh ceil cos cosh exp exp2 expm1 floor "
            "fmod log log10 log1p log2 maximum minimum sign sin sinh sqrt square tan "
            "tanh"
        ).split()
        if hasattr(F, name)
    },
}
_COMPARISONS = (
    *(numpy.less, numpy.less_equal, numpy.equal),
    *(numpy.not_equal, numpy.greater, numpy.greater_equal),
)
_UFUNCS_WITHOUT_DERIVATIVE = (
    *(numpy.isfinite, numpy.isinf, numpy.isnan, numpy.signbit, numpy.rint),
    *(numpy.logical_and, numpy.logical_or, numpy.logical_not, numpy.logical_xor),
)


def array_ufunc(
    self: Variable, ufunc: numpy.ufunc, method: str, *inputs: object, **options: object
) -> object:
    """A ufunc, as the operators of Variables and the functions of renga compute it.

    ``array += variable`` gives a Variable and leaves the array as it is.
    """
    if method == "__call__":
        # The operators of arrays come first: they are called most often.
        left = inputs[0]
        if left is not self and ufunc in _REFLECTED:
            if not options or _is_in_place(left, options):
                return _REFLECTED[ufunc](self, left)
        if ufunc in _COMPARISONS:
            raise TypeError(
                "Variable: expected arrays to compare (var.array), got a Variable"
            )
        if ufunc in _UFUNCS and not options:
            return _UFUNCS[ufunc](*map(_operand, inputs))
        if ufunc in _UFUNCS_WITHOUT_DERIVATIVE:
            plain: Any = ufunc
            return plain(*_with_arrays(inputs), **options)
    name = ufunc.__name__
    if getattr(numpy, name, None) is ufunc:  # others are SciPy's
        name = f"numpy.{name}"
    raise _refusal(name if method == "__call__" else f"{name}.{method}")


def array_function(
    self: Variable,
    function: Callable[..., object],
    types: Sequence[type],
    args: Sequence[object],
    kwargs: dict[str, object],
) -> object:
    """A NumPy function that is no ufunc.

    It is that of renga, if there is one and a Variable is of floats. Others get the
    elements: if they have no derivative, or no gradient is asked for.

    Raises:
        TypeError: a gradient would be lost.
    """
    floats = [x for x in variables_in((args, kwargs)) if x.dtype.kind == "f"]
    ours = _FUNCTIONS.get(function)
    if ours is not None and floats and _fits(function, args, kwargs):
        return ours(*args, **kwargs)
    if function not in _WITHOUT_DERIVATIVE and _core.backprop_enabled():
        if any(x.requires_grad for x in floats):
            raise _refusal(_name_of(function))
    return function(*_with_arrays(args), **_with_arrays(kwargs))


def _is_in_place(left: Any, options: dict[str, Any]) -> bool:
    """Whether the options are those that ``+=`` gives, or ``@=`` with its ``axes``."""
    return options.get("out", (None,))[0] is left and options.keys() <= {"out", "axes"}


def _refusal(name: str) -> TypeError:
    return TypeError(
        f"{name}: expected arrays, got a Variable, whose gradient would be lost: "
        "give var.array, or call a function of renga.functions"
    )


def _name_of(function: Any) -> str:
    return f"{function.__module__ or 'numpy'}.{function.__name__}"


def _fits(function: Any, args: Any, kwargs: Any) -> bool:
    """Whether renga's function has these arguments (``out`` and ``where`` it lacks)."""
    try:
        _SIGNATURES[function].bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _with_arrays(arguments: Any) -> Any:
    """``arguments`` with arrays for the Variables, in lists, tuples and dicts too."""
    return map_variables(numpy.asarray, arguments)


def _operand(x: Any) -> Any:
    return x if isinstance(x, Variable) else numpy.asarray(x)


def _operands(*xs: Any) -> list[Any]:
    """The arguments in one dtype; Python's numbers in that of the others."""
    known = [x for x in xs if hasattr(x, "dtype")]
    dtype = promoted(*known)[0].dtype
    weak = (bool, int, float)
    return promoted(
        *(numpy.asarray(x, dtype) if type(x) in weak else _operand(x) for x in xs)
    )


def _reduction(name: str) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return getattr(F, name)(a, axis, keepdims=keepdims)

    return reduced


def _average(
    a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False
) -> Any:
    if weights is not None:
        a, weights = _operands(a, weights)
    return F.average(a, axis, weights, keepdims)


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    numbers = all(x is None or numpy.isscalar(x) for x in (a_min, a_max))
    if numbers and (a_min is None or a_max is None or a_min < a_max):
        return F.clip(a, a_min, a_max)
    for limit, bound in ((F.maximum, a_min), (F.minimum, a_max)):
        if bound is not None:
            pair: Any = F.broadcast(*_operands(a, bound))
            a = limit(*pair)
    return a


def _reshape(a: Any, shape: Any) -> Any:
    is_extent = isinstance(shape, numbers.Integral)
    return F.reshape(a, (shape,) if is_extent else tuple(shape))


def _shaped_like(x: Any) -> numpy.ndarray:
    """An array of one number, for NumPy's functions of shapes."""
    return numpy.broadcast_to(False, x.shape)


def _expand_dims(a: Any, axis: Any) -> Any:
    return F.reshape(a, numpy.expand_dims(_shaped_like(a), axis).shape)


def _at_least(n: int) -> Callable[..., Any]:
    """numpy.atleast_nd: axes of one element are added in NumPy's places."""

    def extended(*arys: object) -> Any:
        ys = [
            F.reshape(x, numpy_function(_shaped_like(x)).shape)
            for x in map(_operand, arys)
        ]
        return ys[0] if len(ys) == 1 else tuple(ys)

    numpy_function = (numpy.atleast_1d, numpy.atleast_2d, numpy.atleast_3d)[n - 1]
    return extended


def _concatenate(arrays: Any, axis: int | None = 0) -> Any:
    xs = _operands(*arrays)
    return (
        F.concat(xs, axis) if axis is not None else F.concat([*map(F.flatten, xs)], 0)
    )


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    condition = numpy.asarray(as_array(condition), bool)
    if x is None and y is None:
        return numpy.where(condition)
    if x is None or y is None:
        raise ValueError("numpy.where: expected both x and y or neither, got one")
    x, y = _operands(x, y)
    shape = numpy.broadcast_shapes(condition.shape, x.shape, y.shape)
    return F.where(
        numpy.broadcast_to(condition, shape),
        F.broadcast_to(as_variable(x), shape),
        F.broadcast_to(as_variable(y), shape),
    )


def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    given = numpy.asarray(repeats)
    return F.repeat(a, tuple(given.tolist()) if given.ndim else given.item(), axis)


def _flip(m: Any, axis: Any = None) -> Any:
    numpy.flip(_shaped_like(m), axis)  # which refuses what are no axes
    for each in range(m.ndim) if axis is None else numpy.ravel(axis).tolist():
        m = F.flip(m, each)
    return m


def _pad(array: Any, pad_width: Any, mode: str = "constant", **options: Any) -> Any:
    return F.pad(array, pad_width, mode, **options)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return list(F.split_axis(ary, indices_or_sections, axis))


def _dot(a: Any, b: Any) -> Any:
    a, b = _operands(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return as_variable(a) * b
    return F.tensordot(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = _operands(a, b)
    return F.tensordot(a, b, axes)


def _einsum(*operands: Any, optimize: Any = False) -> Any:
    return F.einsum(*operands)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    numpy.sum: _reduction("sum"),
    numpy.prod: _reduction("prod"),
    numpy.max: _reduction("max"),
    numpy.amax: _reduction("max"),
    numpy.min: _reduction("min"),
    numpy.amin: _reduction("min"),
    numpy.mean: _reduction("mean"),
    numpy.average: _average,
    numpy.cumsum: lambda a, axis=None: F.cumsum(a, axis),
    numpy.cumprod: lambda a, axis=None: F.cumprod(a, axis),
    numpy.clip: _clip,
    numpy.transpose: lambda a, axes=None: F.transpose(a, axes),
    numpy.reshape: _reshape,
    numpy.ravel: lambda a: F.flatten(a),
    numpy.squeeze: lambda a, axis=None: F.squeeze(a, axis),
    numpy.expand_dims: _expand_dims,
    numpy.atleast_1d: _at_least(1),
    numpy.atleast_2d: _at_least(2),
    numpy.atleast_3d: _at_least(3),
    numpy.swapaxes: lambda a, axis1, axis2: F.swapaxes(a, axis1, axis2),
    numpy.moveaxis: lambda a, source, destination: F.moveaxis(a, source, destination),
    numpy.rollaxis: lambda a, axis, start=0: F.rollaxis(a, axis, start),
    numpy.broadcast_to: lambda array, shape: F.broadcast_to(array, shape),
    numpy.broadcast_arrays: lambda *args: F.broadcast(*map(_operand, args)),
    numpy.concatenate: _concatenate,
    numpy.stack: lambda arrays, axis=0: F.stack(_operands(*arrays), axis),
    numpy.vstack: lambda tup: F.vstack(_operands(*tup)),
    numpy.hstack: lambda tup: F.hstack(_operands(*tup)),
    numpy.dstack: lambda tup: F.dstack(_operands(*tup)),
    numpy.where: _where,
    numpy.tile: lambda A, reps: F.tile(A, reps),
    numpy.repeat: _repeat,
    numpy.flip: _flip,
    numpy.fliplr: lambda m: F.fliplr(m),
    numpy.flipud: lambda m: F.flipud(m),
    numpy.diagonal: lambda a, offset=0, axis1=0, axis2=1: F.diagonal(
        a, offset, axis1, axis2
    ),
    numpy.pad: _pad,
    numpy.split: _split,
    numpy.copy: lambda a: F.copy(a, a.device),
    numpy.dot: _dot,
    numpy.tensordot: _tensordot,
    numpy.einsum: _einsum,
    numpy.linalg.inv: lambda a: F.inv(a) if a.ndim == 2 else F.batch_inv(a),
    numpy.linalg.det: lambda a: F.det(a) if a.ndim == 2 else F.batch_det(a),
    numpy.linalg.cholesky: lambda a: F.cholesky(a),
}
_SIGNATURES = {key: inspect.signature(ours) for key, ours in _FUNCTIONS.items()}
_WITHOUT_DERIVATIVE = {
    getattr(numpy, name)
    for name in (
        "shape ndim size argmax argmin nanargmax nanargmin argsort argpartition "
        "lexsort argwhere nonzero flatnonzero count_nonzero searchsorted digitize "
        "histogram histogram2d histogramdd histogram_bin_edges bincount allclose "
        "isclose array_equal array_equiv all any isin result_type can_cast "
        "min_scalar_type common_type may_share_memory shares_memory iscomplex "
        "iscomplexobj isreal isrealobj isposinf isneginf zeros_like ones_like "
        "empty_like full_like save savez savez_compressed savetxt array2string "
        "array_repr array_str copyto put place putmask around round fix"
    ).split()
}


class _OfTypes:
    """A method that NumPy finds on the type, and an object does not have.

    CuPy asks objects: where ``__array_ufunc__`` is None, its operators leave the
    operation to those of the object.
    """

    def __get__(self, variable: Any, owner: type) -> Any:
        return array_ufunc if variable is None else None


Variable.__array_ufunc__ = _OfTypes()  # type: ignore[assignment, method-assign]
Variable.__array_function__ = array_function  # type: ignore[method-assign]
