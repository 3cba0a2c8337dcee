"""Gathers all parameters of a link, or their gradients, in one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from renga.backends import cuda
from renga.core import backend
from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.types import Array


def size_num_grads(link: Link) -> tuple[int, int]:
    """The number of elements of a link's parameters, and of those that have any."""
    sizes = [param.size for param in link.params() if param.size]
    return sum(sizes), len(sizes)


def gather_grads(link: Link) -> Array:
    """The gradients of a link on a GPU in one array; RuntimeError on the CPU."""
    _require_gpu("gather_grads", link)
    return gather(link, "grad")


def gather_params(link: Link) -> Array:
    """The parameters of a link on a GPU in one array; RuntimeError on the CPU."""
    _require_gpu("gather_params", link)
    return gather(link, "data")


def scatter_grads(link: Link, array: Array) -> None:
    """Writes what ``gather_grads`` gathered into the gradients of a link."""
    scatter(link, array, "grad")


def scatter_params(link: Link, array: Array) -> None:
    """Writes what ``gather_params`` gathered into the parameters of a link."""
    scatter(link, array, "data")


def gather(link: Link, attribute: str) -> Array:
    """The ``data`` or ``grad`` of all parameters in the order of their names.

    Gradients that are None count as zeros. The dtype is float32, or float64 if any
    parameter's is.
    """
    params = [param for param, _ in _slices(link)]
    dtype = numpy.result_type(numpy.float32, *(param.dtype for param in params))
    with backend.using_device(link.device):
        gathered = link.xp.empty(size_num_grads(link)[0], dtype)
        for param, where in _slices(link):
            x = getattr(param, attribute)
            gathered[where] = 0 if x is None else x.ravel().astype(dtype)
    return gathered


def scatter(link: Link, array: Array, attribute: str) -> None:
    """Writes an array of ``gather`` back; creates gradients that are None."""
    with backend.using_device(link.device):
        for param, where in _slices(link):
            x = array[where].reshape(param.shape).astype(param.dtype)
            target = getattr(param, attribute)
            if target is None:
                setattr(param, attribute, x)
            else:
                target[...] = x


def _slices(link: Any) -> Iterator[tuple[Any, slice]]:
    begin = 0
    for each in distinct_params(link):
        if each.param.size:
            end = begin + each.param.size
            yield each.param, slice(begin, end)
            begin = end


def _require_gpu(name: str, link: Any) -> None:
    if not isinstance(link.device, cuda.GpuDevice):
        raise RuntimeError(f"{name}: expected a link on a GPU, got {link.device}")
