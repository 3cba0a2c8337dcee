"""A worker's side of the parameter servers."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from renga.distributed.asynchronous.server import service
from renga.distributed.asynchronous.server.rows import ShardRows
from renga.distributed.asynchronous.server.shards import Shards

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.communicators.communicator import Array


class Client:
    """Pushes gradients and installs the parameters that come back.

    At most one push is under way to each shard. Meanwhile the worker goes on with the
    parameters that it has, as far as the bound on staleness allows. If rows of
    parameters are pulled, which are known with the batch, each step begins with a pull.

    Args:
        comm: the ranks that serve and work.
        shards: the division of the parameters.
        hosts: the rank that serves each shard.
        staleness: in clocks; ``math.inf`` for no bound.
        rows: what the pieces of each shard are sent by.
    """

    def __init__(
        self,
        comm: Communicator,
        shards: Shards,
        hosts: list[int],
        staleness: float,
        rows: list[ShardRows],
    ) -> None:
        self._comm = comm
        self._shards = shards
        self._hosts = hosts
        self._bound = staleness
        self._rows = rows
        self._chosen: list[list[Array]] = [[] for _ in hosts]  # rows of this step
        self._has_rows = any(shard.count for shard in rows)
        self.clock = 0  # pushes of this worker
        self.staleness: collections.Counter[int] = collections.Counter()  # in clocks
        self._versions = [0] * shards.count  # of the parameters that this worker has
        self._least = [0] * shards.count  # clock that all workers had reached in them
        self._pending: set[int] = set()  # shards that have not answered a push

    def initialize(self, rules: Sequence[Any]) -> None:
        """Sends the servers what to begin with.

        Args:
            rules: the update rules of the parameters.
        """
        arrays = [param.array for param in self._shards.params]
        for shard, host in enumerate(self._hosts):
            state = {
                "arrays": [x.copy() for x in self._shards.take(shard, arrays)],
                "t": max((rule.t for rule in rules), default=0),
                "rules": self._shards.states(shard, rules),
                "rows_of_pieces": self._rows[shard].pieces,
            }
            self._comm.send_obj(state, host, service.STATE_TAG + 2 * shard)

    def join(self) -> None:
        """Gets the parameters, and a clock, of a group that works already."""
        for shard in range(self._shards.count):
            self._request(shard, service.JOIN)
            self.clock = int(self._receive(shard)[2])

    def begin_step(self, rows: Mapping[int, Array]) -> list[int]:
        """Waits until the parameters are new enough; their versions.

        Args:
            rows: those that the batch reads, by the index of the parameter.
        """
        if self._has_rows:
            self._pull_rows(rows)
        for shard in sorted(self._pending):
            tag = service.REPLY_TAG + 2 * shard
            is_too_old = self._least[shard] < self.clock - self._bound
            if is_too_old or self._comm.probe(self._hosts[shard], tag, 0) is not None:
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

    def push(
        self,
        gradients: Sequence[Array],
        versions: Sequence[int],
        values: dict[str, float],
    ) -> None:
        """Starts to push gradients, which do not change any more."""
        self.wait()
        self.clock += 1
        for shard, version in enumerate(versions):
            numbers = [self.clock, version, *values.values()]
            pieces = self._shards.take(shard, gradients)
            if self._has_rows:
                chosen = self._chosen[shard]
                pieces = [*chosen, *self._rows[shard].take(pieces, chosen)]
                self._request(shard, service.PUSH, numbers, pieces)
            else:
                self._request(shard, service.PUSH_AWAIT, numbers, pieces)
            self._pending.add(shard)

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

    def pull_states(self, rules: Sequence[Any]) -> None:
        """Installs the parameters and puts the servers' states into update rules."""
        self.wait()
        for shard in range(self._shards.count):
            self._request(shard, service.STATE)
        for shard, host in enumerate(self._hosts):
            state = self._comm.recv_obj(host, service.STATE_TAG + 2 * shard)
            self._install(shard, state["arrays"])
            self._shards.put_states(shard, state["rules"], rules)

    def finish(self) -> None:
        """Tells the servers that no more gradients come; installs the last parameters.

        They are sent when all workers have finished.
        """
        self.wait()
        for shard in range(self._shards.count):
            self._request(shard, service.DONE)
        for shard in range(self._shards.count):
            self._receive(shard)

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
        tag = service.REPLY_TAG + 2 * shard
        header, *pieces = self._comm.recv(self._hosts[shard], tag)
        numbers: list[float] = header.tolist()
        self._versions[shard], self._least[shard] = map(int, numbers[:2])
        self._pending.discard(shard)
        if chosen is None:
            self._install(shard, pieces)
        else:
            arrays = [param.array for param in self._shards.params]
            self._rows[shard].put(self._shards.take(shard, arrays), chosen, pieces)
        return numbers

    def _install(self, shard: int, pieces: Sequence[Array]) -> None:
        arrays = [param.array for param in self._shards.params]
        self._shards.put(shard, pieces, arrays)
