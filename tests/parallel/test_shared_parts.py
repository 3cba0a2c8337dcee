"""Two models with a link in common, of which ranks compute one together."""

import gc

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_groups, create_multi_node_optimizer, parallelize
from renga.distributed.asynchronous import (
    create_elastic_averaging_optimizer,
    create_gossip_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import SGD, MomentumSGD
from renga.pipeline import Pipeline

X = np.random.RandomState(5).normal(0, 1, (4, 6)).astype(np.float32)


def linear(n_in, n_out, seed):
    w = np.random.RandomState(seed).normal(0, 0.3, (n_out, n_in)).astype(np.float32)
    return L.Linear(n_in, n_out, initialW=w)


class Model(renga.Chain):
    def __init__(self, encoder, seed):
        super().__init__()
        with self.init_scope():
            self.encoder = encoder
            self.head = linear(8, 4, seed)

    def forward(self, x):
        return self.head(F.tanh(self.encoder(x)))


class Both(renga.Chain):
    def __init__(self, *models):
        super().__init__()
        with self.init_scope():
            self.a, self.b = models

    def forward(self, x):
        return self.a(x), self.b(x)


def models():
    encoder = linear(6, 8, 0)
    return Model(encoder, 1), Model(encoder, 2)


def by_pipeline(model, comm):
    return Pipeline(model, comm, X)


def by_strategy(strategy, *example):
    return lambda model, comm: parallelize(model, comm, strategy, *example)


def setup(model, comm):
    return SGD().setup(model)


def setup_on_ranks(**options):
    return lambda model, comm: create_multi_node_optimizer(
        SGD(), comm, **options
    ).setup(model)


PARALLEL = {
    "channel": by_strategy("channel", X),
    "channel without an example": by_strategy("channel"),
    "sequence": by_strategy("sequence"),
    "pipeline": by_pipeline,
}
SECOND = {
    **PARALLEL,
    "optimizer": setup,
    "multi-node optimizer": setup_on_ranks(),
    "sharded parameters": setup_on_ranks(shard="parameters"),
}


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", PARALLEL)
def test_a_link_in_two_models_is_refused(first, second):
    def run(comm):
        a, b = models()
        kept = PARALLEL[first](a, comm)
        with pytest.raises(ValueError, match="share nothing.*encoder/W.*one Chain"):
            SECOND[second](b, comm)
        return kept is not None

    assert all(local.run(run, ranks=2))


@pytest.mark.parametrize("first", PARALLEL)
def test_an_optimizer_of_before_updates_no_link_of_a_parallel_model(first):
    def run(comm):
        a, b = models()
        optimizer = SGD(0.1).setup(b)
        optimizer.update(lambda: F.sum(b(X)))
        kept = PARALLEL[first](a, comm)
        here = [param for param in b.params() if not param.is_meta]
        before = [param.array.copy() for param in here]
        with pytest.raises(ValueError, match="update: .*share nothing.*encoder/W"):
            optimizer.update(lambda: F.sum(b(X)))
        for param, array in zip(here, before):
            np.testing.assert_array_equal(param.array, array)
        return kept is not None

    assert all(local.run(run, ranks=2))


def parts():
    """Pairs of models that have a parameter, an array or statistics in common."""
    weight = renga.Parameter(np.ones((3, 6), np.float32))

    def with_weight():
        chain = renga.Chain()
        with chain.init_scope():
            chain.weight = weight
        return chain

    yield with_weight(), with_weight()
    link = L.Linear(6, 3)
    yield renga.Sequential(link), renga.Sequential(link.copy("share"))
    norm = L.BatchNormalization(6, use_gamma=False, use_beta=False)
    yield renga.Sequential(norm, linear(6, 3, 0)), renga.Sequential(norm)
    inner = renga.Sequential(linear(6, 3, 0))
    yield inner, L.Classifier(inner)
    yield L.Classifier(inner), inner


@pytest.mark.parametrize("index", range(5))
def test_parts_in_common(index):
    def run(comm):
        first, second = list(parts())[index]
        kept = parallelize(first, comm)
        with pytest.raises(ValueError, match="share nothing"):
            parallelize(second, comm)
        return kept is not None

    assert all(local.run(run, ranks=2))


def test_models_are_free_when_the_first_is_gone():
    def run(comm):
        a, b = models()
        parallel = parallelize(a, comm, "channel", X)
        again = parallelize(a, comm, "sequence")  # copies of one model are apart
        setup(a, comm)
        del parallel, again
        gc.collect()
        return parallelize(b, comm, "channel", X) is not None

    assert all(local.run(run, ranks=2))


@pytest.mark.parametrize("example", [(), (X,)], ids=["no example", "example"])
def test_one_chain_of_both_keeps_the_link(example):
    def run(comm):
        a, b = models()
        if comm is not None:
            both = parallelize(Both(a, b), comm, "channel", *example)
            a, b = both.a, both.b
        optimizers = [SGD(0.1).setup(model) for model in (a, b)]
        for _ in range(3):
            optimizers[0].update(lambda: F.mean(a(X) ** 2))
            optimizers[1].update(lambda: F.mean((b(X) - 1) ** 2))
        return [p.full_array() for m in (a, b) for _, p in sorted(m.namedparams())]

    expected = run(None)
    for found in local.run(run, ranks=2):
        assert len(found) == len(expected)
        for x, y in zip(found, expected):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-6)


