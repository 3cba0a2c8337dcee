import random

import pytest

from renga import planning
from renga.parallel.plan.configuration import data_parallel, random_configuration
from renga.parallel.plan.simulation import Simulation
from renga.planning.networks import (
    NETWORKS,
    alexnet,
    inception_v3,
    nmt,
    resnet,
    rnn_language_model,
)

CLUSTER = "2 nodes × 4 ranks, 56 Gbit/s, 2 µs, in nodes: 20 GB/s, 2 µs"


def channels(graph):
    return sum(op.extents[1] for op in graph.operations if op.kind == "convolution")


def test_parameters_are_those_of_the_published_models():
    # torchvision's counts. Its ResNet and Inception have no biases of convolutions, but
    # two parameters of batch normalization for each channel.
    graphs = {name: make() for name, make in NETWORKS.items()}
    assert graphs["AlexNet"].parameters == 61_100_840
    graph = graphs["ResNet-101"]
    assert graph.parameters + channels(graph) == 44_549_160
    graph = graphs["Inception-v3"]
    assert graph.parameters + channels(graph) == 23_834_568


def test_products_are_those_of_the_published_models():
    # 4.089 and 0.714 GMACs for an image, by torchvision.
    graph = resnet(blocks=(3, 4, 6, 3))
    assert graph.flops / 64 / 2e9 == pytest.approx(4.089, rel=0.02)
    assert alexnet().flops / 256 / 2e9 == pytest.approx(0.714, rel=0.02)
    # 5.713, which biases and a row of padding more would exceed by 0.2 and 0.6 %.
    assert inception_v3().flops / 64 / 2e9 == pytest.approx(5.713, rel=0.004)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_joined_along_channels_has_images_of_one_size(name):
    operations = NETWORKS[name]().operations
    for op in operations:
        if op.kind == "concat":
            for x in op.inputs:
                assert operations[x.producer].extents[2:] == op.extents[2:]


def test_a_language_model_counts_shared_parameters_once():
    graph = rnn_language_model(steps=3, layers=2, size=8, words=10)
    lstm = 4 * 8 * (8 + 8) + 4 * 8
    assert graph.parameters == 10 * 8 + 2 * lstm + (8 + 1) * 10
    # A group of each word, embedding, layer and loss; those of a layer are one group.
    assert len(graph.groups()) == 3 + 1 + 2 + 1 + 3


def test_a_translator_attends_to_the_last_layer_of_the_encoder():
    graph = nmt(steps=3, layers=2, size=8, words=10)
    lstm = 4 * 8 * (8 + 8) + 4 * 8
    combined = (2 * 8 + 1) * 8 + (8 + 1) * 10
    assert graph.parameters == 2 * (10 * 8 + 2 * lstm) + combined
    names = [op.name for op in graph.operations]
    read = {op.name: [names[x.producer] for x in op.inputs] for op in graph.operations}
    assert read["memory"] == [f"encoder lstm 1 step {t}" for t in range(3)]
    for t in range(3):
        query = f"decoder lstm 1 step {t}"
        assert read[f"attention {t}"] == [query, "memory"]
        assert read[f"concat {t}"] == [query, f"attention {t}"]
    below = [f"decoder lstm {layer} step 0" for layer in (0, 1)]
    assert read[below[1]] == [below[0], "encoder lstm 1 step 2"]
    assert read[below[0]] == ["decoder embedding 0", "encoder lstm 0 step 2"]


@pytest.mark.parametrize("name", NETWORKS)
def test_delta_simulation_is_full_simulation(name):
    graph, cluster = NETWORKS[name](), planning.Cluster.describe(CLUSTER)
    costs = planning.Costs(planning.P100)
    start = [data_parallel(op, cluster.ranks) for op in graph.operations]
    simulation = Simulation(graph, cluster, costs, start)
    generator, groups = random.Random(0), graph.groups()
    found = set()
    for _ in range(40):
        group = generator.choice(groups)
        op = graph.operations[group[0]]
        choice = random_configuration(op, cluster.ranks, generator)
        simulation.configure(dict.fromkeys(group, choice))
        seconds = simulation.seconds()
        assert seconds == simulation.full_seconds()
        found.add(seconds)
    assert len(found) > 5
