"""Optimizer states of which each rank keeps a shard."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy

from renga import _core
from renga.communicators import Communicator
from renga.communicators.work import Work
from renga.core.link import Link
from renga.core.optimizer import GradientMethod, Optimizer
from renga.core.optimizer.update_rule import RuleValues, require_own_rules
from renga.core.parameter import Parameter
from renga.core.types import Array
from renga.core.variable import Variable, as_number
from renga.optimizer_hooks.gradient_noise import noise_of_rank_0
from renga.optimizer_hooks.norm import (
    GradientClipping,
    GradientHardClipping,
)
from renga.optimizer_hooks.penalties import Lasso, WeightDecay
from renga.parallel.data.sharded_states.held_arrays import (
    is_at,
    is_held,
    note_flat_memory,
)
from renga.parallel.data.sharded_states.layout import Piece, ShardLayout
from renga.parallel.data.sharded_states.own_updates import update_own

_ON_GPU = "__cuda_array_interface__"
# Hooks that give the same result on a part of a parameter as on all of it.
_ELEMENTWISE_HOOKS = (GradientClipping, GradientHardClipping, Lasso, WeightDecay)


class ShardedStates:
    """Updates this rank's pieces of the parameters, and gathers all of them.

    Between nodes, the pieces of a bucket are updated when their means arrive, while
    those of others are on their way, and parameters are gathered while the next pass
    computes: what reads one waits for its bucket. Where a hook or the optimizer reads
    all gradients, all are there before.

    Update rules that work element by element update equal shares, which begin and end
    within parameters. Others, such as LAMB's, get whole parameters, and hooks that need
    more than an element the whole model. The parameters' arrays are moved into flat
    ones. An array that the program holds, too, stays, and is a copy: whoever holds it
    sees updates, as of any parameter.

    Args:
        comm: the communicator.
        optimizer: whose update rules make the updates; their states are divided.
        params: initialized parameters, the same on all ranks and in one order.
        buckets: their indices in buckets, each of one dtype.

    Raises:
        ValueError: if parameters share memory or are on several devices.

    Source: Rajbhandari et al., ZeRO: memory optimizations toward training trillion
    parameter models, SC 2020.
    """

    def __init__(
        self,
        comm: Communicator,
        optimizer: Optimizer,
        params: Sequence[Parameter],
        buckets: Sequence[Sequence[int]],
    ) -> None:
        require_own_memory(params)
        self._comm = comm
        self._optimizer = optimizer
        self._params = list(params)
        self._model_comms = _model_comms(params)
        can_cut = is_elementwise(optimizer, params) and len(self._model_comms) < 2
        # A user's hook may be on one rank alone.
        self.cuts = all(comm.allgather_obj(can_cut))
        if not self.cuts:
            by_dtype: dict[Any, list[int]] = {}
            for i, param in enumerate(params):
                by_dtype.setdefault(param.dtype, []).append(i)
            buckets = list(by_dtype.values())
        self.layouts = [
            ShardLayout(bucket, params, comm.size, self.cuts) for bucket in buckets
        ]
        # On one node ranks read each other's rows where they are.
        self.in_windows = (
            1 < comm.size == comm.intra_size
            and comm.shares_memory()
            and all(param.xp is numpy for param in params)
        )
        # Elsewhere ranks read each other's rows, or a stream of the device waits.
        self._awaits = not self.in_windows and all(p.xp is numpy for p in params)
        self._lanes = _lanes_of(comm)
        self._gathers: list[Work] = []  # of parameters, that may be in flight
        weakref.finalize(self, _finish, self._gathers)
        self._allocate()
        # Arrays that the program holds, and their places in flat ones.
        self._copied: list[tuple[Parameter, Array]] = []
        self._adopt_arrays()
        # By layout, this rank's pieces, and the parameters that stand for them.
        self.own = [self._own_pieces(b) for b in range(len(self.layouts))]
        self._own = [pair for row in self.own for pair in row]
        parts = [part for _, part in self._own]
        self._link = _Pieces([comm, *self._model_comms], optimizer.target, parts)
        self.divide()

    def require_own_graph(self, loss: Variable | None) -> None:
        """Raises RuntimeError for a loss of before the parameters were divided."""

    def _allocate(self) -> None:
        """Makes the memory to which the parameters are moved."""
        self._flats = [self.new_flat(layout) for layout in self.layouts]
        self._rows_of_peers = self._pairs_of_rows() if self.in_windows else []
        self._views: dict[int, Array] = {}
        for layout, flat in zip(self.layouts, self._flats):
            self._views.update(zip(layout.indices, layout.views(flat)))
        note_flat_memory(self._views.values())

    def new_flat(self, layout: ShardLayout) -> Array:
        """A new array of all rows, if possible in memory that the ranks share."""
        return layout.window(self._comm) if self.in_windows else layout.empty()

    def lane(self, b: int) -> Communicator:
        """The communicator by which the rows of layout ``b`` go."""
        return self._lanes[b % len(self._lanes)]

    def _pairs_of_rows(self) -> list[tuple[Array, Array]]:
        """Of each other rank: this rank's copy of its row, and the row itself."""
        comm = self._comm
        return [
            (flat[r], comm.window_of_peer(flat, r)[r])
            for flat in self._flats
            for r in range(comm.size)
            if r != comm.rank
        ]

    def _own_pieces(self, b: int) -> list[tuple[Piece, Parameter]]:
        """This rank's pieces as parameters, which have the rules of the whole ones."""
        own = []
        for piece in self.layouts[b].pieces(self._comm.rank):
            whole = self._params[piece.param]
            part = whole
            if self.cuts:
                part = _PieceParameter(self._own_part(b, piece))
                part.name = whole.name
                part.update_rule = whole.update_rule
                if self._model_comms and not whole.is_divided:
                    part.copies = self._model_comms[0].size
            own.append((piece, part))
        return own

    def _own_part(self, b: int, piece: Piece) -> Array:
        """The elements of a piece of layout ``b``, which this rank updates."""
        return part_of(self._views[piece.param], piece)

    def _adopt_arrays(self) -> None:
        """Moves arrays to the flat ones, also those that the caller has replaced."""
        views = [(self._params[i], view) for i, view in self._views.items()]
        replaced = [
            pair for pair in views if _core.addresses([pair[0]]) != [_address(pair[1])]
        ]
        if replaced:
            require_own_memory(self._params)
        self._copied = []
        for param, view in replaced:
            view[...] = param.array
            if is_held(param):
                self._copied.append((param, view))
            elif self._awaits:
                param.array = _core.own_view(view)
            else:
                param.array = view

    def _write_pieces(self, rank: int) -> None:
        """Writes the pieces of a rank, of arrays that are no flat ones."""
        for piece in (p for layout in self.layouts for p in layout.pieces(rank)):
            param, view = self._params[piece.param], self._views[piece.param]
            if not is_at(param, view):
                part_of(view, piece)[...] = part_of(param.array, piece)

    def _adopt_rules(self) -> None:
        """Has pieces updated by the present rules, which may have been replaced."""
        for piece, part in self._own:
            part.update_rule = self._params[piece.param].update_rule

    def take_slices(self) -> None:
        """Makes parts of the parameters' mean gradients those of this rank's pieces."""
        if not self.cuts:
            return
        for piece, part in self._own:
            whole = self._params[piece.param]
            part.grad = None if whole.grad is None else part_of(whole.grad, piece)
            part.loss_scale = whole.loss_scale

    def fits(self) -> bool:
        """Whether the hooks, which may have changed, need no whole parameters."""
        return not self.cuts or is_elementwise(self._optimizer, self._params)

    def update(self, arrivals: Iterable[int] | None = None) -> None:
        """Updates by the gradients of this rank's pieces, and clears all gradients.

        Args:
            arrivals: waits for gradients; gives each layout once all of its are there.
                None: they are there.

        Raises:
            ValueError: if another optimizer was set up for some of the parameters.
        """
        require_own_rules("shard", self._optimizer)
        _finish(self._gathers)
        self._adopt_arrays()
        self._adopt_rules()
        if self.cuts:
            self._update_pieces(
                range(len(self.layouts)) if arrivals is None else arrivals
            )
        else:
            own = list(self._link.params())
            with noise_of_rank_0(self._comm):
                update_own(self._optimizer, self._params, own, self._gather_all)
        for param in (*self._link.params(), *self._params):
            param.grad = None

    def _update_pieces(self, arrivals: Iterable[int]) -> None:
        optimizer, target = self._optimizer, self._optimizer.target
        optimizer.target = self._link
        try:
            if self._is_stepwise():
                self._update_by_layout(arrivals)
            else:
                for _ in arrivals:
                    pass
                optimizer.update(None)
        finally:
            optimizer.target = target
        self._gather_all()

    def _is_stepwise(self) -> bool:
        """Whether a layout may be updated before the gradients of others are there.

        Nothing but the update of a piece reads its gradient then. The first update
        warns of gradients that are NaN.
        """
        optimizer = self._optimizer
        if not self._awaits or not isinstance(optimizer, GradientMethod):
            return False
        return optimizer.t > 0 and optimizer.is_one_pass()

    def _update_by_layout(self, arrivals: Iterable[int]) -> None:
        """Updates the pieces of a layout when their gradients arrive."""
        updates = _core.optimizers.deferred_updates(self._optimizer.update)
        layout_of = {
            _address(part.array): b
            for b, row in enumerate(self.own)
            for _, part in row
            if part.size
        }
        by_layout: list[list[Any]] = [[] for _ in self.layouts]
        for update in updates:
            by_layout[layout_of.get(update.address, 0)].append(update)
        for b in arrivals:
            _core.optimizers.apply(by_layout[b])

    def _gather_all(self) -> None:
        """Gets other ranks' rows, after updates of whole parameters or of pieces."""
        if not self.cuts:
            self._write_pieces(self._comm.rank)
        self._gather()
        for param, view in self._copied:
            param.array[...] = view

    def _gather(self) -> None:
        """Gets the other ranks' rows of parameters."""
        if self.in_windows:
            self._comm.barrier()
            for own, of_peer in self._rows_of_peers:
                own[...] = of_peer
            self._comm.barrier()  # nobody writes before all have read
            return
        # The next pass begins with the parameters whose gradients come last.
        for b in reversed(range(len(self.layouts))):
            flat = self._flats[b]
            work = self.lane(b).all_gather(flat[self._comm.rank], out=flat, wait=False)
            self._gathers.append(work)
        for layout, work in zip(reversed(self.layouts), self._gathers):
            params = [self._params[i] for i in layout.indices]
            # Whoever else refers to an array of theirs reads it without a wait.
            if self._awaits and all(param.owns_array for param in params):
                _core.await_arrays(params, work.wait)
            else:
                work.wait()

    def divide(self) -> None:
        """Drops what other ranks keep of the states."""
        own = {piece.param: piece for piece, _ in self._own}
        for i, param in enumerate(self._params):
            rule: Any = param.update_rule
            if rule is None:
                continue
            rule.is_exclusive = True
            if i not in own:
                rule.set_values(RuleValues(rule.t))
            elif self.cuts:
                values = rule.get_values()
                parts = {
                    k: part_of(x, own[i]).copy() for k, x in values.named().items()
                }
                rule.set_values(values.with_named(parts))

    def restore(self) -> None:
        """Gives the rules whole states again; every rank calls it."""
        self._adopt_rules()
        parts = self._comm.allgather_obj(list(self._own_states()))
        whole: dict[int, dict[str, Any]] = {}
        for piece, t, arrays in (part for of_rank in parts for part in of_rank):
            param = self._params[piece.param]
            rule: Any = param.update_rule
            rule.t, rule.is_exclusive = t, False
            if not self.cuts:
                whole[piece.param] = arrays
                continue
            states = whole.setdefault(piece.param, {})
            for key, x in arrays.items():
                if key not in states:
                    states[key] = numpy.empty_like(x, shape=param.shape)
                part_of(states[key], piece)[...] = x
        for i, states in whole.items():
            rule = self._params[i].update_rule
            rule.set_values(rule.get_values().with_named(states))

    def release(self) -> None:
        """Gives this rank whole parameters, too; every rank calls it."""

    def _own_states(self) -> Iterator[tuple[Piece, int, dict[str, Array]]]:
        for piece, part in self._own:
            rule: Any = part.update_rule
            if rule is None:
                continue
            yield piece, rule.t, rule.get_values().named()


