"""An optimizer whose updates are made by parameter servers."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from renga.communicators import Communicator
from renga.core.link.sharing_memory import require_own_memory
from renga.core.optimizer import GradientMethod
from renga.core.optimizer.update_rule import require_own_rules
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.core.types import Array
from renga.parallel.asynchronous.asynchronous_optimizer import AsynchronousOptimizer
from renga.parallel.asynchronous.packed import PackedParameters
from renga.parallel.asynchronous.server.caller_changes import CallerChanges
from renga.parallel.asynchronous.server.client import Client
from renga.parallel.asynchronous.server.leaf import Leaf, take_gradient_of
from renga.parallel.asynchronous.server.results import put_results
from renga.parallel.asynchronous.server.roles import Terms, roles_in
from renga.parallel.asynchronous.server.rows import RowsOfBatch
from renga.parallel.asynchronous.server.service import Service
from renga.parallel.asynchronous.server.settings import hook_finder, numbers_of
from renga.parallel.asynchronous.server.shard_optimizer import ShardOptimizer, rate_name
from renga.parallel.asynchronous.server.shard_server import ShardServer, Update, mean
from renga.parallel.asynchronous.server.shards import Needs, Shards, needs_of
from renga.parallel.asynchronous.server.shared_client import SharedClient, connect
from renga.parallel.data.extensions.rounds import Rounds
from renga.parallel.data.gradients import require_whole_gradients, spend_gradients


class ServerOptimizer(AsynchronousOptimizer):
    """Pushes this rank's gradients to servers and gets parameters from them.

    A rank that serves only calls :meth:`serve`; the others call ``update``, then
    :meth:`join`. The settings of an update are those of the gradient's rank. What the
    caller writes into parameters or loads is sent to the servers.

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

    _client: Any  # a Client or SharedClient, once there are parameters
    _changes: Any  # CallerChanges, with the client
    _last: Any  # the client, its changes, parameters and rules before setup
    _has_loaded_states: bool
    _service: Service | SharedClient | None
    _leaf: Any  # Leaf of a worker
    _terms: Terms
    # Counts this rank's gradients by their staleness, also after join().
    _histogram: collections.Counter[int] | None

    def _is_bound(self) -> bool:
        return self._client is not None

    def __init__(
        self,
        actual_optimizer: GradientMethod,
        communicator: Communicator,
        servers: int | None,
        shards: int | None,
        staleness: float,
        staleness_aware: bool,
        timeout: float,
        leaf: int,
        rows: Mapping[str, Callable[..., object]] | None,
    ) -> None:
        super().__init__(actual_optimizer, communicator)
        rank = communicator.rank
        roles = roles_in(communicator, servers, leaf, (rows or {}).keys())
        if staleness_aware and staleness:
            rate_name(numbers_of(actual_optimizer))
        hosting, workers, leaf = roles
        count = len(hosting) if shards is None else shards
        hosts = [hosting[shard % len(hosting)] for shard in range(count)]
        pushing = list(workers)[::leaf]
        of_leaf = communicator.split(roles.leaf_of(rank), rank)
        vars(self).update(
            is_server=rank in hosting,
            is_worker=rank in workers,
            _leaf_size=leaf,
            _leaf=None if of_leaf is None else Leaf(of_leaf),
            _row_functions=rows or {},
            _rows=None,  # RowsOfBatch, once there are parameters
            _terms=Terms(hosts, pushing, staleness, staleness_aware, timeout),
            _may_leave_shards=shards is None,  # without parameters
            _comm=communicator.split(0, rank),  # messages of its own
            _group=communicator.split(0 if rank in workers else None, rank),
            _servers=communicator.split(None if rank in workers else 0, rank),
            _client=None,
            _changes=None,
            _last=None,  # these two, packed parameters and rules before setup
            _has_loaded_states=False,
            _service=None,
            _histogram=None,
        )
        self._model.comm = self._group
        workers_or_servers = self._group if self.is_worker else self._servers
        self._rounds = Rounds("consensus_distance", workers_or_servers)

    def serve(self) -> None:
        """Serves until all workers are done or lost.

        Afterwards this rank's model and optimizer have the results, too.

        Raises:
            RuntimeError: on a rank that computes.
            ValueError: if only servers have loaded a file.
        """
        if self.is_worker:
            raise RuntimeError("serve: expected a rank that only serves, got a worker")
        self._service = service = self._make_service()
        service.run()
        results = service.results()
        put_results(self._servers, self.actual_optimizer, service.layout, results)

    def _make_service(self) -> Service:
        has_loaded = self._loaded and self.t > 0
        return Service(self._comm, self._terms, self._make_server, has_loaded)

    def _make_server(
        self, arrays: list[Array], shapes: list[tuple[int, ...]]
    ) -> ShardServer:
        optimizer = ShardOptimizer(arrays, shapes, self.actual_optimizer)
        return ShardServer(optimizer, hook_finder(self.actual_optimizer), self._terms)

    def update(
        self,
        lossfun: Callable[..., object] | None = None,
        *args: Array,
        samples: int | None = None,
        **kwds: object,
    ) -> None:
        """Pushes the gradients of a loss, or those that the parameters have.

        The arguments are those of :meth:`AsynchronousOptimizer.update`.

        Raises:
            RuntimeError: on a rank that only serves.
            ValueError: for settings that the servers cannot have; nothing has been
                pushed then.
        """
        self._require_worker("update")
        if self._row_functions and self._loss_scaling_is_dynamic:
            raise ValueError(
                "create_server_optimizer: expected a constant loss scale with rows, "
                "got a dynamic one"
            )
        super().update(lossfun, *args, samples=samples, **kwds)

    def _after_begin(self, resumes: bool) -> None:
        shards = self._make_shards(self._group)
        shared, terms = None, self._terms
        if self.is_server and self.is_worker and terms.staleness and not self._rows:
            shared = connect(self._comm, self.actual_optimizer, shards, terms)
        if shared is not None:
            self._service = shared
            self._use_client(shared, shards)
            shared.pull()  # loaded parameters may differ between ranks
            self._changes.record()
            return
        client = self._make_client(shards)
        self._use_client(client, shards)
        if self._comm.rank == terms.workers[0]:
            client.initialize(self.actual_optimizer, resumes)
        if self.is_server:
            self._service = client.own_service = self._make_service()
            client.own_service.start()

    def _use_client(self, client: Client | SharedClient, shards: Shards) -> None:
        self._client, self._histogram = client, client.staleness
        self._changes = CallerChanges(self.actual_optimizer, shards, client)

    def _after_load(self) -> None:
        self._has_loaded_states = True

    def _make_shards(self, group: Communicator | None) -> Shards:
        """The division that the optimizers of all ranks of a group need."""
        require_own_memory("create_server_optimizer", self.target)
        require_own_rules("create_server_optimizer", self.actual_optimizer)
        distinct = self._distinct_params()
        self._rows = RowsOfBatch(self._row_functions, distinct)
        params = [found.param for found in distinct]
        needs = needs_of(self.actual_optimizer, params)
        if group is not None:
            needs = max(group.allgather_obj(needs))
        if needs is Needs.ONE_SHARD and not self._may_leave_shards:
            needs = Needs.WHOLE_PARAMETERS  # refused if there are several shards
        shards = Shards(params, len(self._terms.hosts), needs)
        shards.check(self.actual_optimizer)
        return shards

    def _make_client(self, shards: Shards) -> Client:
        rows = [self._rows.pieces(shards, i) for i in range(shards.count)]
        return Client(self._comm, shards, self._terms, rows)

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
        self._last = None  # it has been lost
        if self._client is not None:
            self._client.wait()  # for what it may have asked before
        shards = self._make_shards(None)
        client: Any = self._service
        if not isinstance(client, SharedClient):
            client = self._make_client(shards)
        self._use_client(client, shards)
        client.join()
        self._changes.record()
        self._packed, self._loaded = PackedParameters(self.target), False

    def _update(self, forward: Callable[[], Any] | None) -> None:
        if forward is None:
            require_whole_gradients(self.target.params())
        rows = self._rows_of(forward)
        if not self._changes.can_be_sent and self.is_server and self._may_leave_shards:
            self._divide_anew()
        self._changes.send_settings()
        if self._send_changes() and forward is not None:
            self._client.pull()
        if self._leaf.is_first:
            # A gradient that the caller has computed is of the present parameters, and
            # so are those of the other workers of a leaf.
            is_open = forward is not None and self._leaf_size == 1
            versions = self._client.begin_step(rows if is_open else None)
        self._compute_gradients(forward)
        params = [distinct.param for distinct in self._distinct_params()]
        gradient = take_gradient_of(
            params, self.actual_optimizer, self._leaf, self._samples
        )
        self._rows.check(gradient.arrays, rows)
        if self._leaf.is_first:
            self._client.push(gradient, versions)
        self._leaf.share(self._packed)
        self._changes.record()
        spend_gradients(params)
        self._count_update()

    def _send_changes(self) -> bool:
        """Sends what the caller has changed; whether parameters have been."""
        has_loaded = self._has_loaded_states or self._loaded
        self._has_loaded_states = self._loaded = False
        is_changed: bool = self._changes.send(has_loaded)
        return is_changed

    def _count_update(self) -> None:
        """Counts it, and adapts a dynamic loss scale."""
        optimizer = self.actual_optimizer
        optimizer.t += 1
        if optimizer.has_dynamic_loss_scale and self._terms.staleness == 0:
            overflowed = self._leaf.share_number(self._client.overflowed)
            optimizer.note_overflow(bool(overflowed))
        optimizer.update_loss_scale()

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

    def _join(self) -> None:
        """Waits for all workers to finish; gets the last parameters and states."""
        if self.is_worker:
            self._begin_to_join()
        if self._client is not None:
            self._end(self._rules())

    def _leave_model(self) -> None:
        if self._client is not None and self._packed is not None:
            self._last = self._client, self._changes, self._packed, self._rules()

    def _end_last(self) -> None:
        if self._last is None:
            return
        loaded = self._loaded, self._has_loaded_states  # of the present model
        self._loaded = self._has_loaded_states = False
        self._client, self._changes, self._packed, rules = self._last
        self._last = None
        self._end(rules)
        self._loaded, self._has_loaded_states = loaded

    def _rules(self) -> list[Any]:
        """Those of the parameters that the servers have."""
        return [param.update_rule for param in self._changes.params]

    def _end(self, rules: list[Any]) -> None:
        """Ends what has begun with the first update; every rank calls it.

        The servers' states come home to the ``rules``.
        """
        self._finish(rules)
        # A further update begins anew.
        self._client = self._changes = self._packed = None

    def _finish(self, rules: list[Any]) -> None:
        """Ends the servers and gets what they have; every worker calls it."""
        self._send_changes()
        self._leaf.wait()  # they may pull until then
        if self._leaf.is_first:
            self._client.finish(rules)
        self._leaf.share(self._packed)
        self._leaf.share_states(rules)
        if self._service is not None:
            self._service.end()

    def _divide_anew(self) -> None:
        """Divides the parameters for hooks that the caller has added to all ranks."""
        self._finish(self._rules())
        self._group.barrier()  # all servers have ended
        self._after_begin(resumes=True)

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """A context in which the model has the servers' newest parameters.

        A single rank may enter it. Training goes on with them.

        Raises:
            RuntimeError: on a rank that only serves.
        """
        self._require_worker("averaged")
        if self._client is not None:
            self._send_changes()
            self._client.pull()
            self._changes.record()
        yield

    def consensus_distance(self) -> float:
        """How far this rank's parameters are from the mean; all workers call it.

        Raises:
            RuntimeError: on a rank that only serves, or if training has ended on
                another worker.
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
        """The last updates of each shard that this rank serves, in order.

        With them, training can be repeated in one process: the gradient of each entry
        is that of its worker's batch ``clock - 1``, computed with the parameters after
        ``version`` updates. There are at most 1024, and none with a staleness of 0. Of
        shards in shared memory, those of other ranks come with ``join()``.
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

    def serialize(self, serializer: AbstractSerializer) -> None:
        """Saves or loads the states, which a worker gets from the servers first."""
        if not isinstance(serializer, Deserializer) and self._client is not None:
            self._send_changes()
            distinct = self._distinct_params()
            self._client.pull_states([found.param.update_rule for found in distinct])
            self._changes.record()
        super().serialize(serializer)
