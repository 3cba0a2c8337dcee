"""Conversion of a list of examples to arrays on a device."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import numpy

from renga import _core
from renga.backends import cuda
from renga.backends.device import DeviceLike
from renga.core import backend
from renga.core.types import Array


class Converter:
    """A callable that converts a list of examples to arrays on a device."""

    def __call__(self, batch: object, device: DeviceLike | None) -> object:
        """The arrays of ``batch`` on ``device``; None leaves them where they are."""
        raise NotImplementedError("Converter: expected a subclass with __call__")


class _FunctionConverter(Converter):
    def __init__(self, function: Callable[..., object]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1:
            batch, device, *rest = args
            args = (batch, _device_or_none(device), *rest)
        elif "device" in kwargs:
            kwargs["device"] = _device_or_none(kwargs["device"])
        return self._function(*args, **kwargs)


def converter() -> Callable[[Callable[..., object]], Converter]:
    """Decorator that makes a function of a batch and a Device a Converter."""
    return _FunctionConverter


def _device_or_none(device: Any) -> backend.Device | None:
    return None if device is None else backend.get_device(device)


def _call_converter(converter: Callable[..., Any], batch: Any, device: Any) -> Any:
    """Call a Converter with a Device, any other function with a GPU's number or -1."""
    if isinstance(converter, Converter) or device is None:
        return converter(batch, device)
    if isinstance(device, backend.GpuDevice):
        return converter(batch, device.device.id)
    return converter(batch, -1)


def arguments_from(
    converter: Callable[..., object], batch: object, device: DeviceLike | None
) -> tuple[tuple[object, ...], Mapping[str, object]]:
    """The arguments and keywords that a model gets for a list of examples."""
    arrays = _call_converter(converter, batch, device)
    if isinstance(arrays, Mapping):
        return (), arrays
    return arrays if isinstance(arrays, tuple) else (arrays,), {}


def to_device(device: DeviceLike | None, x: object) -> Any:
    """``x`` on a device, a specifier of one, or, for None, where it is."""
    return x if device is None else backend.get_device(device).send(x)


class Conveyor:
    """A queue of arrays on their way to a device: out in the order they came in.

    An array is copied to a GPU beside what the GPU computes between ``put`` and
    ``get``. The host waits for neither; ``stream`` is not used.
    """

    def __init__(self, device: DeviceLike | None = None, stream: object = None) -> None:
        self.device = _device_or_none(device)
        self._arrays: deque[Any] = deque()

    def put(self, array: Array) -> None:
        """Sends an array."""
        device = self.device
        if isinstance(device, backend.GpuDevice) and isinstance(array, numpy.ndarray):
            self._arrays.append(device.upload(array))
        else:
            self._arrays.append(to_device(device, array))

    def get(self, sync: bool = True) -> Array:
        """The oldest array sent; IndexError where there is none."""
        array = self._arrays.popleft()
        if not isinstance(array, _core.Variable):
            return array
        _core.wait_for_upload(array)
        return array.array


def _is_gpu(device: Any) -> bool:
    return isinstance(device, backend.GpuDevice)


def concat_examples_func(
    batch: Any, device: DeviceLike | None = None, padding: object = None
) -> Any:
    """Arrays with one more axis, one for every element of an example.

    Examples may be arrays or numbers, and tuples or dictionaries of them; the result
    has the same structure. With ``padding``, a value or a structure of values and
    None, smaller arrays are filled up at their ends to the largest.

    Shapes:
        examples: n times (s1, …, sk)
        return: (n, s1, …, sk)

    Raises:
        ValueError: the batch is empty, or arrays have different shapes.
        TypeError: an example cannot become an array.
    """
    if len(batch) == 0:
        raise ValueError("concat_examples: expected examples, got an empty batch")
    device = _device_or_none(device)
    first = batch[0]
    if isinstance(first, (tuple, dict)):
        _check_structures(batch, first)
    if isinstance(first, tuple):
        if not isinstance(padding, tuple):
            padding = (padding,) * len(first)
        return tuple(
            _concat([example[i] for example in batch], device, padding[i])
            for i in range(len(first))
        )
    if isinstance(first, dict):
        if not isinstance(padding, dict):
            padding = dict.fromkeys(first, padding)
        return {
            key: _concat([example[key] for example in batch], device, padding[key])
            for key in first
        }
    return _concat(batch, device, padding)


