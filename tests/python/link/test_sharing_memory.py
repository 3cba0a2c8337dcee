"""Parameters of a model whose arrays share memory."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import parallelize
from renga.link.sharing_memory import require_own_memory, sharing_memory
from renga.optimizers import MomentumSGD
from renga.pipeline import Pipeline


class Shared(renga.Chain):
    """Links ``a`` and ``c`` have their own parameters, with the arrays of one."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(3)
        with self.init_scope():
            self.a = L.Linear(4, 4, initialW=random.rand(4, 4).astype("f"))
            self.b = L.Linear(4, 4, initialW=random.rand(4, 4).astype("f"))
            self.c = self.a.copy(mode="share")

    def forward(self, x):
        return self.c(F.tanh(self.b(F.tanh(self.a(x)))))


def groups(model):
    return [[each.name for each in group] for group in sharing_memory(model)]


def test_copies_that_share():
    assert groups(Shared()) == [["/a/W", "/c/W"], ["/a/b", "/c/b"]]


def test_one_parameter_is_no_group():
    link = L.Linear(3, 3)
    assert groups(renga.ChainList(link, link, L.Linear(3, 3))) == []


def test_views_of_one_array():
    model = renga.ChainList(L.Linear(2, 3), L.Linear(3, 2), L.Linear(2, 1))
    model[1].W.array = model[0].W.array.T
    model[2].W.array = model[0].W.array[2:]
    model.add_link(L.Linear(2, 1))
    model[3].b.array = model[0].b.array[1:2]
    assert groups(model) == [["/0/W", "/1/W", "/2/W"], ["/0/b", "/3/b"]]


def test_empty_and_lazy_parameters():
    model = renga.ChainList(L.Linear(0, 3), L.Linear(None, 3), L.Linear(0, 3))
    assert groups(model) == []


def test_a_named_error():
    with pytest.raises(ValueError, match="some call: .* share no memory.* /a/W and /c"):
        require_own_memory("some call", Shared())


@pytest.mark.parametrize("strategy", ["channel", "spatial", "sequence"])
def test_parallel_models_share(strategy):
    x = np.random.RandomState(0).rand(6, 4).astype("f")

    def step(model):
        optimizer = MomentumSGD(0.1).setup(model)
        for _ in range(3):
            optimizer.update(lambda: F.sum(model(x) ** 2))
        return [renga.as_array(param).copy() for param in model.params()]

    expected = step(Shared())

    def run(comm):
        example = () if strategy == "sequence" else (x,)
        model = parallelize(Shared(), comm, strategy, *example)
        assert np.shares_memory(model.a.W.array, model.c.W.array)
        if strategy == "sequence":
            return expected
        return [x if x.shape == y.shape else y for x, y in zip(step(model), expected)]

    for found in local.run(run, ranks=2):
        for value, other in zip(found, expected):
            np.testing.assert_allclose(value, other, 1e-5, 1e-6)


def test_views_are_not_copied():
    def run(comm):
        model = Shared()
        model.b.W.array = model.a.W.array.T
        with pytest.raises(ValueError, match="or nothing, got /a/W and /b/W"):
            parallelize(model, comm, "spatial", np.zeros((2, 4), "f"))

    local.run(run, ranks=2)


@pytest.mark.parametrize("stages", [["/c"], ["/b", "/c"]])
def test_stages_of_a_pipeline(stages):
    def run(comm):
        with pytest.raises(ValueError, match="/a/W in stage 0 and /c/W in stage"):
            Pipeline(Shared(), comm, np.zeros((2, 4), "f"), stages=stages)

    local.run(run, ranks=len(stages) + 1)
