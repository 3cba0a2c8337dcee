"""Plans in which groups of ranks have samples of their own."""

import random

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.communicators import simulated
from renga.distributed import parallelize
from renga.parallel.plan.costs import Costs
from renga.parallel.plan.plan import Plan
from renga.parallel.plan.strategies.sample_groups import sample_groups
from renga.parallel.plan.strategies.space import LinkSpace
from renga.parallel.plan.strategies.traced_model import TracedModel
from tests.parallel.plan.planned_models import (
    CASES,
    DEVICE,
    bytes_of_check,
    check_equal,
    train,
)


class LanguageModel(renga.Chain):
    """An LSTM layer, whose outputs of all time steps are stacked."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(11, 6)
            self.layer = L.LSTM(6, 6)
            self.output = L.Linear(6, 11)
        draw = np.random.RandomState(0)
        for _, param in sorted(self.namedparams()):
            param.array[...] = draw.normal(0, 0.3, param.shape)

    def forward(self, words):
        self.layer.reset_state()
        hs = [self.layer(self.embed(words[:, t])) for t in range(words.shape[1])]
        return F.concat([self.output(h) for h in hs], axis=0)


def sentences():
    return np.random.RandomState(1).randint(0, 11, (9, 5)).astype(np.int32)


CASES = {**CASES, "LanguageModel": (LanguageModel, sentences)}


def spaces(model, x, ranks):
    """One for each number of groups and each start of a search, also a random one."""
    cluster = planning.Cluster(ranks, simulated.Machine(intra_size=ranks), False)
    traced, generator = TracedModel(model, (x,)), random.Random(0)
    for groups in sample_groups(traced, cluster, Costs(DEVICE)):
        space = LinkSpace.of_groups(groups)
        known = []
        for choices in space.starts(generator).values():
            for variable, choice in enumerate(choices):
                space.change(variable, choice)
            links = space.link_choices()
            if links not in known:
                known.append(links)
                yield space


def plan_of(space):
    groups, links = space.groups, space.link_choices()
    options = dict(groups=groups.count, stacked=groups.stacked)
    return Plan("test", groups.whole, 0.0, 0.0, [], links, **options)


@pytest.mark.parametrize("case", CASES)
def test_groups_compute_what_the_serial_model_computes(case, some_ranks):
    make, example = CASES[case]
    x = example()
    expected = train(make(), x)

    def act(comm):
        plans = [plan_of(space) for space in spaces(make(), x, comm.size)]
        return [train(parallelize(make(), comm, plan, x), x) for plan in plans]

    for results in some_ranks(act):
        assert results
        for found in results:
            check_equal(found, expected)


@pytest.mark.parametrize(
    "case, size", [("Residual", 4), ("Words", 6), ("LanguageModel", 4)]
)
def test_groups_send_the_bytes_that_are_predicted(case, size):
    make, example = CASES[case]
    x, model = example(), make()
    counts = set()
    for space in spaces(model, x, size):
        plan = plan_of(space)
        counts.add(plan.groups)

        def act(comm, plan=plan):
            parallel = parallelize(model, comm, plan, x)
            parallel(x)  # compared with the serial model
            parallel.cleargrads()
            before = comm.traffic.bytes
            F.mean(parallel(x) ** 2).backward()
            return comm.traffic.bytes - before

        sent = simulated.run(act, size).results
        predicted = sum(times.messages.bytes for times in space.step.times)
        assert sent[0] == predicted + bytes_of_check(size)
    assert counts == {n for n in range(2, size + 1) if size % n == 0}


def test_a_recurrent_model_is_split_by_samples():
    # Links would sum the gradients of weights in each time step, and every rank would
    # compute the functions between them: two groups take half of the time.
    model, x = LanguageModel(), sentences()[:8]
    machine = simulated.Machine(2, node_latency=1e-7, node_bandwidth=1e11)
    cluster = planning.Cluster(2, machine, False)
    costs = Costs(planning.Device(1e8, 1e9))
    plan = planning.search(model, x, cluster, costs, seed=0, proposals=100)
    assert plan.groups == 2 and plan.stacked == (True,)
    serial = plan.predicted["serial"]
    assert 0.5 * serial < plan.seconds < 0.6 * serial
    assert "2 groups" in plan.table()


class Encoder(renga.ChainList):
    """Layers for each position of sequences."""

    def __init__(self):
        super().__init__(*[L.Linear(16, 16) for _ in range(6)])

    def forward(self, x):
        for link in self:
            x = F.relu(link(x, n_batch_axes=2))
        return x


def test_samples_between_nodes_and_channels_within_them():
    # Two sequences for two nodes of four ranks, between which messages are slow: each
    # node has a sequence, and its ranks share the features. Gradients of weights, 1 KB
    # for each layer, are less than activations of 8 KB.
    x = np.random.RandomState(0).normal(size=(2, 64, 16)).astype(np.float32)
    machine = simulated.Machine(
        4, latency=1e-6, bandwidth=1e6, node_latency=1e-7, node_bandwidth=1e9
    )
    cluster = planning.Cluster(8, machine, False)
    costs = Costs(planning.Device(1e7, 1e9))
    plan = planning.search(Encoder(), x, cluster, costs, seed=0, proposals=200)
    assert plan.groups == 2
    assert any("features" in choice.layouts for choice in plan.links.values())
    assert plan.seconds < 0.8 * min(
        seconds for name, seconds in plan.predicted.items() if "groups" not in name
    )


def test_a_plan_with_groups_is_saved(tmp_path):
    (space, *_) = spaces(LanguageModel(), sentences(), 2)
    plan = plan_of(space)
    plan.save(tmp_path / "plan.json")
    loaded = Plan.load(tmp_path / "plan.json")
    assert loaded.name == plan.name
    assert (loaded.groups, loaded.stacked) == (2, (True,))
