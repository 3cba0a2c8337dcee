"""Private names of ``chainer.utils``, ``initializers``, ``gradient_check``, readers."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from renga.core.backend import get_array_types
from renga.core.initializer import Initializer
from renga.gradient_check.checks import check_backward, unit_vectors

# chainer.utils


def _raise_from(exc_type: type[Exception], message: str, orig_exc: Exception) -> None:
    """Raises an exception with the text of another one, which caused it."""
    cause = f"{type(orig_exc).__name__}: {orig_exc}"
    raise exc_type(f"{message}\n\n(caused by)\n{cause}\n") from orig_exc


def _format_array_props(arrays: Iterable[Any]) -> str:
    """The shapes and dtypes of arrays, None of what is None."""
    return ", ".join(
        "None" if array is None else f"{array.shape}:{array.dtype}" for array in arrays
    )


# chainer.utils.precision


def _fp16_mixed_precision_helper(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of ``forward``: float16 is computed in float32.

    Outputs of float32 become float16 again, unless an input had more precision.
    """

    @functools.wraps(forward)
    def call(self: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        floats = [x.dtype for x in inputs if x is not None and x.dtype.kind == "f"]
        outputs = forward(self, tuple(_cast(x, "e", "f") for x in inputs))
        if any(dtype != numpy.float16 for dtype in floats):
            return outputs
        return tuple(_cast(y, "f", "e") for y in outputs)

    return call


def _cast(array: Any, before: str, after: str) -> Any:
    if array is None or array.dtype.char != before:
        return array
    return array.astype(after)


# chainer.initializers


def _check_is_initializer_like(initializer: Any) -> None:
    """Raises TypeError unless a parameter can be filled by ``initializer``."""
    kinds = (Initializer, *get_array_types())
    known = initializer is None or isinstance(initializer, kinds)
    if not (known or callable(initializer) or numpy.isscalar(initializer)):
        raise TypeError(
            "initializer: expected an Initializer, a function, an array or a number, "
            f"got {type(initializer).__name__}"
        )


# chainer.gradient_check


class _CheckBackward:
    """Draws the direction along which ``check_backward`` moves the inputs."""

    @staticmethod
    def _sample_unit_vector(size: int, xp: Any) -> Any:
        """A random vector of length 1, none of whose elements is close to 0."""
        return xp.asarray(unit_vectors([(size,)])[0])


def _check_backward_with_params(
    func: Callable[..., Any],
    x_data: Any,
    y_grad: Any,
    params: Any = (),
    *args: Any,
    **kwargs: Any,
) -> None:
    """``check_backward`` of ``func(inputs, params)``, both of which are tuples."""
    params = params if isinstance(params, (tuple, list)) else (params,)

    def call(*xs: object) -> Any:
        return func(xs, tuple(params))

    check_backward(call, x_data, y_grad, params, *args, **kwargs)


# chainer.datasets.pickle_dataset


class _FileReader:
    """A file of a data set, which each process that is forked opens for itself."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self._file = open(path, "rb")  # noqa: SIM115
        self._pid = os.getpid()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_path"])  # type: ignore[misc]

    def after_fork(self) -> None:
        """Opens the file again: processes that share one share its position, too."""
        if self._pid != os.getpid():
            self._file.close()
            self.__init__(self._path)  # type: ignore[misc]
