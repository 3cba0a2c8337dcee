"""Which sharded parameters a thread's functions read, and when they are gathered."""

from __future__ import annotations

import bisect
import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from renga import _core
from renga.distributed.data_parallel.sharded_parameters.backward_ladder import (
    BackwardLadder,
)
from renga.distributed.data_parallel.sharded_parameters.node_parameter import (
    PlacedParameter,
    unit_of,
)
from renga.functions.util.recomputation import is_recomputable
from renga.variable import Variable

if TYPE_CHECKING:
    from renga.distributed.data_parallel.sharded_parameters.gathered_unit import (
        GatheredUnit,
    )

_KEPT = 1  # units that forward passes keep besides those of the present operation


class ParameterReads:
    """Gathers units before functions of a thread read them, forward and backward.

    The core asks it what to call each operation with
    (``_core.set_call_placement``). It notes the ranks of graph nodes that read a unit;
    in backward passes the unit is gathered before nodes of these ranks run.

    Attributes:
        inner: asked next; None to call operations with what they are given.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self._read_at: dict[int, weakref.WeakSet[GatheredUnit]] = {}
        self._ranks: list[int] = []  # at which units are read, in order
        # In the order of use.
        self._gathered: weakref.WeakKeyDictionary[GatheredUnit, None]
        self._gathered = weakref.WeakKeyDictionary()
        self._ladder = BackwardLadder(self._before_rank)
        self._units_read: list[
            tuple[Any, GatheredUnit]
        ] = []  # by the present operation
        self._inputs: set[Any] = set()  # its graph nodes
        self._frees = False
        self._is_in_pass = False

    def place(self, label: str, xs: list[Variable]) -> list[Variable]:
        """The variables to call an operation with."""
        self._units_read = self._units_of(xs)
        if self._units_read:
            self._inputs = {x.node for x in xs}
            for _, unit in self._units_read:
                self._gather(unit)
        if self.inner is None:
            return xs
        placed: list[Variable] = self.inner.place(label, xs)
        return placed

    def placed(self, ys: list[Variable]) -> None:
        """Takes the operation's outputs."""
        if self.inner is not None:
            self.inner.placed(ys)
        if self._units_read:
            read, self._units_read = self._units_read, []
            if not self._is_in_pass:
                self._note(read, ys)
                self._free_all_but({unit for _, unit in read}, _KEPT)

    def apply(self, function: Any, xs: tuple[Variable, ...]) -> tuple[Variable, ...]:
        """The outputs of a FunctionNode."""
        units = {unit for _, unit in self._units_of(xs)}
        for unit in units:
            self._gather(unit)
            unit.is_borrowed = True
        try:
            if self.inner is None:
                outputs: tuple[Variable, ...] = function._apply(xs)
            else:
                outputs = self.inner.apply(function, xs)
        finally:
            for unit in units:
                unit.is_borrowed = False
        if units and not self._is_in_pass:
            self._free_all_but(set(), _KEPT)
        return outputs

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function that reads the elements of its Variables."""
        if self.inner is None:
            return function(*args, **kwargs)
        return self.inner.call(function, args, kwargs)

    @contextlib.contextmanager
    def freeing(self) -> Iterator[None]:
        """A backward pass in which units are freed behind the nodes that read them."""
        self._frees = True
        try:
            yield
        finally:
            self._frees = self._is_in_pass = False

    def end_pass(self) -> None:
        """After an update, before which units may have been kept for gradients."""
        self._is_in_pass = False

    def _units_of(self, xs: Any) -> list[tuple[Any, GatheredUnit]]:
        found = []
        for x in xs:
            if isinstance(x, PlacedParameter):
                unit = unit_of(x)  # type: ignore[arg-type]
                if unit is not None:
                    found.append((x, unit))
        return found

    def _gather(self, unit: GatheredUnit) -> None:
        self._gathered.pop(unit, None)
        self._gathered[unit] = None
        unit.gather()

    def _free_all_but(self, units: set[GatheredUnit], kept: int = 0) -> None:
        others = [u for u in self._gathered if u not in units and not u.is_pinned]
        for unit in others[: max(0, len(others) - kept)]:
            unit.free()
            del self._gathered[unit]

    def _note(self, read: list[tuple[Any, GatheredUnit]], ys: list[Variable]) -> None:
        """Notes the ranks of the operation's graph nodes that read parameters."""
        creators = [y.creator_node for y in ys if y is not None]
        nodes = [node for node in creators[:1] if node is not None]
        if not nodes or is_recomputable():
            return
        units = {param.node: unit for param, unit in read}
        seen = set(self._inputs)
        while nodes:
            node = nodes.pop()
            for x in node.inputs or ():
                unit = units.get(x)
                if unit is not None:
                    self._note_at(node.rank, unit)
                elif x not in seen and x.creator_node is not None:
                    seen.add(x)
                    nodes.append(x.creator_node)

    def _note_at(self, rank: int, unit: GatheredUnit) -> None:
        if rank not in self._read_at:
            self._read_at[rank] = weakref.WeakSet()
            bisect.insort(self._ranks, rank)
        self._read_at[rank].add(unit)
        self._ladder.extend(rank + 1)

    def _before_rank(self, rank: int) -> None:
        """Runs after all graph nodes of higher ranks, before those of lower ones."""
        self._is_in_pass = True
        lower = bisect.bisect_left(self._ranks, rank)
        next_rank = self._ranks[lower - 1] if lower else -1
        next_ones = set(self._read_at.get(next_rank, ()))
        if self._frees:
            self._free_all_but({*next_ones, *self._read_at.get(rank, ())})
        if next_rank < rank - 1:
            return
        for unit in next_ones:
            self._gather(unit)
            unit.is_pinned |= _core.backprop_enabled()


class _OfThread(threading.local):
    reads: ParameterReads | None = None


_of_thread = _OfThread()


def can_read_parameters() -> bool:
    """Whether this thread's functions may be asked for what they read.

    They may not in a program of which other ranks compute parts.
    """
    return not hasattr(_core.call_placement(), "require_own_graph")


def parameter_reads() -> ParameterReads:
    """That of this thread, which its functions ask from now on."""
    present = _core.call_placement()
    if _of_thread.reads is None:
        _of_thread.reads = ParameterReads(present)
    elif present is not _of_thread.reads:
        _of_thread.reads.inner = present
    _core.set_call_placement(_of_thread.reads)
    return _of_thread.reads


def freeing_parameters() -> contextlib.AbstractContextManager[None]:
    """A context of a backward pass in which gathered parameters are freed."""
    reads = _of_thread.reads
    return contextlib.nullcontext() if reads is None else reads.freeing()
