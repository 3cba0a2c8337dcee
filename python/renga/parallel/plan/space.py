"""What a search changes: variables with choices, and the predicted step."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.configuration import (
    Configuration,
    configurations,
    data_parallel,
    parameter_parallel,
    random_configuration,
)
from renga.parallel.plan.costs import Costs
from renga.parallel.plan.graph import Graph
from renga.parallel.plan.simulation import Simulation

Choice = TypeVar("Choice")

# At most so many choices are compared with another choice.
_COMPARED = 12


class Space(Protocol[Choice]):
    """Strategies as choices, one for each variable; one of them is current."""

    @property
    def current(self) -> list[Choice]:
        """The choice of each variable."""

    def choices(self, variable: int) -> Sequence[Choice]:
        """All choices of a variable."""

    def draw(self, variable: int, generator: random.Random) -> Choice:
        """A random choice."""

    def change(self, variable: int, choice: Choice) -> None:
        """Changes the current strategy."""

    def seconds(self) -> float:
        """The predicted seconds of a step of the current strategy."""

    def memory(self) -> int:
        """The bytes of the rank that needs most."""

    def starts(self, generator: random.Random) -> dict[str, list[Choice]]:
        """Strategies to start from, by name."""

    def describe(self, variable: int, choice: Choice) -> str:
        """A choice in words."""


def take(space: Space[Choice], choices: Sequence[Choice]) -> float:
    """Makes a strategy the current one; its predicted seconds."""
    for variable, choice in enumerate(choices):
        space.change(variable, choice)
    return space.seconds()


def others(space: Space[Choice], variable: int, own: Choice) -> list[Choice]:
    """The other choices of a variable; a sample, always the same, of many."""
    found = [choice for choice in space.choices(variable) if choice != own]
    if len(found) > _COMPARED:
        found = random.Random(0).sample(found, _COMPARED)
    return found


class OperationSpace:
    """Every operation on its own ranks, split along samples, attributes and parameters.

    Operations with the same parameters have one variable.
    """

    def __init__(self, graph: Graph, cluster: Cluster, costs: Costs) -> None:
        self.graph, self.cluster = graph, cluster
        self.groups = graph.groups()
        self._leaders = [graph.operations[group[0]] for group in self.groups]
        data = [data_parallel(op, cluster.ranks) for op in graph.operations]
        self.simulation = Simulation(graph, cluster, costs, data)

    @property
    def current(self) -> list[Configuration]:
        return [self.simulation.strategy[group[0]] for group in self.groups]

    def choices(self, variable: int) -> list[Configuration]:
        return configurations(self._leaders[variable], self.cluster.ranks)

    def draw(self, variable: int, generator: random.Random) -> Configuration:
        op = self._leaders[variable]
        return random_configuration(op, self.cluster.ranks, generator)

    def change(self, variable: int, choice: Configuration) -> None:
        self.simulation.configure(dict.fromkeys(self.groups[variable], choice))

    def seconds(self) -> float:
        return self.simulation.seconds()

    def memory(self) -> int:
        return max(self.simulation.memory())

    def starts(self, generator: random.Random) -> dict[str, list[Configuration]]:
        """Data-parallel, hand-made and random.

        The hand-made one is Krizhevsky's: convolutions by samples, fully connected and
        recurrent layers by channels.

        Source: Krizhevsky, One weird trick for parallelizing convolutional neural
        networks, 2014.
        """
        ranks = self.cluster.ranks
        data = [data_parallel(op, ranks) for op in self._leaders]
        expert = [
            parameter_parallel(op, ranks) if op.kind in ("linear", "lstm") else own
            for op, own in zip(self._leaders, data)
        ]
        drawn = [random_configuration(op, ranks, generator) for op in self._leaders]
        return {"data": data, "expert": expert, "random": drawn}

    def describe(self, variable: int, choice: Configuration) -> str:
        return choice.text(self._leaders[variable])
