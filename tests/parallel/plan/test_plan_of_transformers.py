"""Plans of transformers: attention by heads, layers in between by features."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.communicators import simulated
from renga.distributed import parallelize
from renga.parallel.plan.costs import Costs, Device
from tests.parallel.plan.planned_models import (
    check_plans,
    plan_of,
    space_of,
    strategies,
)

WORDS = 37
TOLERANCES = (2e-3, 2e-4)  # relative and absolute


def gpt():
    model = L.GPT2(WORDS, 12, 16, 2, 4, dropout=0.0)
    draw = np.random.RandomState(0)
    for _, param in sorted(model.namedparams()):
        param.array[...] = draw.normal(0, 0.3, param.shape)
    return model


class Encoder(renga.Chain):
    """A linear layer for each position, without attention."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(5, 7)
            self.second = L.Linear(7, 3)
        draw = np.random.RandomState(0)
        for _, param in sorted(self.namedparams()):
            param.array[...] = draw.normal(0, 0.3, param.shape)

    def forward(self, x):
        return self.second(F.relu(self.first(x, n_batch_axes=2)), n_batch_axes=2)


def texts():
    return np.random.RandomState(1).randint(0, WORDS, (4, 10)).astype(np.int32)


def vectors():
    return np.random.RandomState(1).normal(size=(4, 3, 5)).astype(np.float32)


CASES = {"GPT2": (gpt, texts), "Encoder": (Encoder, vectors)}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_computes_what_the_serial_model_computes(case, some_ranks):
    make, example = CASES[case]
    check_plans(some_ranks, make, example(), TOLERANCES)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_plan_sends_the_bytes_that_it_predicts(case, size):
    make, example = CASES[case]
    x, model = example(), make()
    for space in strategies(model, x, size):
        plan = plan_of(space)

        def act(comm, plan=plan):
            parallel = parallelize(model, comm, plan, x)
            parallel(x)  # compared with the serial model
            parallel.cleargrads()
            before = comm.traffic.bytes
            F.mean(parallel(x) ** 2).backward()
            return comm.traffic.bytes - before

        sent = simulated.run(act, size).results
        assert sent[0] == sum(times.messages.bytes for times in space.step.times)


def test_the_search_finds_megatron():
    # One text for two ranks: neither samples nor the weights of a layer can be shared
    # for less than the activations, which are few.
    machine = simulated.Machine(2, node_latency=1e-7, node_bandwidth=1e11)
    cluster = planning.Cluster(2, machine, False)
    costs = Costs(Device(1e8, 1e10))
    plan = planning.search(gpt(), texts()[:1], cluster, costs, seed=0, proposals=200)
    for block in ("/blocks/0", "/blocks/1"):
        assert not plan.links[f"{block}/attention"].is_kept
        up, down = plan.links[f"{block}/up"], plan.links[f"{block}/down"]
        assert up.layouts == ("replicated", "features")
        assert (up.algorithm, down.algorithm) == ("column-parallel", "row-parallel")


def test_heads_that_ranks_do_not_divide_are_kept():
    space = space_of(gpt(), texts(), 3)  # four heads
    assert "/blocks/0/attention" not in space.link_choices()
