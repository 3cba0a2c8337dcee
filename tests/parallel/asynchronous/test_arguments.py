"""What the functions refuse, each by its name."""

import math

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import asynchronous, create_communicator
from renga.optimizers import SGD, MomentumSGD
from renga.training import extensions
from tests.parallel.asynchronous.quadratics import Point

CREATE = [
    getattr(asynchronous, f"create_{name}_optimizer")
    for name in ("server", "local_sgd", "gossip", "elastic_averaging", "hogwild")
]
REFUSED = {
    "server": [
        ({"staleness": -1}, ValueError),
        ({"staleness": math.nan}, ValueError),
        ({"staleness": 0.5}, ValueError),
        ({"staleness": "4"}, TypeError),
        ({"staleness": None}, TypeError),
        ({"shards": 0}, ValueError),
        ({"shards": 1.5}, TypeError),
        ({"servers": 0}, ValueError),
        ({"servers": "1"}, TypeError),
        ({"servers": 1}, ValueError),  # of one rank
        ({"timeout": -1}, ValueError),
        ({"timeout": math.nan}, ValueError),
        ({"timeout": None}, TypeError),
        ({"leaf": 0}, ValueError),
        ({"leaf": 1.5}, TypeError),
        ({"rows": 5}, TypeError),
        ({"rows": {"/a": [0, 1]}}, TypeError),
    ],
    "local_sgd": [
        ({"every": 0}, ValueError),
        ({"every": math.inf}, TypeError),
        ({"begin": 5}, TypeError),
        ({"begin": (5,)}, TypeError),
        ({"begin": (5, "hour")}, ValueError),
        ({"begin": (-1, "epoch")}, ValueError),
        ({"begin": (1.5, "epoch")}, TypeError),
        ({"outer": "SGD"}, TypeError),
        ({"outer": MomentumSGD}, TypeError),
    ],
    "gossip": [
        ({"method": "gossip"}, ValueError),
        ({"method": None}, ValueError),
        ({"graph": "ring"}, TypeError),
        ({"graph": asynchronous.Ring}, TypeError),
        ({"graph": np.eye(1)}, TypeError),
        ({"timeout": -1}, ValueError),
        ({"timeout": "1"}, TypeError),
        ({"method": "gosgd", "probability": -0.1}, ValueError),
        ({"method": "gosgd", "probability": 1.1}, ValueError),
        ({"method": "gosgd", "probability": math.nan}, ValueError),
        ({"method": "gosgd", "probability": None}, TypeError),
        ({"seed": -1}, ValueError),
        ({"seed": None}, TypeError),
    ],
    "elastic_averaging": [
        ({"every": 0}, ValueError),
        ({"beta": 0}, ValueError),
        ({"beta": math.nan}, ValueError),
        ({"beta": math.inf}, ValueError),
        ({"beta": "0.9"}, TypeError),
    ],
}


@pytest.mark.parametrize(
    "name, options, error",
    [(name, *case) for name, cases in REFUSED.items() for case in cases],
)
def test_invalid_options_are_refused(name, options, error):
    function = f"create_{name}_optimizer"
    comm = create_communicator("local")
    with pytest.raises(error, match=f"{function}: "):
        getattr(asynchronous, function)(SGD().setup(Point()), comm, **options)


@pytest.mark.parametrize("create", CREATE)
def test_optimizer_and_communicator_are_told_apart_from_others(create):
    comm = create_communicator("local")
    for other in (None, SGD, L.Linear(2, 2)):
        with pytest.raises(TypeError, match=f"{create.__name__}: expected an optimi"):
            create(other, comm)
    for other in (None, 3):
        with pytest.raises(TypeError, match=f"{create.__name__}: expected a communi"):
            create(SGD().setup(Point()), other)


@pytest.mark.parametrize("create", CREATE)
def test_a_model_is_needed_before_the_first_update(create):
    model = Point()
    optimizer = create(SGD(0.1), create_communicator("local"))
    with pytest.raises(RuntimeError, match=r"expected setup\(model\) before"):
        optimizer.update(model, np.ones(11))
    optimizer.setup(model).update(model, np.ones(11))
    optimizer.join()
    assert model.vector().any()
    other = Point()
    optimizer.setup(other).update(other, np.ones(11))
    optimizer.join()
    np.testing.assert_array_equal(other.vector(), model.vector())


@pytest.mark.parametrize("create", CREATE)
def test_a_loss_is_a_variable(create):
    optimizer = create(SGD(0.1).setup(Point()), create_communicator("local"))
    with pytest.raises(TypeError, match="expected a Variable from the loss .* float"):
        optimizer.update(lambda: 3.0)
    optimizer.join()


def test_extensions_need_an_asynchronous_optimizer():
    model = Point()
    plain = SGD().setup(model)
    comm = create_communicator("local")
    local = asynchronous.create_local_sgd_optimizer(plain, comm)
    evaluator = extensions.Evaluator([], model)
    for call, arguments in [
        (asynchronous.create_average_evaluator, (None, local)),
        (asynchronous.create_average_evaluator, (evaluator, plain)),
        (asynchronous.CommunicationReport, (plain,)),
        (asynchronous.StalenessPlot, (local,)),
    ]:
        with pytest.raises(TypeError, match=f"{call.__name__}: expected an"):
            call(*arguments)


class Branch(renga.Chain):
    """Has a layer that not every batch uses, and that has no shape before."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(3, 3)
            self.second = L.Linear(None, 3)

    def forward(self, x, uses_second):
        h = self.first(x)
        return F.sum(self.second(h) if uses_second else h)


@pytest.mark.parametrize("create", CREATE)
def test_parameters_that_get_shapes_later_are_refused(create):
    """The other ranks would have others."""
    model, x = Branch(), np.ones((1, 3), "float32")
    optimizer = create(SGD(0.1).setup(model), create_communicator("local"))
    optimizer.update(model, x, False)
    with pytest.raises(RuntimeError, match="expected the 3 parameters .* got 4"):
        optimizer.update(model, x, True)
    optimizer.join()

    model = Branch()
    optimizer = create(SGD(0.1).setup(model), create_communicator("local"))
    for uses_second in (True, False, True):
        optimizer.update(model, x, uses_second)
    optimizer.join()
