"""What ranks hold and which of them add up gradients, counted by hand."""

import pytest

from renga import planning
from renga.parallel.plan import layers
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.graph import Graph
from renga.parallel.plan.simulation import Simulation, sync_bytes, sync_group

DEVICE = planning.Device(1e9, 1e8, 1e-3)


@pytest.mark.parametrize(
    ("samples", "outputs", "inputs", "group", "summed", "held"),
    [
        # Of 9 x 4 parameters the gradients and a moment are held, too.
        (1, 1, 1, [0], 0, 16 * 8 + 16 * 4 + 3 * 36),
        (2, 1, 1, [0, 1], 2 * 36, 8 * 8 + 8 * 4 + 3 * 36),
        (4, 1, 1, [0, 1, 2, 3], 2 * 3 * 36, 4 * 8 + 4 * 4 + 3 * 36),
        (1, 2, 1, [0], 0, 8 * 8 + 16 * 2 + 3 * 18),
        (2, 2, 1, [0, 2], 2 * (2 * 18), 4 * 8 + 8 * 2 + 3 * 18),
        (1, 1, 2, [0], 0, 8 * 8 + 16 * 4 + 3 * 18),
    ],
)
def test_a_linear_layer(samples, outputs, inputs, group, summed, held):
    graph, size = Graph("one"), samples * outputs * inputs
    layers.linear(graph, "fc", layers.source(graph, "x", (16, 8)), 4)
    source, linear = graph.operations
    split = Configuration((samples, outputs), tuple(range(size)), inputs)
    assert sync_group(linear, split) == group
    assert sync_bytes(linear, split) == 4 * summed
    assert sync_bytes(source, split) == 0
    strategy = [Configuration((size, 1), tuple(range(size))), split]
    cluster = planning.Cluster.describe(f"1 node x {size} ranks, 1 GB/s, 1 us")
    simulation = Simulation(graph, cluster, planning.Costs(DEVICE), strategy)
    assert simulation.memory() == [4 * held] * size
