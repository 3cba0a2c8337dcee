"""The loop of a rank that serves shards."""

from __future__ import annotations

import collections
import contextlib
import pickle
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from typing import Callable

import numpy

from renga.communicators import Communicator, RankFailed, Status, Work
from renga.core.types import Array
from renga.parallel.asynchronous.server.gradient import Gradient
from renga.parallel.asynchronous.server.results import Layout
from renga.parallel.asynchronous.server.roles import Terms
from renga.parallel.asynchronous.server.rows import ShardRows
from renga.parallel.asynchronous.server.shard_server import (
    Push,
    ShardServer,
    Update,
    mean,
)

# Kinds of requests. PUSH has a gradient, SETTINGS and CHANGE have a pickled object.
# AWAIT is answered when the clocks allow it, PULL and STATE at once, DONE when all
# workers have asked so.
PUSH, PUSH_AWAIT, AWAIT, PULL, STATE, JOIN, DONE, SETTINGS, CHANGE = range(9)
REQUEST_TAG = 0
# Replies of shard i have the tag REPLY_TAG + 3 i, states STATE_TAG + 3 i, and what it
# begins with FIRST_TAG + 3 i.
REPLY_TAG, STATE_TAG, FIRST_TAG = 1, 2, 3
_POLL_SECONDS = 100e-6
_SECONDS_TO_RAISE = 10.0  # a thread that computes longer does not call check()


