"""A graph, a cluster and costs in the simulator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from renga import _core
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.costs import Costs, parameter_share, share_of
from renga.parallel.plan.graph import PARAMETER, Graph, Operation

Strategy = list[Configuration]  # one for each operation


class Task(NamedTuple):
    """A task of the simulated step; ``resource`` is a rank, or a port of one."""

    kind: str
    operation: int
    resource: int
    start: float
    end: float


class Simulation:
    """A strategy whose step time is predicted, and that changes bit by bit.

    Source: Jia et al., Beyond data and model parallelism for deep neural networks,
    2019 (FlexFlow).

    Args:
        strategy: a configuration of each operation.
    """

    def __init__(
        self,
        graph: Graph,
        cluster: Cluster,
        costs: Costs,
        strategy: Sequence[Configuration],
    ) -> None:
        self.graph, self.cluster, self.costs = graph, cluster, costs
        self.strategy = list(strategy)
        self._simulator = _core.planning.Simulator(cluster.topology)
        self._known: dict[tuple[int, Configuration], _core.planning.Configuration] = {}
        for i, (op, configuration) in enumerate(zip(graph.operations, strategy)):
            self._simulator.add_operation(op.node, self._native(i, configuration))

    def configure(self, changes: Mapping[int, Configuration]) -> None:
        """Changes the configurations of some operations."""
        for i, configuration in changes.items():
            if self.strategy[i] != configuration:
                self._simulator.configure(i, self._native(i, configuration))
                self.strategy[i] = configuration

    def seconds(self) -> float:
        """Of a training step; only what can have changed is simulated again."""
        return float(self._simulator.seconds())

    def full_seconds(self) -> float:
        """The same number, from a new task graph."""
        return float(self._simulator.full_seconds())

    @property
    def tasks(self) -> list[Task]:
        """The tasks of the step."""
        self._simulator.seconds()
        return [Task(*task) for task in self._simulator.tasks()]

    @property
    def bytes_sent(self) -> int:
        """By all ranks in a step: activations, their gradients and parameters'."""
        synced = sum(
            sync_bytes(op, c) for op, c in zip(self.graph.operations, self.strategy)
        )
        self._simulator.seconds()
        return int(self._simulator.bytes_sent) + synced

    def sync_seconds(self, op: Operation, configuration: Configuration) -> float:
        """To add up the gradients of an operation's parameters."""
        if not op.parameters:
            return 0.0
        size = op.itemsize * parameter_share(op, configuration)
        return self.cluster.all_reduce(sync_group(op, configuration), size)

    def memory(self) -> list[int]:
        """Bytes of each rank: parameters, gradients and a moment, and activations."""
        held = [0.0] * self.cluster.ranks
        for op, configuration in zip(self.graph.operations, self.strategy):
            size = op.size * share_of(op, configuration) * configuration.reduction
            own = op.itemsize * (size + 3 * parameter_share(op, configuration))
            for rank in configuration.ranks:
                held[rank] += own
        return [math.ceil(n) for n in held]

    def _native(
        self, index: int, configuration: Configuration
    ) -> _core.planning.Configuration:
        key = index, configuration
        if key not in self._known:
            op = self.graph.operations[index]
            forward, backward = self.costs.task(op, configuration)
            sync = self.sync_seconds(op, configuration)
            update = self.costs.update(op, configuration)
            self._known[key] = _core.planning.Configuration(
                configuration.degrees,
                configuration.reduction,
                configuration.replicas,
                configuration.ranks,
                forward,
                backward,
                sync,
                update,
            )
        return self._known[key]


def sync_group(op: Operation, configuration: Configuration) -> list[int]:
    """The ranks of the first task's parameters: those that split other axes."""
    strides, stride = [], 1
    for degree in reversed(configuration.degrees):
        strides.append(stride)
        stride *= degree
    tasks = [0]
    for kind, degree, step in zip(op.axes, configuration.degrees, reversed(strides)):
        if kind != PARAMETER:
            tasks = [task + i * step for task in tasks for i in range(degree)]
    return sorted({configuration.ranks[task] for task in tasks})


def sync_bytes(op: Operation, configuration: Configuration) -> int:
    """What all ranks send to add up the gradients of an operation's parameters."""
    if not op.parameters:
        return 0
    members = len(sync_group(op, configuration))
    size = op.itemsize * parameter_share(op, configuration)
    tasks = len(configuration.ranks) // configuration.replicas
    groups = tasks // max(1, members)
    return groups * 2 * (members - 1) * size
