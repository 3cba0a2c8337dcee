"""A group of ranks that each have a GPU."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from renga.communicators import settings
from renga.communicators.mpi import MpiCommunicator
from renga.communicators.work import Work


class NcclCommunicator(MpiCommunicator):
    """Moves arrays of GPUs by NCCL, and everything else as ``mpi`` does.

    An array of a GPU is what has ``__cuda_array_interface__``. Rank ``r`` of a node
    uses GPU ``r``.
    """

    _formed: Any = None

    @property
    def _clique(self) -> Any:
        """Formed at the first use, which all ranks make together."""
        if self._formed is None:
            native = importlib.import_module("renga._communicators_nccl")
            mine = native.new_identity() if self.rank == 0 else None
            identity = self.bcast_obj(mine)
            self._formed = native.Clique(
                identity, self.rank, self.size, self.intra_rank, settings.timeout()
            )
        return self._formed

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        out: Any = None,
        wait: bool = True,
        dtype: Any = None,
    ) -> Any:
        """The sum, mean, max, min or prod; sums are made in NCCL's own order."""
        single = not isinstance(x, (list, tuple))
        xs = [x] if single else list(x)
        if not xs or not _on_gpu(xs[0]):
            return super().all_reduce(x, op, out, wait, dtype)
        outs = [None] * len(xs) if out is None else [out] if single else list(out)
        works, results = [], []
        for a, y in zip(xs, outs):
            sent = _contiguous(a if dtype is None else a.astype(dtype))
            kept = sent if dtype is not None else _place(y, sent)
            works.append(
                self._clique.all_reduce(
                    _address(sent), _address(kept), sent.size, sent.dtype.name, op
                )
            )
            results.append(_arrived(kept, a if y is None else y, y is not None))
        result = results[0] if single else results
        return self._over(works, result, wait)

    def reduce_scatter(
        self, x: Any, op: str = "sum", out: Any = None, wait: bool = True
    ) -> Any:
        """The reduction of what the ranks have for this one."""
        if not _on_gpu(x):
            return super().reduce_scatter(x, op, out, wait)
        sent = _contiguous(x)
        y = _place(out, sent[0])
        work = self._clique.reduce_scatter(
            _address(sent), _address(y), sent.size, sent.dtype.name, op
        )
        return self._over([work], y, wait)

    def all_gather(self, x: Any, out: Any = None, wait: bool = True) -> Any:
        """The ranks' arrays of one shape."""
        if not _on_gpu(x):
            return super().all_gather(x, out, wait)
        sent = _contiguous(x)
        y = sent.repeat(self.size).reshape(self.size, *sent.shape)
        y = y if out is None else _place(out, y)
        work = self._clique.all_gather(
            _address(sent), _address(y), sent.size, sent.dtype.name
        )
        return self._over([work], y, wait)

    def all_to_all(self, x: Any, out: Any = None, wait: bool = True) -> Any:
        """Row ``r`` goes to rank ``r``; row ``r`` of the result comes from there."""
        if not _on_gpu(x):
            return super().all_to_all(x, out, wait)
        sent = _contiguous(x)
        y = _place(out, sent)
        work = self._clique.all_to_all(
            _address(sent), _address(y), sent.size, sent.dtype.name
        )
        return self._over([work], y, wait)

    def broadcast(self, x: Any, root: int = 0, wait: bool = True) -> Any:
        """Overwrites ``x`` by the root's and returns it."""
        if not _on_gpu(x):
            return super().broadcast(x, root, wait)
        _place(x, x)
        root = self._root("broadcast", root)
        work = self._clique.broadcast(_address(x), x.size, x.dtype.name, root)
        return self._over([work], x, wait)

    @staticmethod
    def _over(works: list[Any], result: Any, wait: bool) -> Any:
        last = Work(works[-1], lambda: result)  # one stream carries them in order
        return last.wait() if wait else last


def _on_gpu(x: Any) -> bool:
    return hasattr(x, "__cuda_array_interface__")


def _address(x: Any) -> int:
    return int(x.__cuda_array_interface__["data"][0])


def _contiguous(x: Any) -> Any:
    strides = x.__cuda_array_interface__.get("strides")
    expected = np.empty(x.shape, np.int8).strides
    packed = strides is None or tuple(strides) == tuple(
        step * x.dtype.itemsize for step in expected
    )
    return x if packed else x.copy()


def _place(out: Any, like: Any) -> Any:
    """Where a result goes: ``out``, or a new array.

    Raises:
        ValueError: ``out`` has gaps, or another shape or dtype.
    """
    if out is None:
        return like.copy()
    form = (like.shape, like.dtype)
    if _contiguous(out) is not out or (out.shape, out.dtype) != form:
        raise ValueError(
            f"nccl: expected a contiguous result of {like.dtype} {like.shape}, "
            f"got {out.dtype} {out.shape} with strides {out.strides}"
        )
    return out


def _arrived(kept: Any, goal: Any, overwrite: bool) -> Any:
    """What was kept, in the dtype of ``goal`` and in its place if asked for."""
    if kept is goal or (kept.dtype == goal.dtype and not overwrite):
        return kept
    if not overwrite:
        return kept.astype(goal.dtype)
    goal[...] = kept
    return goal
