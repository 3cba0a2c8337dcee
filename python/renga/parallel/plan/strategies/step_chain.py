"""What every rank of a parallel model does in a step, one thing after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from renga import _core
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.simulation import Task
from renga.parallel.plan.strategies.messages import Messages


class LinkTimes(NamedTuple):
    """The seconds of a call of a link, and of the functions behind it, on each rank."""

    link: tuple[float, float]  # forward and backward
    functions: tuple[float, float]
    messages: Messages
    update: float

    @property
    def computed(self) -> float:
        """All of them but the messages'."""
        return sum(self.link) + sum(self.functions) + self.update


class StepChain:
    """The calls of a model's links in the simulator.

    A rank computes them one after the other, and waits in collectives. All ranks do the
    same at the same time, so one is simulated.

    Args:
        times: of each call.
        names: of what is called.
    """

    def __init__(
        self, cluster: Cluster, times: Sequence[LinkTimes], names: Sequence[str]
    ) -> None:
        self.names = list(names)
        self._times = list(times)
        self._simulator = _core.planning.Simulator(cluster.topology)
        chain = [c for own in times for c in self._configurations(own)]
        for i, configuration in enumerate(chain):
            axes = [_core.planning.InputAxis(0)]
            inputs = [_core.planning.Input(i - 1, [1], axes)] if i else []
            node = _core.planning.Operation([1], 1, 4, [False], inputs)
            self._simulator.add_operation(node, configuration)

    def change(self, call: int, times: LinkTimes) -> None:
        """Changes the times of a call."""
        if times == self._times[call]:
            return
        self._times[call] = times
        for k, own in enumerate(self._configurations(times)):
            self._simulator.configure(3 * call + k, own)

    @property
    def times(self) -> list[LinkTimes]:
        """Of each call."""
        return self._times

    def seconds(self) -> float:
        """Of the step."""
        return float(self._simulator.seconds())

    @property
    def tasks(self) -> list[Task]:
        """The tasks of the step of a rank.

        Operations 3 i, 3 i + 1 and 3 i + 2 are the messages of call i, its link, and
        the functions behind it.
        """
        self._simulator.seconds()
        return [Task(*task) for task in self._simulator.tasks()]

    def _configurations(self, times: LinkTimes) -> list[_core.planning.Configuration]:
        """Of the messages, the link, and the functions behind it."""
        passes = [times.messages[:2], times.link, times.functions]
        updates = [0.0, times.update, 0.0]
        return [
            _core.planning.Configuration([1], 1, 1, [0], *own, 0.0, update)
            for own, update in zip(passes, updates)
        ]
