"""A worker's side of the parameter servers."""

from __future__ import annotations

import collections
import pickle
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy

from renga.communicators import Communicator
from renga.core.optimizer import Optimizer
from renga.core.optimizer.update_rule import UpdateRule
from renga.core.types import Array
from renga.parallel.asynchronous.server import service
from renga.parallel.asynchronous.server.gradient import Gradient
from renga.parallel.asynchronous.server.results import layout_of
from renga.parallel.asynchronous.server.roles import Terms
from renga.parallel.asynchronous.server.rows import ShardRows
from renga.parallel.asynchronous.server.settings import HookSettings, UpdateSettings
from renga.parallel.asynchronous.server.shards import Shards

_SECONDS_PER_CHECK = 0.5


class Client:
    """Pushes gradients and installs the parameters that come back.

    At most one push is under way to each shard. Meanwhile the worker goes on with the
    parameters that it has, as far as the bound on staleness allows. If rows of
    parameters are pulled, which are known with the batch, each step begins with a pull.

    Args:
        comm: the ranks that serve and work.
        shards: the division of the parameters.
        terms: of the servers.
        rows: what the pieces of each shard are sent by.
    """

    def __init__(
        self,
        comm: Communicator,
        shards: Shards,
        terms: Terms,
        rows: list[ShardRows],
    ) -> None:
        self._comm = comm
        self._shards = shards
        self._hosts = terms.hosts
        self._bound = terms.staleness
        self._rows = rows
        self._chosen: list[list[Array]] = [[] for _ in rows]  # rows of this step
        self._has_rows = any(shard.count for shard in rows)
        self.clock = 0  # pushes of this worker
        self.staleness: collections.Counter[int] = collections.Counter()  # in clocks
        self._versions = [0] * shards.count  # of the parameters that this worker has
        self._least = [0] * shards.count  # clock that all workers had reached in them
        self._pending: set[int] = set()  # shards that have not answered a push
        self.overflowed = False  # whether a gradient of the last clock had
        self.own_service: service.Service | None = None  # on a thread of this rank
        # These are the hooks of the first settings, which all ranks have; None before.
        self._known_hooks: list[HookSettings] | None = None

    def initialize(self, optimizer: Optimizer, has_loaded: bool) -> None:
        """Sends the servers what to begin with.

        Args:
            optimizer: of the parameters.
            has_loaded: whether it has been loaded from a file.
        """
        layout = layout_of(optimizer.target, self._shards)
        rules = [param.update_rule for param in self._shards.params]
        arrays = self._shards.arrays
        for shard, host in enumerate(self._hosts):
            state = {
                "arrays": [x.copy() for x in self._shards.take(shard, arrays)],
                "shapes": self._shards.shapes(shard),
                "t": optimizer.t,
                "rules": self._shards.states(shard, rules),
                "rows_of_pieces": self._rows[shard].pieces,
                "layout": layout,
                "has_loaded": has_loaded,
            }
            self._comm.send_obj(state, host, service.FIRST_TAG + 3 * shard)

    def configure(self, settings: UpdateSettings) -> None:
        """Tells the servers the settings of this worker's updates.

        Raises:
            TypeError: if a hook cannot be pickled, and the servers may not have it.
        """
        if self._known_hooks is None:
            self._known_hooks = settings.hooks
        for hook in settings.all_hooks:
            if hook.pickled is None and hook not in self._known_hooks:
                raise TypeError(
                    "update: expected a hook that can be pickled, to be sent to the "
                    f"servers, got {hook.name!r}: add it to the optimizer of every "
                    "rank before the first update"
                )
        for shard in range(self._shards.count):
            of_shard = self._shards.settings(shard, settings)
            self._send_object(shard, service.SETTINGS, of_shard)

    def change(
        self,
        masks: Sequence[Array],
        states: tuple[int, Sequence[UpdateRule | None]] | None,
    ) -> None:
        """Has the servers make the changes that the caller has made.

        Args:
            masks, states: as for :meth:`Shards.change`.
        """
        for shard in range(self._shards.count):
            change = self._shards.change(shard, masks, states)
            self._send_object(shard, service.CHANGE, change)

    def _send_object(self, shard: int, kind: int, obj: Any) -> None:
        self._request(shard, kind, pieces=[numpy.frombuffer(pickle.dumps(obj), "u1")])

    def join(self) -> None:
        """Gets the parameters, and a clock, of a group that works already."""
        for shard in range(self._shards.count):
            self._request(shard, service.JOIN)
            self.clock = int(self._receive(shard)[3])

    def begin_step(self, rows: Mapping[int, Array] | None) -> list[int]:
        """Installs what has come; the versions of the parameters.

        Args:
            rows: those that the batch reads, by the index of the parameter; None if the
                gradient has been computed already, so that nothing is installed.
        """
        if rows is not None and self._has_rows:
            self._pull_rows(rows)
        elif rows is not None:
            for shard in sorted(self._pending):
                tag = service.REPLY_TAG + 3 * shard
                if self._comm.probe(self._hosts[shard], tag, 0) is not None:
                    self._receive(shard)
        self.staleness[self.clock - min(self._least)] += 1
        return list(self._versions)

    def _pull_rows(self, rows: Mapping[int, Array]) -> None:
        """Installs these rows, and all of the other parameters."""
        for shard, layout in enumerate(self._rows):
            self._chosen[shard] = [
                of_piece.within(rows[piece.param])
                for piece, of_piece in zip(self._shards.pieces(shard), layout.pieces)
                if of_piece is not None
            ]
        self._await(range(self._shards.count))

    def _await(self, shards: Collection[int]) -> None:
        """Gets this step's rows once the clocks allow it."""
        for shard in shards:
            clock = (self.clock, 0)
            self._request(shard, service.AWAIT, clock, self._chosen[shard])
        for shard in shards:
            self._receive(shard, self._chosen[shard])

    def push(self, gradient: Gradient, versions: Sequence[int]) -> None:
        """Starts to push a gradient, which does not change any more.

        Returns when the parameters are new enough for the next one.
        """
        self.wait()
        self.clock += 1
        of_all = [gradient.scale, gradient.samples, *gradient.values.values()]
        for shard, version in enumerate(versions):
            numbers = [self.clock, version, *of_all]
            pieces = self._shards.take(shard, gradient.arrays)
            if self._has_rows:
                chosen = self._chosen[shard]
                pieces = [*chosen, *self._rows[shard].take(pieces, chosen)]
                self._request(shard, service.PUSH, numbers, pieces)
            else:
                self._request(shard, service.PUSH_AWAIT, numbers, pieces)
            self._pending.add(shard)
        for shard in sorted(self._pending):
            is_too_old = self._least[shard] < self.clock - self._bound
            if is_too_old and not self._has_rows:
                self._receive(shard)

    def wait(self) -> None:
        """Waits for the answers to what has been pushed."""
        if self._has_rows:
            self._await(sorted(self._pending))
        for shard in sorted(self._pending):
            self._receive(shard)

    def pull(self) -> None:
        """Installs the newest parameters, whatever the other workers do."""
        self.wait()
        for shard in range(self._shards.count):
            self._request(shard, service.PULL)
        for shard in range(self._shards.count):
            self._receive(shard)

    def pull_states(self, rules: Sequence[UpdateRule | None]) -> None:
        """Installs the parameters and puts the servers' states into update rules."""
        self.wait()
        for shard in range(self._shards.count):
            self._request(shard, service.STATE)
        self._receive_states(rules)

    def finish(self, rules: Sequence[UpdateRule | None]) -> None:
        """Tells the servers that no more gradients come.

        Installs the last parameters, and the states of their rules, which are sent when
        all workers have finished.
        """
        self.wait()
        for shard in range(self._shards.count):
            self._request(shard, service.DONE)
        self._receive_states(rules)

    def _receive_states(self, rules: Sequence[Any]) -> None:
        for shard, host in enumerate(self._hosts):
            tag = service.STATE_TAG + 3 * shard
            self._wait_for(host, tag)
            x = self._comm.recv(host, tag)
            state = pickle.loads(x.data)
            self._install(shard, state["arrays"])
            self._shards.put_states(shard, state["rules"], rules)

    def _request(
        self,
        shard: int,
        kind: int,
        numbers: Sequence[float] = (0, 0),
        pieces: Sequence[Array] = (),
    ) -> None:
        header = numpy.array([kind, shard, *numbers], numpy.float64)
        self._comm.send(
            (header, *pieces), self._hosts[shard], service.REQUEST_TAG, wait=False
        )

    def _receive(
        self, shard: int, chosen: Sequence[Array] | None = None
    ) -> list[float]:
        """Installs an answer, which has chosen rows or all, and returns its header."""
        tag = service.REPLY_TAG + 3 * shard
        self._wait_for(self._hosts[shard], tag)
        header, *pieces = self._comm.recv(self._hosts[shard], tag)
        numbers: list[float] = header.tolist()
        self._versions[shard], self._least[shard] = map(int, numbers[:2])
        self.overflowed = bool(numbers[2])
        self._pending.discard(shard)
        if chosen is None:
            self._install(shard, pieces)
        else:
            mine = self._shards.take(shard, self._shards.arrays)
            self._rows[shard].put(mine, chosen, pieces)
        return numbers

    def _wait_for(self, host: int, tag: int) -> None:
        """Waits until a message has come, or the server of this rank has failed."""
        if self.own_service is not None:
            self.own_service.check()
            while self._comm.probe(host, tag, _SECONDS_PER_CHECK) is None:
                self.own_service.check()

    def _install(self, shard: int, pieces: Sequence[Array]) -> None:
        self._shards.put(shard, pieces, self._shards.arrays)
