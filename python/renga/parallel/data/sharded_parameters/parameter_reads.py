"""Which sharded parameters a thread's functions read, and when they are gathered."""

from __future__ import annotations

import bisect
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from renga import _core
from renga.core.around_call import (
    FunctionCall,
    HandledCall,
    Handler,
    inner_handler,
    run_within,
    set_inner_handler,
)
from renga.core.configuration import config
from renga.core.parameter import as_operand
from renga.functions.util.recomputation import is_recomputable
from renga.parallel.data.sharded_parameters.backward_ladder import (
    BackwardLadder,
)
from renga.parallel.data.sharded_parameters.gathered_unit import (
    GatheredUnit,
)
from renga.parallel.data.sharded_parameters.node_parameter import (
    PlacedParameter,
    unit_of,
)

# Units that stay gathered besides those of the present operation: the one before, and
# one that is on its way.
_KEPT = 2
_LOOK_AHEAD = 32  # ranks of a graph


def _no_unit() -> None:
    """In the place of a reference to a unit."""


class ParameterReads:
    """Gathers units before functions of a thread read them, forward and backward.

    It is the handler around the calls of a thread (:mod:`renga.core.around_call`). It
    notes the ranks of graph nodes that read a unit; in backward passes the unit is
    gathered before nodes of these ranks run. The unit that is likely to be read next
    is requested meanwhile.

    Attributes:
        inner: another handler, within this one; None for none.
    """

    def __init__(self, inner: Handler | None) -> None:
        self.inner = inner
        self._read_at: dict[int, weakref.WeakSet[GatheredUnit]] = {}
        self._ranks: list[int] = []  # at which units are read, in order
        # In the order of use.
        self._gathered: weakref.WeakKeyDictionary[GatheredUnit, None]
        self._gathered = weakref.WeakKeyDictionary()
        # A backward pass, or a function that is running, may read these units again.
        self._protected: weakref.WeakSet[GatheredUnit] = weakref.WeakSet()
        # Forward passes have gathered these units after a unit, the last time.
        self._after: weakref.WeakKeyDictionary[GatheredUnit, Any]
        self._after = weakref.WeakKeyDictionary()
        self._before: Any = _no_unit  # a reference to the last one of this pass
        self._ladder = BackwardLadder(self._before_rank)

    def __call__(self, call: HandledCall) -> None:
        """Runs a call once what it reads is gathered."""
        read = self._units_of(call.operands)
        if not read:
            run_within(self.inner, call)
        elif not isinstance(call, FunctionCall):
            self._run_operation(call, read)
        elif call.node is not None:
            self._run_node(call, {unit for _, unit in read})
        else:
            run_within(self.inner, call)  # its functions read

    def _run_operation(self, call: Any, read: list[tuple[Any, GatheredUnit]]) -> None:
        xs, units = call.operands, {unit for _, unit in read}
        for _, unit in read:
            self._gather_in_order(unit)
        run_within(self.inner, call)
        if config.in_recomputing:  # in a backward pass, which no ladder precedes
            self._protected |= units
        else:
            self._note(call.label, xs, read, call.results)
            self._free_all_but(units, _KEPT)

    def _run_node(self, call: FunctionCall, units: set[GatheredUnit]) -> None:
        unprotected = units - set(self._protected)
        self._protected |= units
        for unit in units:
            self._gather_in_order(unit)
            unit.is_borrowed = True
        try:
            run_within(self.inner, call)
        finally:
            for unit in units:
                unit.is_borrowed = False
            self._protected -= unprotected

    @property
    def has_read(self) -> bool:
        """Whether a function has read parameters."""
        return bool(self._read_at or self._gathered)

    @property
    def is_of_this_thread(self) -> bool:
        """Whether the functions of the thread that asks are those that ask this."""
        return _of_thread.reads is self

    def read(self, unit: GatheredUnit) -> None:
        """Gathers a unit whose arrays Python code reads."""
        self._gather(unit)
        self._free_all_but({unit}, _KEPT)

    def finish(self) -> None:
        """Waits for all that has been requested."""
        for unit in self._gathered:
            unit.finish()

    def end_step(self) -> None:
        """After an update, which the graphs of before are not expected to survive."""
        self._protected.clear()
        self._before = _no_unit

    def _units_of(self, xs: Any) -> list[tuple[Any, GatheredUnit]]:
        found = []
        for x in xs:
            if isinstance(x, PlacedParameter):
                unit = unit_of(x)  # type: ignore[arg-type]
                if unit is not None:
                    found.append((x, unit))
        return found

    def _gather_in_order(self, unit: GatheredUnit) -> None:
        """Gathers a unit, and requests what came after it in the last pass."""
        if unit.is_gathered:
            self._gather(unit)
            return
        before, self._before = self._before(), weakref.ref(unit)
        if before is not None:
            self._after[before] = self._before
        self._gather(unit)
        following = self._after.get(unit, _no_unit)()
        if following is not None:
            self._request(following)

    def _gather(self, unit: GatheredUnit) -> None:
        self._request(unit)
        unit.gather()

    def _request(self, unit: GatheredUnit) -> None:
        self._gathered.pop(unit, None)
        self._gathered[unit] = None
        unit.request()

    def _free_all_but(self, units: set[GatheredUnit], kept: int = 0) -> None:
        others = [
            unit
            for unit in self._gathered
            if unit not in units
            if unit not in self._protected and not unit.is_pinned
        ]
        for unit in others[: max(0, len(others) - kept)]:
            unit.free()
            del self._gathered[unit]

    def _note(
        self,
        label: str,
        xs: Sequence[Any],
        read: list[tuple[Any, GatheredUnit]],
        ys: Sequence[Any],
    ) -> None:
        """Notes the ranks of the operation's graph nodes that read parameters.

        Args:
            label: the name of the operation.
            xs: its operands.
            read: the parameters among them, with their units.
            ys: its results.
        """
        creators = [y.creator_node for y in ys if y is not None]
        nodes = [node for node in creators[:1] if node is not None]
        if not nodes or is_recomputable():
            return
        if label == "linear" and unit_of(xs[0]) is not None:
            # What linear multiplies is read again after all operations that use its
            # weight.
            unit_of(xs[0]).is_pinned = True
        units = {param.node: unit for param, unit in read}
        seen = {x.node for x in xs}
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
        self._before = _no_unit
        next_ones = set(self._read_at.get(rank - 1, ()))
        coming = self._read_below(rank)
        self._protected = weakref.WeakSet(
            {*next_ones, *self._read_at.get(rank, ()), *coming}
        )
        self._free_all_but(set())
        for unit in next_ones:
            self._gather(unit)
            unit.is_pinned |= _core.backprop_enabled()
        for unit in coming if next_ones else ():
            self._request(unit)

    def _read_below(self, rank: int) -> set[GatheredUnit]:
        """What is read at lower ranks first, and what comes after it."""
        found: list[set[GatheredUnit]] = []
        end = bisect.bisect_left(self._ranks, rank)
        for lower in reversed(self._ranks[max(0, end - _LOOK_AHEAD) : end]):
            units = {unit for unit in self._read_at[lower] if not unit.is_pinned}
            if units and units not in found:
                found.append(units)
            if len(found) == _KEPT:
                break
        return set().union(*found)


