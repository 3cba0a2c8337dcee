"""elastic.Checkpoints: written once, complete or absent, loaded by any ranks."""

import json
import os
import pathlib
import threading

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.communicators import local
from renga.distributed import compression, create_multi_node_optimizer, elastic
from renga.parallel.elastic.index import Index, digest_of, share_out
from renga.serializers import DictionarySerializer
from tests.parallel.data.extensions.test_checkpoint import group_of


class State:
    """Arrays that all ranks have, that differ, and that one rank has alone."""

    def __init__(self, rank, is_empty=False):
        self.shared = {k: np.full(200, 0.0 if is_empty else k) for k in range(6)}
        self.own = np.array(-1 if is_empty else 10 + rank)
        self.extra = 0.0 if is_empty else 7.0
        self.has_extra = rank == 0

    def serialize(self, serializer):
        for key, value in self.shared.items():
            serializer(f"shared/{key}", value)
        self.own = serializer("own_random_state", self.own)
        if self.has_extra:
            self.extra = serializer("extra", self.extra)


@pytest.fixture
def folder(some_ranks, tmp_path_factory):
    path = some_ranks(
        lambda comm: comm.bcast_obj(str(tmp_path_factory.mktemp("elastic")))
    )
    return path[0]


def test_each_array_is_written_once(some_ranks, folder):
    def act(comm):
        checkpoints = elastic.Checkpoints(comm, folder)
        checkpoints.save(State(comm.rank), 5)
        checkpoints.finalize()
        comm.barrier()
        arrays = {}
        for path in pathlib.Path(folder).glob("5.*.npz"):
            with np.load(path) as part:
                arrays[path.name] = {key: part[key] for key in part}
        return arrays

    size = len(some_ranks(lambda comm: None))
    arrays = some_ranks(act)[0]
    assert len(arrays) == size
    keys = [key for part in arrays.values() for key in part]
    expected = [f"shared/{k}" for k in range(6)] + ["extra"]
    assert sorted(keys) == sorted(expected + ["own_random_state"] * size)
    # Each rank writes some of the shared arrays.
    counts = [sum("shared" in key for key in part) for part in arrays.values()]
    assert max(counts) == -(-6 // size)


@pytest.mark.parametrize("change", [0, 1, -1])
def test_any_number_of_ranks_loads(some_ranks, folder, change):
    size = len(some_ranks(lambda comm: None))
    n, m = (size, size + change) if change <= 0 else (size - 1, size)
    if min(n, m) < 1:
        n = m = size

    def act(comm):
        savers = group_of(comm, n)
        if savers is not None:
            checkpoints = elastic.Checkpoints(savers, folder)
            checkpoints.save(State(savers.rank), 3)
            checkpoints.save(State(savers.rank), 12)
            checkpoints.finalize()
        comm.barrier()
        loaders = group_of(comm, m)
        if loaders is None:
            return None
        state = State(loaders.rank, is_empty=True)
        return elastic.Checkpoints(loaders, folder).load(state), state

    for rank, (iteration, state) in enumerate(some_ranks(act)[:m]):
        assert iteration == 12
        for key, value in state.shared.items():
            np.testing.assert_array_equal(value, np.full(200, float(key)))
        # A new rank keeps its own random state.
        assert state.own == (10 + rank if rank < n else -1)
        assert state.extra == (7.0 if rank == 0 else 0.0)


@pytest.mark.parametrize("harm", ["no part", "no index", "a bit", "half an index"])
def test_the_newest_complete_one_is_loaded(some_ranks, folder, harm):
    def act(comm):
        checkpoints = elastic.Checkpoints(comm, folder)
        for iteration in (1, 2, 3):
            checkpoints.save(State(comm.rank), iteration)
        checkpoints.finalize()
        comm.barrier()
        if comm.rank == 0:
            index = pathlib.Path(folder, "3.json")
            part = sorted(pathlib.Path(folder).glob("3.*.npz"))[-1]
            if harm == "no part":
                part.unlink()
            elif harm == "no index":
                index.unlink()
            elif harm == "half an index":
                index.write_text(index.read_text()[:50])
            else:
                data = part.read_bytes()
                at = data.index(b"NUMPY") + 130
                part.write_bytes(data[:at] + b"?" + data[at + 1 :])
        comm.barrier()
        state = State(comm.rank, is_empty=True)
        return elastic.Checkpoints(comm, folder).load(state), state.shared[5][0]

    if harm == "a bit":
        with pytest.warns(UserWarning, match="checkpoint 3 is skipped"):
            outcomes = some_ranks(act)
    else:
        outcomes = some_ranks(act)
    assert outcomes == [(2, 5.0)] * len(outcomes)


def test_old_files_are_removed(some_ranks, folder):
    def act(comm):
        # An index that a killed job has left without its parts.
        if comm.rank == 0:
            Index(2, "dead", 2, {"x": [0, 1]}).write(folder)
        checkpoints = elastic.Checkpoints(comm, folder, kept=2)
        for iteration in (3, 5, 8, 13):
            checkpoints.save(State(comm.rank), iteration)
            checkpoints.finalize()
            comm.barrier()
        checkpoints.save(State(comm.rank), 21)
        checkpoints.finalize()
        comm.barrier()
        return sorted({name.split(".")[0] for name in os.listdir(folder)})

    # The parts of the others may have come after rank 0 counted.
    assert set(some_ranks(act)[0]) - {"8"} == {"13", "21"}


def test_what_is_saved_is_a_copy(some_ranks, folder, monkeypatch):
    may_write = threading.Event()
    from renga.parallel.elastic import checkpoints as module

    save = module.save_npz

    def slow(*args, **kwargs):
        assert may_write.wait(30)
        save(*args, **kwargs)

    monkeypatch.setattr(module, "save_npz", slow)

    def act(comm):
        state = State(comm.rank)
        checkpoints = elastic.Checkpoints(comm, folder)
        checkpoints.save(state, 1)  # returns before it is written
        assert not list(pathlib.Path(folder).glob("*.json"))
        for value in state.shared.values():
            value += 1
        comm.barrier()
        may_write.set()
        checkpoints.finalize()
        comm.barrier()
        loaded = State(comm.rank, is_empty=True)
        elastic.Checkpoints(comm, folder).load(loaded)
        return loaded.shared[4][0]

    assert set(some_ranks(act)) == {4.0}


def test_failed_writes_are_raised(some_ranks, folder, monkeypatch):
    from renga.parallel.elastic import checkpoints as module

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_npz", full)

    def act(comm):
        checkpoints = elastic.Checkpoints(comm, folder)
        checkpoints.save(State(comm.rank), 1)
        with pytest.raises(OSError, match="No space left"):
            checkpoints.finalize()
        return list(Index.complete(folder))

    assert not any(some_ranks(act))


RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(30, 5)).astype("float32")
T = (X[:, 0] > 0).astype("int32")
W = RANDOM.normal(size=(2, 5)).astype("float32")


