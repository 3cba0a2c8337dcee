"""Functions whose Python code looks at arrays, between the stages of a pipeline."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.optimizers import MomentumSGD
from renga.pipeline import Pipeline
from tests.files import saved


def positions(h):
    """As users write it: arrays of the module of a Variable's device."""
    xp = renga.backend.get_array_module(h)
    assert h.xp is xp is np
    return h + xp.arange(h.shape[-1], dtype=h.dtype)


def covariance(h):
    square = F.matmul(h, h, transb=True)
    return square + np.broadcast_to(np.eye(h.shape[-2]), square.shape)


FUNCTIONS = {
    "array module": positions,
    "normalize": F.normalize,
    "rotary embedding": F.rotary_embedding,
    "inv": lambda h: F.batch_inv(F.reshape(covariance(h), (-1, 4, 4))),
    "cholesky": lambda h: F.cholesky(F.reshape(covariance(h), (-1, 4, 4))[0]),
    "average pooling": lambda h: F.average_pooling_3d(h[:, None], 2),
    "max pooling": lambda h: F.max_pooling_2d(h, 2, return_indices=True)[0],
    "unpooling": lambda h: F.unpooling_2d(h, 2),
    "unpooling of axes": lambda h: F.unpooling_3d(h[:, None], 2),
    "probabilities": lambda h: F.softmax_cross_entropy(h, F.softmax(h), reduce="no"),
    "zeta": lambda h: F.zeta(np.full((1, 1, 1, 1), 3.0), F.exp(h)),
}
LINKS = {
    "group normalization": lambda: L.GroupNormalization(2, 4),
    "batch renormalization": lambda: L.BatchRenormalization(4),
    "decorrelated": lambda: L.DecorrelatedBatchNormalization(4, groups=2),
}


class Scale(renga.Link):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.W = renga.Parameter(np.linspace(0.5, 2, 4).reshape(4, 1, 1))

    def forward(self, x):
        return x * F.broadcast_to(self.W, x.shape)


class Between(renga.Chain):
    """A function or a link between two links, each of which begins a stage."""

    def __init__(self, make):
        super().__init__()
        with self.init_scope():
            self.first, self.last = Scale(), L.Linear(None, 2, initialW=0.1)
            self.function = make() if make in LINKS.values() else make

    def forward(self, x):
        y = self.function(self.first(x))
        return F.mean(F.tanh(self.last(F.reshape(y, (len(y), -1)))) ** 2)


OPTIONS = {"recompute": "none"}, {"recompute": "all"}, {"schedule": "interleaved"}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", [*FUNCTIONS, *LINKS])
def test_equal_one_process(name, options):
    make = {**FUNCTIONS, **LINKS}[name]
    xs = np.random.RandomState(0).normal(0, 1, (2, 3, 4, 4, 4))

    def serial():
        model = Between(make)
        model(xs[0])
        before = saved(model)
        optimizer = MomentumSGD(0.1).setup(model)
        for x in xs:
            optimizer.update(model, x)
        return before, saved(model)

    with renga.using_config("dtype", np.float64):
        begin, expected = serial()

    def run(comm):
        with renga.using_config("dtype", np.float64):
            model = Between(make)
            model(xs[0])
            renga.serializers.NpzDeserializer(begin).load(model)
            pipeline = Pipeline(model, comm, xs[0], stages=["/last"], **options)
            optimizer = MomentumSGD(0.1).setup(pipeline)
            for x in xs:
                pipeline.train_batch(optimizer, model, (x,))
            return saved(pipeline)

    # Interleaved, one rank has both stages.
    for found in local.run(run, ranks=1 if "schedule" in options else 2):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(found[key], value, 1e-9, 1e-12, err_msg=key)