class Service:
    """Answers the requests of workers until all of them are done or lost.

    Args:
        comm: the ranks that serve and work.
        terms: of both. The first worker sends the parameters to begin with.
        make_server: makes a shard's server of these pieces of parameters, seen in these
            shapes.
        has_loaded: whether this rank has loaded a file, which the workers then have to.
    """

    def __init__(
        self,
        comm: Communicator,
        terms: Terms,
        make_server: Callable[[list[Array], list[tuple[int, ...]]], ShardServer],
        has_loaded: bool,
    ) -> None:
        self._comm = comm
        self._workers = terms.workers
        self._timeout = terms.timeout
        self._shards = terms.shards_of(comm.rank)
        self._make_server = make_server
        self._names: dict[int, list[str]] = {}  # of the numbers in pushes, by worker
        self._has_loaded = has_loaded
        self._rows: dict[int, ShardRows] = {}
        # Rows that a worker waits for, by worker and shard.
        self._chosen: dict[tuple[int, int], Sequence[Array]] = {}
        self._heard: dict[int, float] = {}  # when, by worker
        self._done: dict[int, set[int]] = {}  # workers that wait for the end, by shard
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_raised = threading.Event()  # in the thread that computes
        self.servers: dict[int, ShardServer] = {}
        self.lost: set[int] = set()
        # The first worker tells these: the layout of its parameters, and the
        # optimizer's count.
        self.layout: Layout | None = None
        self._first_t = 0

    def start(self) -> None:
        """Runs on a thread of its own."""
        self._thread = threading.Thread(target=self._run_or_abort, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises in the calling thread what that thread has raised."""
        if self._error is not None:
            self._is_raised.set()
            raise self._error

    def end(self) -> None:
        """Waits for the end of that thread, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _run_or_abort(self) -> None:
        try:
            self.run()
        except RankFailed:  # all ranks know of it
            self._comm.abort(1)
        except BaseException as error:
            self._error = error
            if not self._is_raised.wait(_SECONDS_TO_RAISE):
                traceback.print_exc()  # before the process ends
                self._comm.abort(1)  # its workers would wait for it

    def run(self) -> None:
        """Serves until the end."""
        for shard in self._shards:
            state = self._comm.recv_obj(self._workers[0], FIRST_TAG + 3 * shard)
            self.servers[shard] = server = self._make_server(
                state["arrays"], state["shapes"]
            )
            self._rows[shard] = ShardRows(state["rows_of_pieces"])
            self.layout, self._first_t = state["layout"], state["t"]
            if self._has_loaded and not state["has_loaded"]:
                raise ValueError(
                    "serve: expected the workers, with whose parameters training "
                    f"begins, to load a file, got one on server {self._comm.rank} only"
                )
            server.optimizer.set_states(state["t"], state["rules"])
            self._done[shard] = set()
            for worker in server.workers:
                self._heard[worker] = self._comm.clock
        while any(server.workers for server in self.servers.values()):
            try:
                found = self._next_request(self._timeout / 4)
            except RankFailed:  # no rank is left
                break
            if found is not None:
                self._handle(found.source, *self._comm.recv(found.source, REQUEST_TAG))
            self._forget_silent()
            self._answer()
        works = [
            self._send_states(worker, shard)
            for shard, workers in self._done.items()
            for worker in sorted(workers)
        ]
        for work in works:  # this process may end after it
            with contextlib.suppress(TimeoutError):
                work.wait(self._timeout)

    def _next_request(self, timeout: float) -> Status | None:
        """Waits for a request, at most ``timeout`` seconds."""
        if self._thread is None:
            return self._comm.probe(tag=REQUEST_TAG, timeout=timeout)
        # A probe that waits would take the core from the thread that computes.
        end = time.monotonic() + timeout
        while (found := self._comm.probe(tag=REQUEST_TAG, timeout=0)) is None:
            if time.monotonic() > end:
                break
            time.sleep(_POLL_SECONDS)
        return found

    def _handle(self, worker: int, header: Array, *arrays: Array) -> None:
        kind, shard, clock, version = map(int, header[:4])
        server = self.servers[shard]
        self._heard[worker] = self._comm.clock
        self.lost.discard(worker)
        if kind in (PUSH, PUSH_AWAIT):
            gradient = self._gradient(worker, shard, header[4:].tolist(), arrays)
            server.push(Push(worker, clock, version, gradient))
        if kind == AWAIT:
            self._chosen[worker, shard] = arrays
        if kind in (AWAIT, PUSH_AWAIT):
            server.ask(worker, clock)
        elif kind == DONE:
            server.remove(worker)
            self._done[shard].add(worker)
        elif kind == STATE:
            self._send_states(worker, shard)
        elif kind == JOIN:
            self._reply(worker, shard, server.admit(worker))
        elif kind == PULL:
            self._reply(worker, shard)
        elif kind == SETTINGS:
            settings = pickle.loads(arrays[0].data)
            self._names[worker] = settings.numbers
            server.configure(worker, settings)
        elif kind == CHANGE:
            server.optimizer.change(pickle.loads(arrays[0].data))

    def _gradient(
        self, worker: int, shard: int, numbers: list[float], arrays: Sequence[Array]
    ) -> Gradient:
        scale, samples, *values = numbers
        named = dict(zip(self._names[worker], values))
        return Gradient(self._gradients(shard, arrays), scale, int(samples), named)

    def _send_states(self, worker: int, shard: int) -> Work:
        states = pickle.dumps(self.servers[shard].optimizer.states())
        x = numpy.frombuffer(states, numpy.uint8)
        tag = STATE_TAG + 3 * shard
        work: Work = self._comm.send(x, worker, tag, wait=False)
        return work

    def _gradients(self, shard: int, arrays: Sequence[Array]) -> list[Array]:
        """Gradients of whole pieces: in rows that were not sent, they are zero."""
        rows = self._rows[shard]
        if rows.count == 0:
            return list(arrays)
        gradients = [numpy.zeros_like(x) for x in self.servers[shard].optimizer.arrays]
        rows.put(gradients, arrays[: rows.count], arrays[rows.count :])
        return gradients

    def _reply(
        self,
        worker: int,
        shard: int,
        clock: int = 0,
        chosen: Sequence[Array] | None = None,
    ) -> Work:
        server = self.servers[shard]
        header = numpy.array([*server.header(), clock], numpy.float64)
        pieces = server.optimizer.arrays
        if chosen is not None:
            pieces = self._rows[shard].take(pieces, chosen)
        pieces = [x.copy() for x in pieces]
        tag = REPLY_TAG + 3 * shard
        work: Work = self._comm.send((header, *pieces), worker, tag, wait=False)
        return work

    def _answer(self) -> None:
        for shard, server in self.servers.items():
            for worker in server.due():
                chosen = self._chosen.pop((worker, shard), None)
                # It could not be heard of while it waited.
                self._heard[worker] = self._comm.clock
                self._reply(worker, shard, chosen=chosen)

    def _forget_silent(self) -> None:
        """Goes on without workers that have been silent for too long."""
        now = self._comm.clock
        for worker, at in list(self._heard.items()):
            if now - at <= self._timeout:
                continue
            servers = self.servers.values()
            if any(server.is_waiting(worker) for server in servers):
                continue  # for an answer of ours
            if any(worker in server.workers for server in servers):
                self._lose(worker)
            del self._heard[worker]

    def results(self) -> dict[int, dict[str, object]]:
        """The parameters and states of each shard, with the count of a worker."""
        return {
            shard: {
                **server.optimizer.states(),
                "t": self._first_t + server.greatest_clock,
            }
            for shard, server in self.servers.items()
        }

    @property
    def logs(self) -> dict[int, list[Update]]:
        """The last updates of each shard, in order."""
        return {shard: list(server.log) for shard, server in self.servers.items()}

    @property
    def version_lag(self) -> float:
        """The mean over the updates of the shards."""
        servers = self.servers.values()
        return mean(sum((s.staleness for s in servers), collections.Counter()))

    @property
    def workers_left(self) -> int:
        """The workers that are not lost."""
        return len(self._workers) - len(self.lost)

    def _lose(self, worker: int) -> None:
        self.lost.add(worker)
        for server in self.servers.values():
            server.remove(worker)
        warnings.warn(
            f"parameter server: rank {self._comm.rank} has lost worker {worker}; "
            f"{self.workers_left} of {len(self._workers)} workers are left",
            stacklevel=2,
        )