def new_trainer(comm, folder, iterations):
    model = L.Classifier(L.Linear(5, 2, initialW=W))
    optimizer = renga.optimizers.MomentumSGD(0.3).setup(model)
    optimizer = create_multi_node_optimizer(optimizer, comm)
    iterator = elastic.StreamIterator(list(zip(X, T)), 2, comm, seed=5)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (iterations, "iteration"), out=folder)
    trainer.extend(elastic.Checkpoints(comm, folder), trigger=(2, "iteration"))
    return trainer


def serial_training(batches):
    """The weights after batches of so many examples, in float64 by hand."""
    orders = [np.random.RandomState([5, e]).permutation(30) for e in range(9)]
    stream = np.concatenate(orders)
    w, b = W.astype("float64"), np.zeros(2)
    vw, vb = np.zeros_like(w), np.zeros(2)
    for size in batches:
        now, stream = stream[:size], stream[size:]
        y = np.exp(X[now] @ w.T + b)
        gy = (y / y.sum(1, keepdims=True) - np.eye(2)[T[now]]) / size
        vw, vb = 0.9 * vw - 0.3 * gy.T @ X[now], 0.9 * vb - 0.3 * gy.sum(0)
        w, b = w + vw, b + vb
    return w


def state_of(trainer):
    serializer = DictionarySerializer()
    trainer.updater.serialize(serializer)
    return {key: np.array(value) for key, value in serializer.target.items()}


def equal(a, b):
    assert a.keys() == b.keys()
    for key, value in a.items():
        np.testing.assert_array_equal(value, b[key], err_msg=key)


def test_resumed_training_has_the_bits_of_one_that_never_stopped(some_ranks, folder):
    def act(comm):
        new_trainer(comm, folder + "/a", 4).run()
        resumed = new_trainer(comm, folder + "/a", 9)
        resumed.run()
        straight = new_trainer(comm, folder + "/b", 9)
        straight.run()
        return state_of(resumed), state_of(straight)

    for resumed, straight in some_ranks(act):
        assert resumed["iteration"] == 9
        equal(resumed, straight)


