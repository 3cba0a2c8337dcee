"""Rows of embeddings, of which a batch reads a few only."""

import math

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local, simulated
from renga.distributed import create_communicator, create_multi_node_optimizer
from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizers import SGD, Adam, MomentumSGD
from renga.parallel.asynchronous.server.rows import RowPiece
from tests.parallel.asynchronous.quadratics import parameters

WORDS, WIDTH, CLASSES, STEPS = 50, 3, 4, 8
ROWS = {"/embed/W": lambda x, t: x}


class Bag(renga.Chain):
    def __init__(self, seed=0, words=WORDS):
        super().__init__()
        draw = renga.initializers.Normal(0.5, rng=np.random.RandomState(seed))
        with self.init_scope():
            self.embed = L.EmbedID(words, WIDTH, initialW=draw)
            self.out = L.Linear(WIDTH, CLASSES, initialW=draw)

    def forward(self, x, t):
        h = F.sum(self.embed(x), axis=1)
        return F.softmax_cross_entropy(self.out(h), t)


def batch(worker, step):
    """Six samples of four words."""
    random = np.random.RandomState([worker, step])
    x = random.randint(0, WORDS, (6, 4)).astype("int32")
    return x, random.randint(0, CLASSES, 6).astype("int32")


def train(comm, optimizer, model, first=0):
    for step in range(STEPS):
        if hasattr(comm, "advance"):
            comm.advance("step")
        optimizer.update(model, *batch(comm.rank - first, step))


@pytest.mark.parametrize("make", [lambda: MomentumSGD(0.1), lambda: Adam(0.05)])
@pytest.mark.parametrize("shards", [1, 7])
def test_rows_without_staleness_are_synchronous_training_bitwise(
    ranks_with_threads, make, shards
):
    """Also with optimizers that move rows whose gradients are zero."""

    def act(comm):
        model = Bag(comm.rank)
        train(comm, create_multi_node_optimizer(make().setup(model), comm), model)
        served = Bag(comm.rank)
        optimizer = create_server_optimizer(
            make().setup(served), comm, 0, shards, rows=ROWS
        )
        train(comm, optimizer, served)
        optimizer.join()
        return parameters(model), parameters(served)

    for expected, served in ranks_with_threads(act):
        for key, x in expected.items():
            np.testing.assert_array_equal(served[key], x)


def stale(comm, staleness, shards, rows, words=WORDS):
    model = Bag(words=words)
    optimizer = create_server_optimizer(
        MomentumSGD(0.1).setup(model), comm, staleness, shards, servers=1, rows=rows
    )
    if optimizer.is_server:
        optimizer.serve()
        return optimizer.logs
    train(comm, optimizer, model, first=1)
    histogram = optimizer.staleness_histogram()
    optimizer.join()
    return parameters(model), histogram


@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize("staleness", [2, math.inf])
def test_stale_rows_are_the_serial_replay_of_the_log_bitwise(staleness, shards):
    outcome = simulated.run(
        lambda comm: stale(comm, staleness, shards, ROWS),
        4,
        seconds_of=lambda rank, task: 0.4 if rank == 1 else 0.1 + 0.013 * rank,
    )
    logs, *workers = outcome.results
    assert len(logs) == shards and all(log == logs[0] for log in logs.values())
    assert len(logs[0]) == 3 * STEPS
    assert max(i - entry.version for i, entry in enumerate(logs[0])) > 1
    model = Bag()
    optimizer = MomentumSGD(0.1).setup(model)
    versions = [parameters(model)]
    for entry in logs[0]:
        set_parameters(model, versions[entry.version])
        model.cleargrads()
        model(*batch(entry.worker - 1, entry.clock - 1)).backward()
        set_parameters(model, versions[-1])
        optimizer.lr = 0.1 * entry.rate
        optimizer.update()
        versions.append(parameters(model))
    for served, histogram in workers:
        assert max(histogram) <= staleness
        for key, x in versions[-1].items():
            np.testing.assert_array_equal(served[key], x)