class _PieceParameter(Parameter):
    """A piece of a parameter, of which ranks that share a model may have copies."""

    copies = 1

    def sum_over_shards(self, value: float) -> float:
        """This rank's part of the sum, which :class:`_Pieces` takes over all ranks."""
        return value / self.copies


class _Pieces(Link):
    """What the optimizer updates on this rank.

    Args:
        comms: of the ranks that have other pieces, one after another.
        model: of whose parameters they are.
        pieces: this rank's.
    """

    def __init__(
        self, comms: Sequence[Communicator], model: Link, pieces: Sequence[Parameter]
    ) -> None:
        super().__init__()
        self._comms = comms
        self._pieces = list(pieces)
        self._sum_over_model = model.sum_over_stages

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        yield from self._pieces

    def sum_over_stages(self, value: float) -> float:
        """The sum of all ranks' values, in rank order; every rank calls it."""
        value = as_number(value)
        for comm in self._comms:
            value = sum(comm.allgather_obj(value))
        total: float = self._sum_over_model(value)
        return total


def part_of(x: Array, piece: Piece) -> Array:
    return x.reshape(-1)[piece.start : piece.stop]


def _lanes_of(comm: Communicator) -> list[Communicator]:
    """Communicators of the same ranks; every rank calls it.

    Collectives of two of them overlap. Between nodes, one fills the links while the
    ranks of another one wait for each other.
    """
    if comm.inter_size == 1 or comm.is_simulated:
        return [comm]
    return [comm.split(0, comm.rank), comm.split(0, comm.rank)]


