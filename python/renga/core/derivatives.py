"""Derivatives along vectors, of second order, and of each sample, from gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy

from renga.core.backend import get_array_types
from renga.core.configuration import force_backprop_mode
from renga.core.function_node import requiring_graphs
from renga.core.gradients import grad
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.utils.type_check import InvalidType

_Result = TypeVar("_Result")


def jvp(
    function: Callable[..., _Result],
    inputs: Iterable[ArrayLike],
    tangents: Iterable[ArrayLike],
) -> tuple[_Result, _Result]:
    """The results of ``function(*inputs)``, and their derivative along ``tangents``.

    The derivative is the Jacobian matrix times the tangents. It takes two backward
    passes: gradients are linear in the vectors that the first one starts from, and
    their gradients with respect to these are the product.

    >>> import numpy, renga
    >>> inputs, tangents = ([2.0, 3.0], [5.0, 7.0]), ([1, 0], [0, 1])
    >>> y, dy = renga.jvp(lambda a, b: a * b, inputs, tangents)
    >>> y.array.tolist(), dy.array.tolist()
    ([10.0, 21.0], [5.0, 3.0])

    Args:
        function: returns a Variable, or a tuple or list of them.
        inputs: arrays or Variables. Parameters that the function uses may be some: then
            it need not use its arguments.
        tangents: for each input a vector of its shape.

    Returns:
        Two Variables, or two tuples of them.

    Raises:
        InvalidType: an input is not of floats, or a tangent has another shape.
        RuntimeError: a function in it cannot be differentiated twice.
        TypeError: inputs are no tuple or list, or outputs no Variables.
        ValueError: there are more or fewer tangents than inputs.
    """
    run = _Run("jvp", function, inputs)
    products = run.backward(run.vectors(tangents), run.weights)
    result: Any = run.result
    dy: Any = products[0] if result is run.outputs[0] else tuple(products)
    return result, dy


def hvp(
    function: Callable[..., object],
    inputs: Iterable[ArrayLike],
    vectors: Iterable[ArrayLike],
) -> list[Variable]:
    """The Hessian matrix of a loss times vectors; the matrix itself is not computed.

    >>> import renga, renga.functions as F
    >>> (product,) = renga.hvp(lambda x: F.sum(x**3), [[1.0, 2.0]], [[1, 10]])
    >>> product.array.tolist()
    [6.0, 120.0]

    Args:
        function: returns a loss, a Variable of one element.
        inputs, vectors: as the tangents of ``jvp``.

    Raises:
        ValueError: the loss has more elements.
        Exception: as ``jvp``.
    """
    run = _Run("hvp", function, inputs, is_loss=True)
    return run.backward(run.vectors(vectors), run.inputs)


def hessian(
    function: Callable[..., object], inputs: Iterable[ArrayLike]
) -> list[list[Variable]]:
    """The Hessian matrix of a loss: a block for each pair of inputs.

    The block of inputs ``a`` and ``b`` has the shape ``a.shape + b.shape``. There is a
    backward pass for each element of the inputs.

    >>> import renga, renga.functions as F
    >>> ((block,),) = renga.hessian(F.prod, [[2.0, 3.0, 4.0]])
    >>> block.array.tolist()
    [[0.0, 4.0, 3.0], [4.0, 0.0, 2.0], [3.0, 2.0, 0.0]]

    Args:
        function, inputs: as for ``hvp``.

    Raises:
        Exception: as ``hvp``.
    """
    run = _Run("hessian", function, inputs, is_loss=True)
    blocks = []
    for i, a in enumerate(run.inputs):
        rows = []
        for k in range(a.size):
            vector = a.xp.zeros(a.shape, a.dtype)
            vector.reshape(-1)[k] = 1
            vectors = [None] * i + [Variable(vector)]
            rows.append(run.backward(vectors, run.inputs))
        blocks.append(
            [
                _stacked([row[j] for row in rows], b).reshape(a.shape + b.shape)
                for j, b in enumerate(run.inputs)
            ]
        )
    return blocks


def per_sample_grad(
    function: Callable[..., object], inputs: Iterable[ArrayLike], *batch: ArrayLike
) -> list[Variable]:
    """The gradients of the loss of each sample of a batch, stacked along a new axis 0.

    The function is called for one sample after the other, with arrays whose first axis
    has the extent 1.

    >>> import numpy, renga, renga.functions as F, renga.links as L
    >>> model = L.Linear(2, 1, initialW=1)
    >>> x, t = numpy.float32([[1, 0], [0, 2]]), numpy.float32([[0], [1]])
    >>> gW, gb = renga.per_sample_grad(
    ...     lambda x, t: F.sum((model(x) - t) ** 2), [model.W, model.b], x, t
    ... )
    >>> gW.array.tolist(), gb.array.tolist()
    ([[[2.0, 0.0]], [[0.0, 4.0]]], [[2.0], [2.0]])

    Args:
        function: of a batch; returns a loss, a Variable of one element.
        inputs: parameters and other Variables that the loss depends on.
        batch: arrays or Variables with samples along axis 0.

    Raises:
        InvalidType: arrays of the batch have different lengths, or no samples.
        TypeError: inputs are no tuple or list, or the loss is no Variable.
        ValueError: the loss has more elements.
    """
    xs = _variables("per_sample_grad", inputs)
    shapes = [getattr(x, "shape", ()) for x in batch]
    lengths = {shape[0] if shape else 0 for shape in shapes}
    if len(lengths) != 1 or 0 in lengths:
        raise InvalidType(
            "per_sample_grad: expected arrays of as many samples, one or more, got "
            f"shapes {shapes}"
        )
    found = []
    for n in range(*lengths):
        with force_backprop_mode():
            loss = function(*[x[n : n + 1] for x in batch])
        ys = _outputs("per_sample_grad", loss, is_loss=True)
        found.append(_filled(grad(ys, xs), xs))
    return [_stacked([gs[i] for gs in found], x) for i, x in enumerate(xs)]


class _Run:
    """A run of a function, with gradients that can be differentiated.

    Attributes:
        inputs: as Variables.
        result, outputs: what the function has returned, and its Variables.
        weights: the vectors that the backward pass has started from: ones.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        inputs: Iterable[ArrayLike],
        is_loss: bool = False,
    ) -> None:
        self._name, self.inputs = name, _variables(name, inputs)
        with force_backprop_mode(), requiring_graphs(name):
            self.result = function(*self.inputs)
            self.outputs = _outputs(name, self.result, is_loss)
            self.weights = [Variable(y.xp.ones_like(y.array)) for y in self.outputs]
            self._gradients = grad(
                self.outputs, self.inputs, self.weights, enable_double_backprop=True
            )

    def vectors(self, given: Iterable[Any]) -> list[Variable]:
        """Variables of the shapes and dtypes of the inputs."""
        arrays = [as_array(v) for v in given]
        if len(arrays) != len(self.inputs):
            raise ValueError(
                f"{self._name}: expected {len(self.inputs)} vectors, got {len(arrays)}"
            )
        pairs = zip(self.inputs, arrays)
        vectors = [Variable(x.xp.asarray(v, x.dtype)) for x, v in pairs]
        if any(x.shape != v.shape for x, v in zip(self.inputs, vectors)):
            raise InvalidType(
                f"{self._name}: expected vectors of the shapes "
                f"{[x.shape for x in self.inputs]}, got {[v.shape for v in vectors]}"
            )
        return vectors

    def backward(
        self, vectors: Sequence[Variable | None], targets: list[Variable]
    ) -> list[Variable]:
        """The gradients of the products of gradients and vectors."""
        pairs = zip(self._gradients, vectors)
        known = [(g, v) for g, v in pairs if g is not None and v is not None]
        gs, vs = [g for g, _ in known], [v for _, v in known]
        return _filled(grad(gs, targets, vs), targets)


