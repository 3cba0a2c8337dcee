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
from renga.parallel.plan.costs import Costs, Device
from renga.parallel.plan.plan import Plan, Stages
from renga.parallel.plan.strategies.stages import stage_steps
from renga.parallel.plan.strategies.traced_model import TracedModel
from renga.pipeline import Pipeline

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


class Shared(renga.Chain):
    """Linear links in an order of use, of which some share a parameter or a name.

    Args:
        order: the names of the links, of which ``again`` is ``b`` under another name.
        tied: two links and the name of a parameter that they share.
    """

    def __init__(self, order, tied=()):
        super().__init__()
        self.order = order
        draw = np.random.RandomState(1)
        with self.init_scope(), renga.using_config("dtype", np.float64):
            for name in "abcd":
                W = draw.normal(0, 0.5, (4, 4))
                setattr(self, name, L.Linear(4, 4, initialW=W))
            self.again = self.b
        for first, second, name in tied:
            other = getattr(self, second)
            with other.init_scope():
                setattr(other, name, getattr(getattr(self, first), name))

    def forward(self, x):
        for name in self.order:
            x = F.tanh(getattr(self, name)(x))
        return x


SHARED = {
    "two names": ("a again c d".split(), []),
    "the second name first": ("again a b c".split(), []),
    "tied parameters": ("dacb", [("a", "c", "W"), ("a", "c", "b")]),
    "tied biases": ("abcdabcd", [("a", "d", "b")]),
}


@pytest.mark.parametrize("case", SHARED)
def test_stages_of_shared_links_and_parameters(case):
    """A plan cuts at links that the pipeline knows, and trains as one process."""
    x = vectors(12)

    def updated(model, program, update):
        optimizer = MomentumSGD(0.1).setup(model)
        for _ in range(2):
            update(optimizer, lambda x: F.mean(program(x) ** 2))

    serial = Shared(*SHARED[case])
    updated(serial, serial, lambda optimizer, loss: optimizer.update(loss, x))
    expected = arrays(serial)

    def act(comm):
        cluster = planning.Cluster(comm.size, simulated.Machine(comm.size), False)
        whole = Shared(*SHARED[case])
        traced = TracedModel(whole, (x,))
        steps = stage_steps(traced, cluster, Costs(Device(1e9, 1e9)))
        stages = Stages(steps[0].starts, steps[0].micro_batches)
        plan = Plan("test", cluster, 0.0, 0.0, [], {}, stages=stages)
        model = parallelize(whole, comm, plan, x)
        updated(model, model.model, lambda o, loss: model.train_batch(o, loss, (x,)))
        with model.gathered_parameters():
            return arrays(model.model)

    for found in local.run(act, ranks=2):
        assert sorted(found) == sorted(expected)
        for path, x_found in found.items():
            np.testing.assert_allclose(x_found, expected[path], 1e-9, 1e-12)


def test_memory_of_a_stage():
    """Weights, gradients and moments, and inputs that wait for their gradients."""
    links = [L.Linear(4, 50), F.tanh, L.Linear(50, 3)]
    traced = TracedModel(renga.Sequential(*links), (np.zeros((8, 4), "f"),))
    cluster = planning.Cluster(2, simulated.Machine(2), False)
    steps = stage_steps(traced, cluster, Costs(Device(1e9, 1e9)))
    assert [step.micro_batches for step in steps] == [2, 4, 8]
    for step in steps:
        first = 3 * 4 * (5 * 50) + 2 * 2 * 4 * 50 * 8 / step.micro_batches
        assert step.memory == first


def test_a_cut_at_another_name_of_a_link():
    def act(comm):
        model = Shared("a again c d".split())
        return Pipeline(model, comm, vectors(2), stages=["/b"]).partition.stage_of

    for found in local.run(act, ranks=2):
        assert found == {"/a": 0, "/again": 1, "/c": 1, "/d": 1}