@pytest.mark.parametrize("grows", [False, True])
def test_other_ranks_go_on_with_the_examples_that_are_left(some_ranks, tmp_path, grows):
    def act(comm, folder, old, new):
        job = group_of(comm, old)
        if job is not None:
            new_trainer(job, folder, 4).run()
        comm.barrier()
        job = group_of(comm, new)
        states = []
        if job is not None:
            for _ in range(2):
                trainer = new_trainer(job, folder, 7)
                trainer._entries["Checkpoints"].trigger = lambda trainer: False
                trainer.run()
                states.append(state_of(trainer))
        comm.barrier()
        return states

    size = len(some_ranks(lambda comm: None))
    old, new = (size - 1, size) if grows else (size, size - 1)
    folder = some_ranks(lambda comm: comm.bcast_obj(str(tmp_path)))[0]
    outcomes = some_ranks(act, folder, old, new)[:new]
    for first, second in outcomes:
        assert first["iteration"] == 7
        equal(first, outcomes[0][1])  # the same bits on all ranks and in both runs
        equal(second, first)
    expected = serial_training([2 * old] * 4 + [2 * new] * 3)
    got = outcomes[0][0]["model:main/predictor/W"]
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("before, after", [(4, 2), (2, 4), (4, 6), (2, 3)])
def test_what_a_node_keeps_of_gradients_stays_there(tmp_path, before, after):
    """With another number of ranks on each of two nodes."""

    def rests(optimizer, comm):
        state = DictionarySerializer()
        state.save(optimizer)
        found = [x for key, x in state.target.items() if "state" in key and x.ndim]
        return comm.inter_rank, np.concatenate(
            [np.zeros(0), *(x.ravel() for x in found)]
        )

    def make(comm):
        model = L.Linear(8, 4)
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD(), comm, compression=compression.TopK(0.1)
        )
        return model, optimizer.setup(model)

    def save(comm):
        model, optimizer = make(comm)
        x = np.random.RandomState(comm.rank).normal(size=(3, 8)).astype("f")
        optimizer.update(lambda x: F.sum(model(x) ** 2), x)
        checkpoints = elastic.Checkpoints(comm, tmp_path)
        checkpoints.save(optimizer, 1)
        checkpoints.finalize()
        return rests(optimizer, comm)

    def load(comm):
        optimizer = make(comm)[1]
        assert elastic.Checkpoints(comm, tmp_path).load(optimizer) == 1
        return rests(optimizer, comm)

    saved = local.run(save, ranks=before, nodes=2)
    expected = {node: rest for node, rest in saved if rest.size}
    found = [each for each in local.run(load, ranks=after, nodes=2) if each[1].size]
    assert [node for node, _ in found] == [0, 1]
    for node, rest in found:  # of sums over ranks, which become means
        np.testing.assert_allclose(rest, expected[node] * after / before, 1e-6)


def test_folders_that_not_all_ranks_see(some_ranks, tmp_path):
    def act(comm):
        folder = tmp_path / f"{comm.rank}"
        with pytest.raises(FileNotFoundError, match="folder that all ranks see"):
            elastic.Checkpoints(comm, folder)
        return True

    assert all(some_ranks(act))


def test_mistakes_are_named(some_ranks, folder):
    def act(comm):
        with pytest.raises(ValueError, match="kept: expected at least 1, got 0"):
            elastic.Checkpoints(comm, folder, kept=0)
        checkpoints = elastic.Checkpoints(comm, os.fsencode(folder))
        with pytest.raises(ValueError, match="iteration: expected at least 0, got -1"):
            checkpoints.save(State(comm.rank), -1)
        for iteration in (1.5, "3", None):
            with pytest.raises(TypeError, match="iteration: expected an integer"):
                checkpoints.save(State(comm.rank), iteration)
        checkpoints.save(State(comm.rank), np.int64(4))
        checkpoints.finalize()
        comm.barrier()
        return checkpoints.load(State(comm.rank))

    assert set(some_ranks(act)) == {4}
    with pytest.raises(TypeError, match="elastic.run: expected a function, got 5"):
        elastic.run(5)


def test_digests_tell_arrays_apart():
    x = np.arange(100_000.0)
    assert digest_of(x) == digest_of(x.copy())
    changed = x.copy()
    changed[-1] += 1
    others = [changed, x.astype("f"), x.reshape(2, -1), x[:10], np.array(None), x[::2]]
    assert len({digest_of(y) for y in [x, *others]}) == 7
    assert digest_of(np.asfortranarray(x.reshape(2, -1))) == digest_of(x.reshape(2, -1))


def test_work_is_shared_out_by_bytes():
    a, b, c = (digest_of(np.zeros(n)) for n in (100, 60, 50))
    writers = share_out([{"a": a, "b": b, "c": c}] * 2)
    assert writers == {"a": [0, 0], "b": [1, 1], "c": [1, 1]}
    # Two ranks have one value of x, two another; one has y alone.
    groups = share_out([{"x": a}, {"x": a}, {"x": b}, {"x": b, "y": c}])
    assert groups == {"x": [0, 0, 2, 2], "y": [None, None, None, 3]}


def test_an_index_is_readable(tmp_path):
    Index(4, "ab", 2, {"x": [0, None]}, [0, 0]).write(str(tmp_path))
    fields = json.loads((tmp_path / "4.json").read_text())
    assert fields == {
        "iteration": 4,
        "mark": "ab",
        "ranks": 2,
        "writers": {"x": [0, None]},
        "nodes": [0, 0],
    }
    assert list(Index.complete(str(tmp_path))) == []
    (tmp_path / "4.ab.0.npz").touch()
    assert [index.iteration for index in Index.complete(str(tmp_path))] == [4]
