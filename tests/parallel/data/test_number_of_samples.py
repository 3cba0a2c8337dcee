"""How many samples a rank has: seen in arguments, or told."""

import functools
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import (
    asynchronous,
    create_multi_node_optimizer,
    functions as CF,
    links as DL,
)
from renga.parallel.data.sample_weighting import number_of_samples
from tests.parallel.data.training_steps import (
    STEPS,
    UNEVEN,
    Net,
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
)


class Batch(NamedTuple):
    x: Any
    t: Any


def images(n):
    return np.zeros((n, 2, 4, 4), "float32")


def labels(n):
    return np.zeros(n, "int32")


def sequences(*lengths):
    return [np.zeros((length, 3), "float32") for length in lengths]


SEEN = [
    ((images(5), labels(5)), 5),
    ((renga.Variable(images(5)),), 5),
    ((images(0), labels(0)), 0),
    (({"x": images(5), "t": labels(5)},), 5),
    (({"name": "train", "batch": (images(3), labels(3))},), 3),
    (((images(5), labels(5)),), 5),
    (([images(5), labels(5)],), 5),
    ((Batch(images(1), images(1)),), 1),
    (("train", images(5), labels(5)), 5),
    ((b"train", 3, None, 0.5, np.float32(2), images(4)), 4),
    ((np.array(7.0), images(4)), 4),
    # Sequences, one for each sample.
    ((sequences(4, 7, 2), labels(3)), 3),
    ((sequences(4, 7, 2),), 3),
    ((tuple(sequences(4, 7, 2)), (0, 1, 1)), 3),
    ((sequences(4, 4, 4), labels(3)), 3),
    ((sequences(4, 4, 4),), 3),
    ((tuple(sequences(4, 4, 4)), labels(3)), 3),
    ((sequences(6), labels(1)), 1),
    (([], []), 0),
    ((["a sentence", "another one"],), 2),
    # Inputs of one kind, as of a Siamese network.
    (((images(5), images(5)),), 5),
    (([images(5), images(5)], labels(5)), 5),
    # Time-major arrays, where labels show it.
    ((np.zeros((9, 5, 3)), labels(5)), 5),
    ((np.zeros((9, 0, 3)), labels(0)), 0),
    ((np.zeros((5, 3)), labels(5), np.ones(3)), 5),
    ((np.zeros((5, 3)), np.ones(3)), 5),  # weights are no labels
    ((np.zeros((9, 5)), np.zeros((9, 5), int)), 9),
    ((), None),
    (("train", 3), None),
]


@pytest.mark.parametrize("args, expected", SEEN)
def test_numbers_that_are_seen(args, expected):
    assert number_of_samples(args, {}) == expected
    assert number_of_samples((), {f"a{i}": x for i, x in enumerate(args)}) == expected


def serial():
    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    return parameters(model)


UPDATES = {
    "dict": lambda o, m, x, t: o.update(lambda b: m(b["x"], b["t"]), {"x": x, "t": t}),
    "namedtuple": lambda o, m, x, t: o.update(lambda b: m(*b), Batch(x, t)),
    "text": lambda o, m, x, t: o.update(lambda _, x, t: m(x, t), "train", x, t),
    "time-major": lambda o, m, x, t: o.update(
        lambda x, t: m(x[0], t), np.stack([x, x]), t
    ),
    "argument": lambda o, m, x, t: o.update(lambda: m(x, t), samples=len(t)),
    "keyword wins": lambda o, m, x, t: o.update(
        lambda x, t: m(x, t[0]), x=x, t=t[None], samples=len(t)
    ),
}


@pytest.mark.parametrize("how", UPDATES)
def test_uneven_batches_in_containers(several_ranks, how):
    def run(comm):
        model, optimizer = make(comm)
        for x, t in zip(X, T):
            x, t = own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
            UPDATES[how](optimizer, model, x, t)
        return parameters(model)

    check(several_ranks(run), serial())


def test_a_loss_function_that_tells_its_samples(some_ranks):
    """The mean over all labels that are not ignored, of all ranks and batches."""

    def masked(x, t):
        return np.where(x[:, 0] > 0.3, -1, t).astype("int32")

    def run(comm):
        model, optimizer = make(comm)
        optimizer.accumulate(2)

        def loss(x, t):
            t = masked(x, t)
            optimizer.samples = int((t >= 0).sum())
            return model(x, t)

        for x, t in zip(X, T):
            x, t = own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
            for part in (slice(0, 2), slice(2, None)):
                optimizer.update(loss, x[part], t[part])
        return parameters(model)

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, masked(x, t))
    check(some_ranks(run), parameters(model))


