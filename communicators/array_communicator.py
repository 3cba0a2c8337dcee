"""Communication of arrays whose shapes every rank knows."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from renga.communicators import elements
from renga.communicators.communicator_base import CommunicatorBase
from renga.communicators.work import Work


class ArrayCommunicator(CommunicatorBase):
    """Collectives on arrays, each at once or in the background.

    With ``wait=False`` a method returns a :class:`Work` at once. Arrays may have
    any strides. Sums are made in rank order, so that all ranks get the same bits;
    those of 16-bit floats are made in float32.

    Raises:
        TimeoutError: a rank stayed away for ``RENGA_TIMEOUT`` seconds.
        InvalidType: the ranks ask for different things.
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
            ys = [np.empty(a.shape, a.dtype) for a in xs]
        else:
            ys = [out] if single else list(out)
        if not all(y.flags.writeable for y in ys):
            raise ValueError("all_reduce: expected an out that may be written to")
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
        y = np.empty(x.shape[1:], x.dtype) if out is None else out
        return _result(self._native.reduce_scatter(x, y, op, wait), wait, lambda: y)

    def all_gather(self, x: np.ndarray, out: Any = None, wait: bool = True) -> Any:
        """The ranks' arrays of one shape.

        Shapes:
            x: (...)
            result: (size, ...)
        """
        x = np.asarray(x)
        y = np.empty((self.size, *x.shape), x.dtype) if out is None else out
        native = self._native.all_gather(x, [y[r, ...] for r in range(self.size)], wait)
        return _result(native, wait, lambda: y)

    def all_to_all(self, x: np.ndarray, out: Any = None, wait: bool = True) -> Any:
        """Row ``r`` goes to rank ``r``; row ``r`` of the result comes from there.

        Shapes:
            x: (size, ...)
            result: (size, ...)
        """
        y = np.empty(x.shape, x.dtype) if out is None else out
        ranks = range(self.size)
        native = self._native.exchange(
            "all_to_all", [x[r, ...] for r in ranks], [y[r, ...] for r in ranks], wait
        )
        return _result(native, wait, lambda: y)

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
        count = int(np.prod(shape, dtype=np.int64))
        memory = self._native.window(count * dtype.itemsize)
        return memory.view(dtype).reshape(shape)

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


def _name(dtype: Any) -> str:
    """Of a dtype to travel as; "" for an array's own."""
    if dtype is None or isinstance(dtype, str):
        return dtype or ""
    return np.dtype(dtype).name


def _result(native: Any, wait: bool, finish: Callable[[], Any]) -> Any:
    return finish() if wait else Work(native, finish)
