"""What a plan with stages is told of losses and batches, against one process."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.communicators import local, simulated
from renga.distributed import parallelize
from renga.optimizers import MomentumSGD
from renga.planning.plan import Plan, Stages

SIZES = [5, 3, 7]


def rows(x):
    """Time steps of sequences one after the other."""
    return F.reshape(x, (-1, 4))


def network():
    """Three linear links in float64."""
    with renga.using_config("dtype", np.float64):
        links = [L.Linear(4, 6), F.tanh, L.Linear(6, 6), F.tanh, L.Linear(6, 3)]
        model = renga.Sequential(rows, *links)
    draw = np.random.RandomState(2)
    for _, param in sorted(model.namedparams()):
        param.array[...] = draw.normal(0, 0.5, param.shape)
    return model


def plan(parts):
    cluster = planning.Cluster(2, simulated.Machine(2), False)
    return Plan("test", cluster, 0.0, 0.0, [], {}, stages=Stages(("/2",), parts))


def arrays(model):
    return {path: np.array(param.array) for path, param in model.namedparams()}


def check(loss, batches, example, parts=3, **options):
    """The same parameters as one process after an update by each batch."""
    serial = network()
    optimizer = MomentumSGD(0.1).setup(serial)
    for batch in batches:
        optimizer.update(lambda *args: loss(serial, *args), *batch)
    expected = arrays(serial)

    def act(comm):
        model = parallelize(network(), comm, plan(parts), example, **options)
        optimizer = MomentumSGD(0.1).setup(model)
        for batch in batches:
            program = lambda *args: loss(model.model, *args)  # noqa: E731
            model.train_batch(optimizer, program, batch)
        with model.gathered_parameters():
            return arrays(model.model)

    for found in local.run(act, ranks=2):
        assert sorted(found) == sorted(expected)
        for path, x in expected.items():
            np.testing.assert_allclose(found[path], x, 1e-9, 1e-12, err_msg=path)


def vectors(n):
    return np.random.RandomState(n).normal(size=(n, 4))


def test_ignored_labels():
    def labels(n):
        t = np.random.RandomState(n).randint(0, 3, n).astype("i")
        t[: n // 2] = -1
        return t

    def loss(model, x, t):
        return F.softmax_cross_entropy(model(x), t)

    data = [(vectors(n), labels(n)) for n in SIZES]
    check(loss, data, vectors(4), samples=lambda x, t: int((t >= 0).sum()))


def test_time_major_batches():
    def loss(model, xs):
        return F.mean(F.sum(model(xs) ** 2, axis=1))

    data = [(np.random.RandomState(n).normal(size=(2, n, 4)),) for n in SIZES]
    check(loss, data, data[0][0], batch_axis=1)


def test_a_loss_that_is_a_sum():
    def loss(model, x):
        return 0.1 * F.sum(model(x) ** 2)

    check(loss, [(vectors(n),) for n in SIZES], vectors(4), parts=2, reduce="sum")


def test_an_example_in_a_dictionary():
    class Named(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.links_ = network()

        def forward(self, batch):
            return F.mean(self.links_(batch["x"]) ** 2)

    def act(comm):
        cluster = planning.Cluster(2, simulated.Machine(2), False)
        stages = Stages(("/links_/2",), 2)
        found = Plan("test", cluster, 0.0, 0.0, [], {}, stages=stages)
        model = parallelize(Named(), comm, found, {"x": vectors(4)})
        return float(model({"x": vectors(7)}).array)

    expected = float(F.mean(network()(vectors(7)) ** 2).array)
    assert local.run(act, ranks=2) == [pytest.approx(expected, rel=1e-12)] * 2


def test_options_without_stages_are_refused():
    def act(comm):
        with pytest.raises(TypeError, match="samples with a plan with stages only"):
            parallelize(network(), comm, "channel", samples=len)
        cluster = planning.Cluster(2, simulated.Machine(2), False)
        other = Plan("test", cluster, 0.0, 0.0, [], {})
        with pytest.raises(TypeError, match="expected batch_axis, reduce with a plan"):
            parallelize(network(), comm, other, vectors(4), reduce="sum", batch_axis=1)

    local.run(act, ranks=2)