class _ReadsOfThread(threading.local):
    reads: ParameterReads | None = None


_of_thread = _ReadsOfThread()


class _OtherThreads:
    """Has functions of threads that have no :class:`ParameterReads` read copies."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.RLock()  # a collection may end units at any place

    def add(self, unit: GatheredUnit) -> None:
        """Has these threads ask, as long as there are units."""
        with self._lock:
            self._count += 1
            _core.set_default_around_call(self)
        weakref.finalize(unit, self._end)

    def _end(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                _core.set_default_around_call(None)

    def __call__(self, call: Any) -> None:
        """Runs an operation or a FunctionNode with copies of gathered parameters."""
        if not isinstance(call, FunctionCall) or call.node is not None:
            call.operands = [as_operand(x) for x in call.operands]
        call.run()


other_threads = _OtherThreads()


def can_read_parameters() -> bool:
    """Whether this thread's functions may be asked for what they read.

    They may not in a program of which other ranks compute parts.
    """
    return not hasattr(inner_handler(), "require_own_graph")


def parameter_reads() -> ParameterReads:
    """That of this thread, which its functions ask from now on."""
    present = inner_handler()
    if _of_thread.reads is None:
        _of_thread.reads = ParameterReads(present)
    elif present is not _of_thread.reads:
        _of_thread.reads.inner = present
    set_inner_handler(_of_thread.reads)
    return _of_thread.reads