def test_a_grid_of_samples_and_channels_is_refused_likewise():
    def run(comm):
        groups = create_groups(comm, channel=2)
        a, b = models()
        kept = parallelize(a, groups.channel, "channel", X)
        create_multi_node_optimizer(SGD(), groups.data).setup(kept)
        optimizer = create_multi_node_optimizer(SGD(), groups.data)
        with pytest.raises(ValueError, match="share nothing"):
            optimizer.setup(b)
        return True

    assert all(local.run(run, ranks=4))


def with_shard(shard):
    return lambda optimizer, comm: create_multi_node_optimizer(
        optimizer, comm, shard=shard
    )


# Ways in which ranks divide or exchange what an optimizer updates.
EXCLUSIVE = {
    **{shard: with_shard(shard) for shard in ("states", "gradients", "parameters")},
    "server": lambda *args: create_server_optimizer(*args, staleness=0),
    "local SGD": lambda *args: create_local_sgd_optimizer(*args, every=1),
    "gossip": create_gossip_optimizer,
    "elastic averaging": lambda *args: create_elastic_averaging_optimizer(*args, 1),
}
OTHERS = {
    "serial": lambda optimizer, comm: optimizer,
    "multi-node": create_multi_node_optimizer,
    "double buffering": lambda *args: create_multi_node_optimizer(*args, True),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("way", EXCLUSIVE)
@pytest.mark.parametrize("last", ["the other", "the exclusive one"])
def test_a_link_of_two_optimizers_is_refused(way, other, last):
    """A parameter has the rule of the optimizer that was set up last."""

    def run(comm):
        a, b = models()
        first = EXCLUSIVE[way](MomentumSGD(0.1), comm)
        second = OTHERS[other](SGD(0.1), comm)
        if last == "the exclusive one":
            second.setup(b)
        first.setup(a)
        first.update(lambda x: F.mean(a(x) ** 2), X)
        if last == "the other":
            second.setup(b)
        optimizer, model = (first, a) if last == "the other" else (second, b)
        before = [np.array(param.array) for param in model.params()]
        with pytest.raises(ValueError, match="one optimizer updates, got /encoder/"):
            optimizer.update(lambda x: F.mean(model(x) ** 2), X)
            optimizer.update(lambda x: F.mean(model(x) ** 2), X)  # gradients are late
        if other == "serial" or last == "the other":
            for param, x in zip(model.params(), before):
                np.testing.assert_array_equal(param.array, x)
        return True

    assert all(local.run(run, ranks=2))
