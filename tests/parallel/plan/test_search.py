import itertools
import random

import pytest

from renga import planning
from renga.parallel.plan import layers
from renga.parallel.plan.configuration import configurations
from renga.parallel.plan.graph import Graph
from renga.parallel.plan.markov_chain import exhaustive, markov_chain, search_space
from renga.parallel.plan.plan_search import search
from renga.parallel.plan.simulation import Simulation
from renga.parallel.plan.space import OperationSpace

CLUSTER = planning.Cluster.describe("1 node × 2 ranks, in nodes: 1 GB/s, 5 µs")
COSTS = planning.Costs(planning.Device(1e12, 1e11, 1e-5))


def small_graph():
    graph = Graph("small")
    x = layers.source(graph, "x", (8, 3, 8, 8))
    x = layers.convolution(graph, "conv", x, 16, 3, 1, 1)
    x = layers.linear(graph, "fc1", x, 512)
    layers.linear(graph, "fc2", x, 10)
    return graph


def branched_graph():
    graph = Graph("branched")
    x = layers.source(graph, "x", (4, 2, 6, 6))
    a = layers.convolution(graph, "a", x, 4, 3, 1, 1)
    b = layers.convolution(graph, "b", x, 4, 1)
    layers.combine(graph, "add", [a, b])
    return graph


@pytest.mark.parametrize("make", [small_graph, branched_graph])
def test_the_search_finds_the_optimum_of_all_strategies(make):
    graph = make()
    options = [configurations(op, CLUSTER.ranks) for op in graph.operations]
    optimum = min(
        Simulation(graph, CLUSTER, COSTS, strategy).seconds()
        for strategy in itertools.product(*options)
    )
    space = OperationSpace(graph, CLUSTER, COSTS)
    assert exhaustive(space).seconds == optimum
    found = search_space(space, 1.0, seed=0, proposals=3000)
    assert found[0].seconds == optimum
    data = next(f for f in found if f.start == "data" and f.proposals == 0)
    assert optimum <= data.seconds


def test_equal_seeds_find_equal_plans():
    tables = [
        search(branched_graph(), None, CLUSTER, COSTS, seed=5, proposals=200).table()
        for _ in range(2)
    ]
    assert tables[0] == tables[1]


def test_a_chain_stops_when_half_of_the_budget_brought_nothing():
    space = OperationSpace(branched_graph(), CLUSTER, COSTS)
    best = exhaustive(space).choices
    for variable, choice in enumerate(best):
        space.change(variable, choice)
    assert markov_chain(space, "best", 1.0, proposals=400).proposals == 200


def test_a_plan_has_to_fit_into_the_memory():
    graph = small_graph()
    # Parameters, their gradients and a moment, and activations, in the whole.
    space = OperationSpace(graph, CLUSTER, COSTS)
    needed = space.memory()
    drawn = space.starts(random.Random(0))
    assert drawn.keys() == {"data", "expert", "random"}
    # Krizhevsky: convolutions by samples, fully connected layers by channels.
    degrees = [choice.degrees for choice in drawn["expert"]]
    assert degrees[1:] == [(2, 1, 1, 1), (1, 2), (1, 2)]
    device = planning.Device(1e12, 1e11, 1e-5, memory=needed * 0.7)
    found = search(graph, None, CLUSTER, planning.Costs(device), seed=0, proposals=600)
    assert found.seconds > 0
    little = planning.Costs(planning.Device(1e12, 1e11, 1e-5, memory=1000))
    with pytest.raises(ValueError, match="0.00 GB or less on each rank, found none"):
        search(graph, None, CLUSTER, little, seed=0, proposals=60)
