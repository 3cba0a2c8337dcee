"""Communication of arrays whose shapes every rank knows."""

from __future__ import annotations

import math
import operator
from typing import Any, Callable

import numpy as np

from renga.communicators import elements
from renga.communicators.communicator_base import CommunicatorBase
from renga.communicators.work import Work

_MOST_BYTES = 2**62


class ArrayCommunicator(CommunicatorBase):
    """Collectives on arrays, each at once or in the background.

    With ``wait=False`` a method returns a :class:`Work` at once. Arrays may have
    any strides. Sums are made in rank order, so that all ranks get the same bits;
    those of 16-bit floats are made in float32. One thread at a time may be in a
    collective; messages may go from and to several.

    Raises:
        TimeoutError: a rank stayed away for ``RENGA_TIMEOUT`` seconds.
        InvalidType: the ranks ask for different things, or ``out`` has not the shape
            and dtype of the result. Nothing has been written.
        ValueError: ``out`` cannot be written into: it is read-only, of foreign byte
            order or misaligned, or its elements overlap.
        RuntimeError: another thread is in a collective of this communicator.
    """

    def __init__(self, native: Any) -> None:
        super().__init__()
        self._native = native
        for name in ("rank", "size"):
            setattr(self, name, getattr(native, name))
        for scope in ("intra", "inter"):
            for name in (f"{scope}_rank", f"{scope}_size"):
                setattr(self, name, getattr(native, name))

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        out: Any = None,
        wait: bool = True,
        dtype: Any = None,
    ) -> Any:
        """The sum, mean, max, min or prod of the ranks' arrays.

        ``x`` may be a list of arrays of one dtype, which travel together.
        Floating elements travel as ``dtype`` where it is given, such as float16 or
        ``"bfloat16"``. With ``out=x`` an array of :meth:`window` is reduced where
        it is.
        """
        if x is out and wait and dtype is None:
            if self._native.all_reduce_in_place(x, op):
                return x
        return self._all_reduce(x, op, out, wait, dtype)

    def _all_reduce(self, x: Any, op: str, out: Any, wait: bool, dtype: Any) -> Any:
        single = not isinstance(x, (list, tuple))
        xs = [np.asarray(a) for a in ([x] if single else x)]
        if out is None:
            ys = [empty_like(a) for a in xs]
        else:
            ys = [out] if single else list(out)
        if len(xs) != len(ys):
            raise ValueError(
                f"all_reduce: expected as many results as arrays, got {len(ys)} "
                f"for {len(xs)}"
            )
        for y in ys:
            if not isinstance(y, np.ndarray):
                raise TypeError(
                    f"all_reduce: out: expected a numpy.ndarray, got {type(y)}"
                )
        result = ys[0] if single else ys
        wire = _name(dtype)
        native = None
        if xs:
            sent = [view for a in xs for view in elements.views(a, op)]
            kept = [view for a in ys for view in elements.views(a, op)]
            native = self._native.all_reduce(sent, kept, op, wire, wait)
        return _result(native, wait, lambda: result)

    def update(self, updates: Any) -> None:
        """Carries out updates by the mean of the ranks' gradients, each rank a share.

        ``updates`` come from ``_core.optimizers.deferred_updates``, the same on all
        ranks but for the gradients, which become their means. All of their arrays lie
        where :meth:`place` has put them.
        """
        self._native.update(updates)

    def reduce_scatter(
        self, x: np.ndarray, op: str = "sum", out: Any = None, wait: bool = True
    ) -> Any:
        """The reduction of what the ranks have for this one.

        Shapes:
            x: (size, ...)
            result: (...)
        """
        x = as_rows("reduce_scatter", x)
        y = empty_like(x, x.shape[1:]) if out is None else out
        return _result(self._native.reduce_scatter(x, y, op, wait), wait, lambda: y)

    def all_gather(self, x: np.ndarray, out: Any = None, wait: bool = True) -> Any:
        """The ranks' arrays of one shape.

        Shapes:
            x: (...)
            result: (size, ...)
        """
        x = np.asarray(x)
        y = empty_like(x, (self.size, *x.shape)) if out is None else out
        return _result(self._native.all_gather(x, y, wait), wait, lambda: y)

    def all_to_all(self, x: np.ndarray, out: Any = None, wait: bool = True) -> Any:
        """Row ``r`` goes to rank ``r``; row ``r`` of the result comes from there.

        Shapes:
            x: (size, ...)
            result: (size, ...)
        """
        x = as_rows("all_to_all", x)
        y = empty_like(x) if out is None else out
        return _result(self._native.all_to_all(x, y, wait), wait, lambda: y)

    def broadcast(self, x: np.ndarray, root: int = 0, wait: bool = True) -> Any:
        """Overwrites ``x`` by the root's and returns it."""
        return _result(self._native.broadcast(x, root, wait), wait, lambda: x)

    def shares_memory(self) -> bool:
        """Whether the ranks of this node reduce through memory that they share."""
        return self._native.shares_memory

    def window(self, shape: Any, dtype: Any = np.float32) -> np.ndarray:
        """An array, not initialised, in memory that the ranks of the node share.

        Where all ranks are on one node, reducing it or parts of it in place copies
        nothing. Every rank calls this, and reduces the same parts of its array as
        the others.
        """
        dtype = np.dtype(dtype)
        if dtype.hasobject:
            raise TypeError(f"window: expected a dtype of numbers, got {dtype}")
        extents = tuple(map(operator.index, shape if np.iterable(shape) else (shape,)))
        size = math.prod(extents) * dtype.itemsize
        if min(extents, default=0) < 0 or size > _MOST_BYTES:
            raise ValueError(f"window: expected a shape, got {extents}")
        memory = self._native.window(size)
        return memory.view(dtype).reshape(extents)

    def place(self, xs: list[np.ndarray]) -> list[np.ndarray]:
        """Copies of arrays in memory that all ranks see; none where there is no such.

        Every rank calls it with arrays of the same shapes.
        """
        if self.size != self.intra_size:
            return []
        return self._native.place(xs)

    def places(self, xs: list[np.ndarray]) -> int:
        """A number that tells where arrays lie in memory that the ranks of a node see.

        It is 0 where one does not lie there.
        """
        return self._native.places(xs)

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._native.barrier()

    def abort(self, code: int = 1) -> None:
        """Ends every rank, because this one cannot go on."""
        self._native.abort(code)


def empty_like(x: np.ndarray, shape: Any = None) -> np.ndarray:
    """Room for a result, of native byte order."""
    return np.empty(x.shape if shape is None else shape, x.dtype.newbyteorder("="))


def as_rows(name: str, x: Any) -> np.ndarray:
    """An array with a row for each rank."""
    x = np.asarray(x)
    if x.ndim == 0:
        raise ValueError(f"{name}: expected a row for each rank, got no axes")
    return x


def _name(dtype: Any) -> str:
    """Of a dtype to travel as; "" for an array's own."""
    if dtype is None or isinstance(dtype, str):
        return dtype or ""
    return np.dtype(dtype).name


def _result(native: Any, wait: bool, finish: Callable[[], Any]) -> Any:
    return finish() if wait else Work(native, finish)