def set_parameters(model, values):
    for name, param in model.namedparams():
        param.array[...] = values[name]


def test_only_rows_are_exchanged():
    """A larger table costs nothing but the first and the last messages.

    The server ends with parameters and momenta.
    """

    def act(comm, words):
        stale(comm, math.inf, 1, ROWS, words)
        return comm.traffic.bytes

    small, large = (
        simulated.run(lambda comm, n=words: act(comm, n), 2, seconds_of=lambda *_: 0.1)
        for words in (WORDS, 100 * WORDS)
    )
    table = 4 * WIDTH * 99 * WORDS
    for tables, few, many in zip((2, 1), small.results, large.results):
        assert 0 <= many - few - tables * table < 100  # of a larger header


def test_other_rows_are_old_until_the_newest_are_pulled():
    def act(comm):
        model = Bag()
        optimizer = create_server_optimizer(SGD(0.5).setup(model), comm, 0, rows=ROWS)
        for word in range(comm.rank, 10, 2):  # each rank its own words
            x = np.full((1, 1), word, "int32")
            optimizer.update(model, x, np.zeros(1, "int32"))
        before = model.embed.W.array.copy()
        with optimizer.averaged():
            pulled = model.embed.W.array.copy()
        optimizer.join()
        return before, pulled

    start = Bag().embed.W.array
    for rank, (x, pulled) in enumerate(local.run(act, ranks=2)):
        np.testing.assert_array_equal(x[1 - rank : 10 : 2], start[1 - rank : 10 : 2])
        assert (pulled[:8] != start[:8]).any(axis=1).all()
        np.testing.assert_array_equal(pulled[10:], start[10:])


@pytest.mark.parametrize(
    "rows, message",
    [
        ({"/no/W": lambda x, t: x}, "expected rows of /embed/W, /out/W, /out/b, got"),
        ({"/embed/W": lambda x, t: x - WORDS}, r"rows in \[0, 50\)"),
        ({"/embed/W": lambda x, t: x + WORDS}, r"rows in \[0, 50\)"),
        ({"/embed/W": lambda x, t: x[1:]}, "zeros in the gradient of W outside"),
        ({"/embed/W": lambda x, t: []}, "zeros in the gradient of W outside"),
        ({"/embed/W": lambda x, t: x + 0.5}, "integers as rows of W, got float64"),
        ({"/embed/W": lambda x, t: x > 0}, "integers as rows of W, got bool"),
        ({"/embed/W": lambda x, t: None}, "integers as rows of W, got object"),
    ],
)
def test_wrong_rows_are_refused(rows, message):
    def act(comm):
        model = Bag()
        optimizer = create_server_optimizer(SGD().setup(model), comm, rows=rows)
        with pytest.raises((TypeError, ValueError), match=message):
            train(comm, optimizer, model)
        optimizer.join()

    local.run(act, ranks=1)


def test_gradients_alone_do_not_say_which_rows_to_pull():
    model = Bag()
    optimizer = create_server_optimizer(
        SGD().setup(model), create_communicator("local"), rows=ROWS
    )
    with pytest.raises(ValueError, match="expected a loss function"):
        optimizer.update()
    optimizer.join()


def test_elements_of_a_piece_are_those_of_the_whole():
    """Pieces that begin and end within rows, against indexing."""
    x = np.arange(7 * 5)
    rows = np.array([0, 2, 3, 6])
    taken = np.full_like(x, -1)
    for start, stop in [(0, 4), (4, 13), (13, 30), (30, 35)]:
        piece = RowPiece(start, stop, 5)
        part = piece.elements(piece.within(rows))
        taken[start:stop][part] = x[start:stop][part]
        np.testing.assert_array_equal(part, piece.elements(rows))
    expected = np.full((7, 5), -1)
    expected[rows] = x.reshape(7, 5)[rows]
    np.testing.assert_array_equal(taken.reshape(7, 5), expected)
    assert RowPiece(13, 30, 5).within(rows).tolist() == [2, 3]
