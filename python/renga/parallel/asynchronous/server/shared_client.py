"""A worker's side of parameters in memory that all workers share."""

from __future__ import annotations

import collections
import contextlib
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Callable

import numpy

from renga.communicators import Communicator, RankFailed
from renga.core.optimizer import GradientMethod, Optimizer
from renga.core.optimizer.update_rule import UpdateRule
from renga.core.types import Array
from renga.parallel.asynchronous.server.gradient import Gradient
from renga.parallel.asynchronous.server.roles import Terms
from renga.parallel.asynchronous.server.settings import UpdateSettings
from renga.parallel.asynchronous.server.shard_optimizer import ShardOptimizer
from renga.parallel.asynchronous.server.shard_server import LOG_SIZE, Update
from renga.parallel.asynchronous.server.shards import Shards
from renga.parallel.asynchronous.server.shared_shard import (
    SharedShard,
    allocate,
    can_share,
)

_POLL_SECONDS = 50e-6
_LOG_TAG = 0
_WORKING, _DONE, _LOST = range(3)


class Board:
    """What the workers of a node tell each other: clocks, and who is there.

    Args:
        comm: the ranks of the node; all of them make one.
        workers: those that push.
    """

    def __init__(self, comm: Communicator, workers: Sequence[int]) -> None:
        window = comm.window((3, comm.size), numpy.int64)
        # A number is written by one worker, in one piece.
        board = comm.window_of_peer(window, 0)
        self.clocks, self._heard, self._states = board
        self._workers = list(workers)
        self._rank = comm.rank
        board[:, comm.rank] = 0
        self.hear()
        comm.barrier()

    def hear(self) -> None:
        """Tells that this worker lives."""
        self._heard[self._rank] = time.monotonic_ns()

    def silence(self, worker: int) -> float:
        """The seconds since a worker has told that it lives."""
        return float(time.monotonic_ns() - self._heard[worker]) / 1e9

    def work(self, clock: int) -> None:
        """Tells how many gradients of this worker all shards have."""
        self.clocks[self._rank] = clock
        self._states[self._rank] = _WORKING

    def finish(self) -> None:
        """Tells that this worker pushes no more."""
        self._states[self._rank] = _DONE

    def lose(self, worker: int) -> None:
        """Tells that a worker is lost, until it pushes again."""
        self._states[worker] = _LOST

    def working(self) -> list[int]:
        """The workers that push."""
        return self._in_states(_WORKING)

    def left(self) -> list[int]:
        """The workers that are not lost."""
        return self._in_states(_WORKING, _DONE)

    def is_lost(self, rank: int) -> bool:
        """Whether a rank is lost."""
        return bool(self._states[rank] == _LOST)

    def others_least_clock(self, clock: int) -> int:
        """The least of ``clock`` and of the other workers' clocks."""
        others = (int(self.clocks[w]) for w in self.working() if w != self._rank)
        return min((clock, *others))

    def _in_states(self, *states: int) -> list[int]:
        found = self._states.tolist()
        return [w for w in self._workers if found[w] in states]