def test_gradients_of_the_caller_are_weighted_if_it_tells_samples(some_ranks):
    def run(comm):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        for x, t in zip(X, T):
            x, t = own_samples(comm, x, UNEVEN), own_samples(comm, t, UNEVEN)
            model.cleargrads()
            if len(t):
                model(x, t).backward()
            optimizer.update(samples=len(t))
        return parameters(model)

    check(some_ranks(run), serial())


def test_ranks_that_cannot_know_warn_once(some_ranks):
    def run(comm):
        model, optimizer = make(comm)
        for x, t in zip(X, T):
            x, t = own_samples(comm, x), own_samples(comm, t)
            optimizer.update(lambda x=x, t=t: model(x, t))
        return parameters(model)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        results = some_ranks(run)
    texts = [str(w.message) for w in found if "cannot see" in str(w.message)]
    for rank in {int(text.split()[2]) for text in texts}:
        assert sum(f"rank {rank} " in text for text in texts) == 1
    check(results, serial())


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(
    "create",
    [
        create_multi_node_optimizer,
        asynchronous.create_local_sgd_optimizer,
        functools.partial(asynchronous.create_server_optimizer, staleness=0),
    ],
)
def test_means_that_ignore_labels_warn_once(create, told):
    def run(comm):
        model = Net()
        optimizer = create(renga.optimizers.SGD(0.1), comm).setup(model)
        for x, t in zip(X, T):
            x, t = own_samples(comm, x), own_samples(comm, t).copy()
            t[: 2 * comm.rank] = -1
            samples = int((t != -1).sum()) if told else None
            optimizer.update(model, x, t, samples=samples)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        local.run(run, ranks=2)
    texts = [str(w.message) for w in found if "are ignored" in str(w.message)]
    expected = "rank 1 takes the mean in softmax_cross_entropy of 4 of 6 elements"
    assert [expected in text for text in texts] == ([] if told else [True])


def test_invalid_samples(some_ranks):
    def run(comm):
        model, optimizer = make(comm)
        with pytest.raises(TypeError, match="samples: expected an integer"):
            optimizer.update(model, X[0], T[0], samples=X[0])
        with pytest.raises(ValueError, match="samples: expected at least 0"):
            optimizer.samples = -1
        with pytest.raises(TypeError, match="expected a Variable from the loss"):
            optimizer.update(lambda: None, samples=1)

    some_ranks(run)


class Normalized(renga.Chain):
    """Its graph crosses the ranks: in its statistics, and in an all-gather."""

    def __init__(self, comm=None):
        super().__init__()
        random = np.random.RandomState(4)
        self.comm = comm
        with self.init_scope():
            self.hidden = L.Linear(5, 5, initialW=random.normal(size=(5, 5)))
            if comm is None:
                self.norm = L.BatchNormalization(5)
            else:
                self.norm = DL.MultiNodeBatchNormalization(5, comm)
            self.out = L.Linear(5, 5, initialW=random.normal(size=(5, 5)))

    def forward(self, x, t):
        h = self.norm(self.hidden(x))
        all_of_h = F.concat(CF.allgather(self.comm, h), 0) if self.comm else h
        middle = F.broadcast_to(F.mean(F.tanh(all_of_h), 0), h.shape)
        return F.softmax_cross_entropy(self.out(F.tanh(h) * middle), t)


@pytest.mark.parametrize("accumulated", [1, 2])
def test_graphs_that_cross_ranks(some_ranks, accumulated):
    def train(comm=None):
        model = Normalized(comm)
        optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
        if comm is not None:
            optimizer = create_multi_node_optimizer(optimizer, comm)
            optimizer.accumulate(accumulated)
        for step in range(STEPS):
            for half in np.split(np.arange(12), accumulated):
                x, t = X[step], T[step]
                if comm is not None:
                    parts = np.array_split(
                        half, np.cumsum(sizes[comm.size]) // accumulated
                    )
                    x, t = x[parts[comm.rank]], t[parts[comm.rank]]
                elif half[0]:
                    continue
                optimizer.update(model, x, t)
        return parameters(model)

    sizes = {2: [2], 3: [4, 6], 4: [2, 2, 6]}
    if accumulated == 1:
        check(some_ranks(train), train(), atol=1e-5)
        return
    # Statistics are those of each half: in one process, of two losses that are added.
    model = Normalized()
    optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
    for x, t in zip(X, T):
        optimizer.update(
            lambda x, t: (model(x[:6], t[:6]) + model(x[6:], t[6:])) / 2, x, t
        )
    check(some_ranks(train), parameters(model), atol=1e-5)
