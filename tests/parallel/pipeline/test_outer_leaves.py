"""Gradients of Variables that a pipeline's program reads beside its model."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.optimizers import MomentumSGD
from tests.parallel.pipeline.programs import Layers, batches, pipeline

DATA = batches((6, 6))

OPTIONS = (
    {"schedule": "gpipe"},
    {"schedule": "1f1b"},
    {"schedule": "interleaved"},
    {"recompute": "all"},
)


class Program:
    """A loss with leaves of every kind."""

    def __init__(self, model):
        self.model = model
        self.scale = renga.Variable(np.array(0.7))  # read by two stages
        self.shift = renga.Variable(np.linspace(-1, 1, 8))  # computed with before
        with renga.using_config("dtype", np.float64):
            self.teacher = L.Linear(6, 5, initialW=0.2, initial_bias=0.1)
        self.unread = renga.Variable(np.ones(2))
        self.input = None  # of the last batch
        self.scale.grad = np.array(5.0)  # is added to
        for param in self.teacher.params():
            param.cleargrad()

    def loss(self, x, t):
        zeros = renga.Variable(np.zeros((len(x), 8)))  # nobody has its gradient later
        h = F.tanh(self.model.a(x)) * self.scale + zeros
        h = self.model.b(F.tanh(h + self.moved))
        h = F.tanh(self.model.c(h)) * self.scale
        return F.softmax_cross_entropy(self.model.d(h) + self.teacher(x), t)

    def start(self, x):
        """What is computed before a step."""
        self.moved = F.sin(self.shift)
        self.input = renga.Variable(x)
        return self.input

    def gradients(self):
        leaves = (self.scale, self.shift, *self.teacher.params(), self.input)
        assert self.unread.grad is None
        return [leaf.grad for leaf in leaves]


def of_one_process():
    program = Program(Layers())
    optimizer = MomentumSGD(0.1).setup(program.model)
    found = []
    for x, t in DATA:
        x = program.start(x)
        program.model.cleargrads()
        for part in (slice(0, 3), slice(3, 6)):
            (0.5 * program.loss(x[part], t[part])).backward()
        optimizer.update()
        found.append(program.gradients())
    return found


@pytest.mark.parametrize("ranks", (2, 4))
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_rank_has_the_gradients_of_one_process(options, ranks):
    if options.get("schedule") == "interleaved" and ranks == 4:
        ranks = 1  # four layers are two stages on each of two ranks

    def act(comm):
        model, optimizer = pipeline(Layers, comm, DATA, m=2, **options)
        program = Program(model.model)
        found = []
        for x, t in DATA:
            model.train_batch(optimizer, program.loss, (program.start(x), t))
            found.append(program.gradients())
        return found

    expected = of_one_process()
    for found in local.run(act, ranks=ranks):
        for ours, theirs in zip(found, expected):
            for gradient, reference in zip(ours, theirs):
                np.testing.assert_allclose(gradient, reference, rtol=1e-12)


def test_batches_of_one_update_add_up():
    expected = of_one_process()

    def act(comm):
        model, optimizer = pipeline(Layers, comm, DATA, m=1, reduce="mean")
        program = Program(model.model)
        x, t = DATA[0]
        x = program.start(x)
        halves = [(x[:3], t[:3]), (x[3:], t[3:])]
        model.train_batches(optimizer, program.loss, halves)
        return program.gradients()

    for found in local.run(act, ranks=2):
        for gradient, reference in zip(found, expected[0]):
            np.testing.assert_allclose(gradient, reference, rtol=1e-12)


def test_a_batch_that_fails_leaves_the_gradients_of_before():
    def act(comm):
        model, optimizer = pipeline(Layers, comm, DATA, m=1, reduce="mean")
        program = Program(model.model)
        x, t = DATA[0]

        def fails(x, t):
            program.loss(x, t)
            raise KeyError("on purpose")

        with pytest.raises(KeyError, match="on purpose"):
            model.train_batch(optimizer, fails, (program.start(x), t))
        return float(program.scale.grad)

    assert local.run(act, ranks=2) == [5.0, 5.0]


def test_without_a_flush_they_are_refused_before_anything_changes():
    def act(comm):
        options = {"schedule": "pipedream", "reduce": "mean"}
        model, optimizer = pipeline(Layers, comm, DATA, m=2, **options)
        program = Program(model.model)
        x, t = DATA[0]

        def with_zeros(x, t):  # a leaf that nobody has after the call
            return program.model(x + renga.Variable(np.zeros((len(x), 6))), t)

        def of_teacher(x, t):
            with renga.no_backprop_mode():
                bias = F.sum(program.teacher(x))
            return with_zeros(x, t) + 0.0 * bias

        model.train_batch(optimizer, with_zeros, (x, t))
        model.train_batch(optimizer, of_teacher, (x, t))
        model.drain()
        before = [param.array.copy() for param in model.params()]
        with pytest.raises(
            ValueError, match="expected a schedule that flushes for the"
        ):
            model.train_batch(optimizer, program.loss, (program.start(x), t))
        for param, array in zip(model.params(), before):
            np.testing.assert_array_equal(param.array, array)
        return float(program.scale.grad)

    assert local.run(act, ranks=2) == [5.0, 5.0]