class SharedClient:
    """Applies gradients to shards in memory that all workers share.

    No rank serves: a worker makes the updates of its own gradients, a shard at a time,
    and copies what results. That takes less of its time than messages would.

    Args:
        comm: the ranks of a node; all of them make one.
        optimizer: of this rank.
        shards: the division of the parameters.
        shared: the shards.
        terms: of the workers, which are lost while another waits for them.
    """

    def __init__(
        self,
        comm: Communicator,
        optimizer: Optimizer,
        shards: Shards,
        shared: Sequence[SharedShard],
        terms: Terms,
    ) -> None:
        self._comm = comm
        self._optimizer = optimizer
        self._shards = shards
        self._shared = list(shared)
        self._terms = terms
        self._board = Board(comm, terms.workers)
        self.clock = 0  # pushes of this worker
        self.staleness: collections.Counter[int] = collections.Counter()  # in clocks
        self._versions = [0] * shards.count  # of the parameters that this worker has
        self._least = 0  # clock that all workers had reached in them
        # A shard has the last updates of this worker, then of all, with their numbers.
        self._log: dict[int, collections.deque[tuple[int, Update]]] = {
            shard: collections.deque(maxlen=LOG_SIZE) for shard in range(shards.count)
        }

    def join(self) -> None:
        """Gets the parameters, and a clock, of a group that works already."""
        others = [w for w in self._board.working() if w != self._comm.rank]
        clocks = (int(self._board.clocks[w]) for w in others)
        self.clock = min(clocks, default=self._shared[0].version)
        self._board.work(self.clock)
        self.pull()

    def configure(self, settings: UpdateSettings) -> None:
        """Makes this worker's updates by these settings, with its own hooks."""
        rules = (param.update_rule for param in self._shards.params)
        owners = [self._optimizer, *(rule for rule in rules if rule is not None)]
        hooks = {id(h): h for owner in owners for _, _, h in owner.timed_hooks()}
        for shard, shared in enumerate(self._shared):
            of_shard = self._shards.settings(shard, settings)
            shared.optimizer.use(of_shard, lambda hook: hooks[hook.identity])

    def change(
        self,
        masks: Sequence[Array],
        states: tuple[int, Sequence[UpdateRule | None]] | None,
    ) -> None:
        """Makes the changes that the caller has made.

        Args:
            masks, states: as for :meth:`Shards.change`.
        """
        for number, shared in enumerate(self._shared):
            change = self._shards.change(number, masks, states)
            with shared:
                shared.change(change)

    def begin_step(self, rows: Mapping[int, Array] | None) -> list[int]:
        """The versions of the parameters, which are new enough."""
        self.staleness[self.clock - self._least] += 1
        return list(self._versions)

    def push(self, gradient: Gradient, versions: Sequence[int]) -> None:
        """Updates all shards by a gradient, and installs what results.

        Returns when the parameters are new enough for the next one.
        """
        self._board.hear()
        self.clock += 1
        least = self._board.others_least_clock(self.clock)
        rank, count = self._comm.rank, self._shards.count
        for i in range(count):
            shard = (rank + i) % count  # each worker begins at another one
            pieces = self._shards.take(shard, gradient.arrays)
            version, shared = versions[shard], self._shared[shard]
            with shared:
                number = shared.version
                if gradient.is_usable:
                    mine = gradient._replace(arrays=pieces)
                    rate = shared.update(mine, version, self._terms.staleness_aware)
                self._install(shard)
            if gradient.is_usable:
                entry = Update(rank, self.clock, version, rate)
                self._log[shard].append((number, entry))
        self._board.work(self.clock)
        self._least = least
        needed = self.clock - self._terms.staleness
        while self._least < needed:
            self._wait_for_others(lambda w: self._board.clocks[w] >= needed)
            self.pull()

    def _install(self, shard: int) -> None:
        shared = self._shared[shard]
        self._shards.put(shard, shared.optimizer.arrays, self._shards.arrays)
        self._versions[shard] = shared.version

    def wait(self) -> None:
        """Does nothing: all that has been pushed is applied."""

    def pull(self) -> None:
        """Installs the newest parameters, whatever the other workers do."""
        self._board.hear()
        least = self._board.others_least_clock(self.clock)
        for shard, shared in enumerate(self._shared):
            with shared:
                self._install(shard)
        self._least = least

    def pull_states(self, rules: Sequence[UpdateRule | None]) -> None:
        """Installs the parameters and puts the shards' states into update rules."""
        for shard, shared in enumerate(self._shared):
            with shared:
                self._install(shard)
                states = shared.states()
            self._shards.put_states(shard, states["rules"], rules)

    def finish(self, rules: Sequence[UpdateRule | None]) -> None:
        """Tells that no more gradients come; waits for the last ones.

        Installs the last parameters and the states of their rules.
        """
        self._board.finish()
        self._wait_for_others(lambda worker: False)
        self.pull_states(rules)

    def _wait_for_others(self, is_over: Callable[[int], bool]) -> None:
        """Waits until it is over for all other workers, or they are done or lost."""
        while waited_for := [
            w for w in self._board.working() if w != self._comm.rank and not is_over(w)
        ]:
            self._board.hear()
            for worker in waited_for:
                if self._board.silence(worker) > self._terms.timeout:
                    self._lose(worker)
            self._comm.probe(tag=_LOG_TAG, timeout=0)  # raises if a rank has failed
            time.sleep(_POLL_SECONDS)

    def _lose(self, worker: int) -> None:
        self._board.lose(worker)
        warnings.warn(
            f"parameter server: rank {self._comm.rank} has lost worker {worker}; "
            f"{self.workers_left} of {len(self._terms.workers)} workers are left",
            stacklevel=2,
        )

    def end(self) -> None:
        """Gets the logs of this rank's shards; every rank calls it."""
        works = []
        if self._comm.rank in self._terms.workers:
            for shard, host in enumerate(self._terms.hosts):
                rows = [(n, *update) for n, update in self._log[shard]]
                log = numpy.array(rows, numpy.float64)
                works.append((host, self._comm.send(log, host, shard + 1, wait=False)))
        for shard in self._own_shards:
            self._log[shard] = collections.deque(self._received_log(shard), LOG_SIZE)
        for host, work in works:
            if self._board.is_lost(host):
                continue
            with contextlib.suppress(TimeoutError, RankFailed):
                work.wait(self._terms.timeout)

    def _received_log(self, shard: int) -> list[tuple[int, Update]]:
        entries = []
        for worker in self._board.left():
            with contextlib.suppress(TimeoutError, RankFailed):
                if self._comm.probe(worker, shard + 1, self._terms.timeout) is None:
                    continue
                for number, *row in self._comm.recv(worker, shard + 1).tolist():
                    of_worker, clock, version, rate = row
                    update = Update(int(of_worker), int(clock), int(version), rate)
                    entries.append((int(number), update))
        return sorted(entries)

    @property
    def _own_shards(self) -> list[int]:
        return self._terms.shards_of(self._comm.rank)

    @property
    def logs(self) -> dict[int, list[Update]]:
        """The updates of this rank's shards, in order; before ``end`` its own only."""
        return {
            shard: [update for _, update in self._log[shard]]
            for shard in self._own_shards
        }

    @property
    def version_lag(self) -> float:
        """The mean over the updates of this rank's shards."""
        own = [self._shared[shard].version_lag for shard in self._own_shards]
        return sum(own) / len(own)

    @property
    def workers_left(self) -> int:
        """The workers that are not lost."""
        return len(self._board.left())


def connect(
    comm: Communicator, optimizer: GradientMethod, shards: Shards, terms: Terms
) -> SharedClient | None:
    """A client of shards that are made in memory; every rank calls it.

    The arguments are those of :class:`SharedClient`.

    Returns:
        None unless the ranks of one node share memory and their updates allow it.
    """
    if (
        not isinstance(comm, Communicator)
        or comm.size != comm.intra_size
        or not comm.shares_memory()
        or not all(comm.allgather_obj(can_share(optimizer, shards.params)))
    ):
        return None
    rules = [param.update_rule for param in shards.params]
    optimizers = []
    for shard in range(shards.count):
        pieces = [x.copy() for x in shards.take(shard, shards.arrays)]
        optimizers.append(ShardOptimizer(pieces, shards.shapes(shard), optimizer))
        optimizers[-1].set_states(optimizer.t, shards.states(shard, rules))
    shared = allocate(comm, optimizers, terms.hosts)
    return SharedClient(comm, optimizer, shards, shared, terms) if shared else None
