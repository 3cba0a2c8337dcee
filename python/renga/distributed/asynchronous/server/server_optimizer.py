"""An optimizer whose updates are made by parameter servers."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Callable

from renga.communicators import NativeCommunicator
from renga.communicators.simulated import VirtualCommunicator
from renga.distributed.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.distributed.asynchronous.packed import PackedParameters
from renga.distributed.asynchronous.server.client import Client
from renga.distributed.asynchronous.server.leaf import Leaf
from renga.distributed.asynchronous.server.rows import RowsOfBatch
from renga.distributed.asynchronous.server.service import Service
from renga.distributed.asynchronous.server.shard_optimizer import (
    ShardOptimizer,
    rate_name,
)
from renga.distributed.asynchronous.server.shard_server import (
    ShardServer,
    Update,
    mean,
)
from renga.distributed.asynchronous.server.shards import Shards
from renga.distributed.asynchronous.server.shared_client import SharedClient
from renga.distributed.asynchronous.server.shared_shard import allocate, can_share
from renga.distributed.data_parallel.gradients import take_gradient
from renga.serializer import Deserializer

if TYPE_CHECKING:
    from renga.communicators import Communicator
    from renga.communicators.communicator import Array


class ServerOptimizer(AsynchronousOptimizer):
    """Pushes this rank's gradients to servers and gets parameters from them.

    A rank that serves only calls :meth:`serve`; the others call ``update``, then
    :meth:`join`. The hyperparameters of a gradient are those of its rank. Gradients
    count the same, whatever the numbers of samples.

    Args:
        actual_optimizer: copies of it on the servers make the updates.
        communicator: of all ranks.
        servers: how many ranks serve only, the first ones; None: every rank updates
            the shards in memory that they share, or serves a shard on a thread of its
            own.
        shards: into which the parameters are divided; None: one for each server.
        staleness: how many clocks a worker may be ahead of the slowest.
        staleness_aware: whether learning rates are divided by the staleness.
        timeout: a worker that is not heard of for so many seconds is lost.
        leaf: how many workers push the mean of their gradients as one.
        rows: functions of the batch that say which rows of parameters it reads.
    """

    _client: Client | SharedClient | None
    _service: Service | SharedClient | None
    _leaf: Leaf | None
    # Of this rank's gradients by their staleness, also after join().
    _histogram: collections.Counter[int] | None

    def __init__(
        self,
        actual_optimizer: Any,
        communicator: Communicator,
        servers: int | None,
        shards: int | None,
        staleness: float,
        staleness_aware: bool,
        timeout: float,
        leaf: int,
        rows: Mapping[str, Callable[..., Any]] | None,
    ) -> None:
        super().__init__(actual_optimizer, communicator)
        size, rank = communicator.size, communicator.rank
        if servers is None and isinstance(communicator, VirtualCommunicator):
            raise ValueError(
                "create_server_optimizer: expected servers to be a number of ranks: a "
                "virtual rank has one thread"
            )
        if servers is not None and not 1 <= servers < size:
            raise ValueError(
                "create_server_optimizer: expected 1 server or more, and a rank that "
                f"computes, got {servers} of {size} ranks"
            )
        if staleness_aware and staleness:
            rate_name(_numbers(actual_optimizer))
        hosting = range(size) if servers is None else range(servers)
        count = len(hosting) if shards is None else shards
        workers = range(size) if servers is None else range(servers, size)
        leaf = min(leaf, len(workers))
        if len(workers) % leaf:
            raise ValueError(
                "create_server_optimizer: expected leaves of equally many workers, got "
                f"{leaf} of {len(workers)} in each"
            )
        if leaf > 1 and rows:
            raise ValueError(
                "create_server_optimizer: expected no rows of parameters with leaves, "
                f"which share all of them, got rows of {', '.join(rows)}"
            )
        number = workers.index(rank) if rank in workers else None
        of_leaf = communicator.split(None if number is None else number // leaf, rank)
        vars(self).update(
            is_server=rank in hosting,
            is_worker=rank in workers,
            _workers=list(workers)[::leaf],  # those that push
            _leaf_size=leaf,
            _leaf=None if of_leaf is None else Leaf(of_leaf),
            _row_functions=rows or {},
            _rows=None,  # RowsOfBatch, once there are parameters
            _hosts=[hosting[shard % len(hosting)] for shard in range(count)],
            _staleness=staleness,
            _staleness_aware=staleness_aware,
            _timeout=timeout,
            _comm=communicator.split(0, rank),  # messages of its own
            _group=communicator.split(0 if rank in workers else None, rank),
            _client=None,
            _service=None,
            _histogram=None,
        )

    def serve(self) -> None:
        """Serves until all workers are done or lost.

        Raises:
            RuntimeError: on a rank that computes.
        """
        if self.is_worker:
            raise RuntimeError("serve: expected a rank that only serves, got a worker")
        self._service = service = self._make_service()
        service.run()

    def _make_service(self) -> Service:
        own = [s for s, host in enumerate(self._hosts) if host == self._comm.rank]
        names = list(_numbers(self.actual_optimizer))
        return Service(
            self._comm, own, self._workers, self._make_server, names, self._timeout
        )

    def _make_server(self, arrays: list[Array]) -> ShardServer:
        return ShardServer(
            ShardOptimizer(arrays, self.actual_optimizer),
            self._workers,
            self._staleness,
            self._staleness_aware,
        )

    def update(
        self, lossfun: Callable[..., Any] | None = None, *args: Any, **kwds: Any
    ) -> None:
        """Pushes the gradients of a loss, or those that the parameters have.

        Raises:
            RuntimeError: on a rank that only serves.
            ValueError: if the optimizer has a dynamic loss scale.
        """
        self._require_worker("update")
        self._require_constant_loss_scale("create_server_optimizer")
        super().update(lossfun, *args, **kwds)

    def _after_begin(self, resumes: bool) -> None:
        rules = [param.update_rule for _, param in self._named_params()]
        shards = self._make_shards()
        shared = self._make_shared_client(shards, rules)
        if shared is not None:
            self._client = self._service = shared
            self._histogram = shared.staleness
            shared.pull()  # loaded parameters may differ between ranks
            return
        self._client = client = self._make_client(shards)
        self._histogram = client.staleness
        if self._comm.rank == self._workers[0]:
            client.initialize(rules)
        if self.is_server:
            self._service = service = self._make_service()
            service.start()

    def _make_shards(self) -> Shards:
        named = self._named_params()
        self._rows = RowsOfBatch(self._row_functions, named)
        params = [param for _, param in named]
        return Shards(params, self.actual_optimizer, len(self._hosts))

    def _make_client(self, shards: Shards) -> Client:
        rows = [self._rows.pieces(shards, i) for i in range(shards.count)]
        return Client(self._comm, shards, self._hosts, self._staleness, rows)

    def _make_shared_client(
        self, shards: Shards, rules: list[Any]
    ) -> SharedClient | None:
        """If every rank of one node may update all shards by itself."""
        comm, optimizer = self._comm, self.actual_optimizer
        if (
            not (self.is_server and self.is_worker and self._staleness)
            or self._row_functions
            or not isinstance(comm, NativeCommunicator)
            or comm.size != comm.intra_size
            or not comm.shares_memory()
            or not can_share(optimizer, shards.params)
        ):
            return None
        arrays = [param.array for param in shards.params]
        optimizers = []
        for shard in range(shards.count):
            pieces = [x.copy() for x in shards.take(shard, arrays)]
            optimizers.append(ShardOptimizer(pieces, optimizer))
            t = max((rule.t for rule in rules), default=0)
            optimizers[-1].set_states(t, shards.states(shard, rules))
        shared = allocate(comm, optimizers, self._hosts)
        if not shared:
            return None
        bounds = self._staleness, self._staleness_aware, self._timeout
        return SharedClient(comm, shards, shared, self._hosts, self._workers, *bounds)

    def enter(self) -> None:
        """Joins workers that have begun, in place of one that was lost.

        The model has to have the shapes of theirs. Its parameters become those of the
        servers; no other worker takes part.

        Raises:
            RuntimeError: if workers push together, as a leaf, or this one should serve
                a shard.
        """
        if self._leaf_size > 1:
            raise RuntimeError(
                "enter: expected workers that push alone, got leaves of "
                f"{self._leaf_size}"
            )
        if self.is_server and self._service is None:
            raise RuntimeError("enter: expected servers that do nothing else, got none")
        if self._client is not None:
            self._client.wait()  # for what it may have asked before
        if isinstance(self._service, SharedClient):
            self._client = self._service
        else:
            self._client = self._make_client(self._make_shards())
        self._client.join()
        self._histogram = self._client.staleness
        self._packed, self._loaded = PackedParameters(self.target), False

    def _named_params(self) -> list[tuple[str, Any]]:
        return sorted(self.target.namedparams(include_uninit=False))

    def _update(self, forward: Callable[[], Any] | None) -> None:
        assert self._client is not None and self._leaf is not None
        rows = self._rows_of(forward)
        if self._leaf.is_first:
            versions = self._client.begin_step(rows)
        self._leaf.share(self._packed)
        self._compute_gradients(forward)
        self._leaf.average_gradients(self.target)
        gradients = [_take(param) for _, param in self._named_params()]
        self._rows.check(gradients, rows)
        if self._leaf.is_first:
            self._client.push(gradients, versions, _numbers(self.actual_optimizer))
        self.actual_optimizer.t += 1

    def _rows_of(self, forward: Any) -> dict[int, Array]:
        """The rows that the arguments of the loss function name."""
        if not self._row_functions:
            return {}
        if forward is None:
            raise ValueError(
                "update: expected a loss function, whose arguments say which rows are "
                "pulled, got none"
            )
        rows: dict[int, Array] = self._rows.find(forward.args, forward.keywords)
        return rows

    def join(self) -> None:
        """Waits for all workers to finish, and gets the last parameters."""
        if self._client is not None and self._leaf is not None:
            self._leaf.wait()  # they may pull until then
            if self._leaf.is_first:
                self._client.finish()
            self._leaf.share(self._packed)
            self._client = None
            self._packed = None  # a further update begins anew
            if self._service is not None:
                self._service.end()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """A context in which the model has the servers' newest parameters.

        A single rank may enter it. Training goes on with them.

        Raises:
            RuntimeError: on a rank that only serves.
        """
        self._require_worker("averaged")
        if self._client is not None:
            self._client.pull()
        yield

    def consensus_distance(self) -> float:
        """How far this rank's parameters are from the mean; all workers call it.

        Raises:
            RuntimeError: on a rank that only serves.
        """
        self._require_worker("consensus_distance")
        return super().consensus_distance()

    def _require_worker(self, call: str) -> None:
        if not self.is_worker:
            raise RuntimeError(
                f"{call}: expected a worker, got a rank that only serves"
            )

    @property
    def logs(self) -> dict[int, list[Update]]:
        """The updates of each shard that this rank serves, in order.

        With them, training can be repeated in one process: the gradient of each entry
        is that of its worker's batch ``clock - 1``, computed with the parameters after
        ``version`` updates. There are none with a staleness of 0. Of shards in shared
        memory, those of other ranks come with ``join()``.
        """
        return {} if self._service is None else self._service.logs

    def observe(self) -> dict[str, float]:
        """Numbers about this rank's communication so far, by name.

        ``staleness`` is the mean, in clocks, of the parameters of its gradients, and
        ``staleness_max`` the greatest; ``version_lag`` and ``workers_left`` are those
        of the shards that it serves.
        """
        traffic = self._comm.traffic
        numbers = {"messages": float(traffic.messages), "bytes": float(traffic.bytes)}
        if self._histogram is not None:
            numbers["staleness"] = mean(self._histogram)
            numbers["staleness_max"] = max(self._histogram, default=0)
        if self._service is not None and self._service.logs:
            numbers["version_lag"] = self._service.version_lag
            numbers["workers_left"] = self._service.workers_left * self._leaf_size
        return numbers

    def staleness_histogram(self) -> dict[int, int]:
        """How often this rank's gradients were computed so many clocks behind."""
        return dict(self._histogram or {})

    def serialize(self, serializer: Any) -> None:
        """Saves or loads the states, which a worker gets from the servers first."""
        if not isinstance(serializer, Deserializer) and self._client is not None:
            rules = [param.update_rule for _, param in self._named_params()]
            self._client.pull_states(rules)
        super().serialize(serializer)


def _numbers(optimizer: Any) -> dict[str, float]:
    """The numbers among the hyperparameters of an optimizer."""
    values = optimizer.hyperparam.get_dict()
    return {
        name: values[name]
        for name in sorted(values)
        if isinstance(values[name], (int, float)) and not isinstance(values[name], bool)
    }


def _take(param: Any) -> Array:
    """The gradient, without its loss scale; zeros if there is none."""
    scale, param._loss_scale = param._loss_scale, None
    return take_gradient(param, 1.0 if scale is None else 1 / scale)