concat_examples: Converter = converter()(concat_examples_func)


def _elements(example: Any) -> Any:
    return len(example) if isinstance(example, tuple) else example.keys()


def _check_structures(batch: Any, first: Any) -> None:
    """Raises ValueError unless all examples have the elements that the first has."""
    kind = tuple if isinstance(first, tuple) else dict
    elements = _elements(first)
    for example in batch:
        if not isinstance(example, kind):
            raise ValueError(
                f"concat_examples: expected a {kind.__name__} like the first example, "
                f"got {type(example).__name__}"
            )
        found = _elements(example)
        if found != elements:
            raise ValueError(
                f"concat_examples: expected the elements of the first example, "
                f"{elements}, got {found}"
            )


def _concat(arrays: Sequence[Any], device: Any, padding: Any) -> Any:
    if not isinstance(arrays[0], (numpy.ndarray, cuda.ndarray)):
        joined = numpy.asarray(arrays)
        if joined.dtype.hasobject:
            raise TypeError(
                "concat_examples: expected arrays or numbers, "
                f"got {type(arrays[0]).__name__}"
            )
    elif padding is None:
        joined = _stack(arrays, device)
    else:
        joined = _stack_padded(arrays, padding, device)
    return to_device(device, joined)


def _empty(shape: tuple[int, ...], arrays: Sequence[Any], device: Any) -> Any:
    """An array for ``arrays``, in memory from which a GPU copies it by itself."""
    dtypes = {array.dtype for array in arrays}
    dtype = numpy.result_type(*dtypes)
    if not isinstance(arrays[0], numpy.ndarray):
        return backend.get_array_module(arrays[0]).empty(shape, dtype)
    if _is_gpu(device) and dtype.kind in "biuf" and dtype.itemsize <= 8:
        return device.pinned_empty(shape, dtype)
    return numpy.empty(shape, dtype)


def _stack(arrays: Sequence[Any], device: Any) -> Any:
    try:
        if not (_is_gpu(device) and all(isinstance(x, numpy.ndarray) for x in arrays)):
            return backend.get_array_module(arrays[0]).stack(arrays)
        joined = _empty((len(arrays), *arrays[0].shape), arrays, device)
        return numpy.stack(arrays, out=joined)
    except ValueError as error:
        shapes = sorted({numpy.shape(array) for array in arrays})
        raise ValueError(
            "concat_examples: expected arrays of one shape (or padding), "
            f"got {', '.join(map(str, shapes))}"
        ) from error


def _stack_padded(arrays: Sequence[Any], padding: Any, device: Any) -> Any:
    if len({array.ndim for array in arrays}) > 1:
        shapes = sorted({array.shape for array in arrays})
        raise ValueError(
            "concat_examples: expected arrays with the same number of axes, "
            f"got {', '.join(map(str, shapes))}"
        )
    shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays)))
    joined = _empty((len(arrays), *shape), arrays, device)
    joined[...] = padding
    for i, array in enumerate(arrays):
        joined[(i, *map(slice, array.shape))] = array
    return joined


class ConcatWithAsyncTransfer:
    """``concat_examples``, which overlaps copies to a GPU with what it computes anyway.

    The streams are not used.
    """

    def __init__(self, stream: object = None, compute_stream: object = None) -> None:
        self.stream = stream
        self.compute_stream = compute_stream

    def __call__(
        self,
        batch: Sequence[object],
        device: DeviceLike | None = None,
        padding: object = None,
    ) -> Any:
        """As ``concat_examples``."""
        return concat_examples_func(batch, device, padding)