def _variables(name: str, inputs: Iterable[ArrayLike]) -> list[Variable]:
    array_types: Any = get_array_types()
    is_array = isinstance(inputs, (Variable, *array_types))
    if is_array or not isinstance(inputs, Iterable):
        raise TypeError(
            f"{name}: expected a tuple or list of inputs, got {type(inputs).__name__}"
        )
    arrays = (Variable, *array_types)
    given = [x if isinstance(x, arrays) else numpy.asarray(x) for x in inputs]
    xs = [x if isinstance(x, Variable) else Variable(x) for x in given]
    for x in xs:
        if x.array is None or x.dtype.kind != "f" or not x.requires_grad:
            raise InvalidType(
                f"{name}: expected inputs of floats that require gradients, got "
                f"{x.summary()}"
            )
    return xs


def _outputs(name: str, result: Any, is_loss: bool) -> list[Variable]:
    ys = list(result) if isinstance(result, (tuple, list)) else [result]
    if not ys or not all(isinstance(y, Variable) for y in ys):
        raise TypeError(
            f"{name}: expected a function that returns Variables, got "
            f"{type(result).__name__} of {[type(y).__name__ for y in ys]}"
        )
    if is_loss and [y.size for y in ys] != [1]:
        raise ValueError(
            f"{name}: expected a loss of one element, got {[y.shape for y in ys]}"
        )
    return ys


def _filled(gradients: Sequence[Variable | None], xs: list[Variable]) -> list[Variable]:
    """With zeros for what nothing depends on."""
    return [
        Variable(x.xp.zeros_like(x.array)) if g is None else g
        for g, x in zip(gradients, xs)
    ]


def _stacked(gradients: Sequence[Variable], x: Variable) -> Variable:
    stacked = x.xp.empty((len(gradients), *x.shape), x.dtype)
    for y, g in zip(stacked, gradients):
        y[...] = g.array
    return Variable(stacked)