def _finish(works: list[Work]) -> None:
    """Waits for works, and drops them. Their errors are those of who reads results."""
    with contextlib.suppress(Exception):
        for work in works:
            work.wait()
    works.clear()


def _model_comms(params: Sequence[Parameter]) -> list[Any]:
    """The communicators over whose ranks parameters of the model are divided."""
    comms = [param.model_comm for param in params if param.is_divided]
    return list({id(comm): comm for comm in comms}.values())


def is_elementwise(optimizer: Optimizer, params: Sequence[Parameter]) -> bool:
    """Whether updates of parts of parameters are parts of the updates."""
    rules: list[Any] = [p.update_rule for p in params if p.update_rule is not None]
    hooks = optimizer.timed_hooks()
    return all(type(hook) in _ELEMENTWISE_HOOKS for _, _, hook in hooks) and all(
        rule.is_elementwise and not rule.has_update_hooks for rule in rules
    )


def _address(x: Array) -> int:
    described = "__array_interface__" if isinstance(x, numpy.ndarray) else _ON_GPU
    return int(getattr(x, described)["data"][0])


def require_own_memory(params: Sequence[Parameter]) -> None:
    """Checks that parameters are on one device and share no memory with each other."""
    devices = sorted({param.device_name for param in params})
    if len(devices) > 1:
        raise ValueError(
            f"shard: expected parameters on one device, got {' and '.join(devices)}"
        )
    addresses = _core.addresses([param for param in params if param.size])
    if len(set(addresses)) < len(addresses):
        raise ValueError(
            "shard: expected parameters that share no memory, got tied ones"
        )
