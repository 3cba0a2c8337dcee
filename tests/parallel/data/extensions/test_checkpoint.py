"""Checkpoints of several ranks: exact on as many, loaded on other numbers of them."""

import os
import shutil

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.distributed import (
    create_multi_node_checkpointer,
    create_multi_node_optimizer,
    scatter_dataset,
)
from renga.distributed.extensions import multi_node_snapshot
from renga.distributed.iterators import (
    create_multi_node_iterator,
    create_synchronized_iterator,
)
from renga.training import extensions

RANDOM = np.random.RandomState(2)
X = RANDOM.normal(size=(24, 3)).astype("float32")
T = RANDOM.randint(0, 2, 24).astype("int32")


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)

        def normal(array):
            array[...] = random.normal(size=array.shape)

        with self.init_scope():
            self.fc1 = L.Linear(3, 4, initialW=normal)
            self.bn = L.BatchNormalization(4)
            self.fc2 = L.Linear(4, 2, initialW=normal)

    def forward(self, x, t):
        h = F.tanh(self.bn(self.fc1(x)))
        return F.softmax_cross_entropy(self.fc2(h), t)


@pytest.fixture
def folder(some_ranks, tmp_path):
    """One for all ranks."""
    path = some_ranks(lambda comm: comm.bcast_obj(str(tmp_path)))[0]
    return os.path.join(path, "files")


def shuffling(data, batch_size, rank):
    # Its own generator: threads share NumPy's.
    random = np.random.RandomState(rank)
    sampler = renga.iterators.ShuffleOrderSampler(random)
    return renga.iterators.SerialIterator(data, batch_size, order_sampler=sampler)


def new_trainer(comm, folder, iterations, iterator=None):
    model = Net()
    optimizer = renga.optimizers.Adam(0.05).setup(model)
    optimizer = create_multi_node_optimizer(optimizer, comm)
    if iterator is None:
        data = scatter_dataset(list(zip(X, T)), comm)
        iterator = shuffling(data, 3, comm.rank)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    return training.Trainer(updater, (iterations, "iteration"), out=folder)


def state_of(trainer):
    serializer = renga.serializers.DictionarySerializer()
    trainer.updater.serialize(serializer)
    return {key: np.array(value) for key, value in serializer.target.items()}


def run(comm, folder, iterations, name="cp", load=True, **options):
    trainer = new_trainer(comm, folder, iterations)
    checkpointer = create_multi_node_checkpointer(name, comm, **options)
    checkpointer.finalize = lambda: None  # as if it were killed at the end
    if load:
        checkpointer.maybe_load(trainer)
    begun = trainer.updater.iteration
    trainer.extend(checkpointer, trigger=(1, "iteration"))
    kept = []

    def keep(trainer):
        comm.barrier()
        kept.append(sorted(os.listdir(folder)))
        comm.barrier()

    trainer.extend(keep, trigger=(1, "iteration"), priority=-200)
    trainer.run()
    return begun, state_of(trainer), kept


def equal(actual, expected):
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(actual[key], value, err_msg=key)


def test_training_goes_on_exactly(some_ranks, folder):
    def act(comm):
        _, expected, _ = run(comm, folder, 7, name="whole", load=False)
        run(comm, folder, 4)
        begun, state, _ = run(comm, folder, 7)
        assert begun == 4
        equal(state, expected)
        return state["model:main/bn/avg_mean"]

    means = some_ranks(act)
    # Each rank has the statistics of its own batches: none has rank 0's.
    assert len({mean.tobytes() for mean in means}) == len(means)


def test_old_checkpoints_are_removed(some_ranks, folder):
    def act(comm):
        return run(comm, folder, 7, cp_interval=2, gc_interval=3)[2], comm.size

    kept, size = some_ranks(act)[0]
    generations = [{int(name.split(".")[2]) for name in names} for names in kept]
    assert generations == [
        {1}, {1, 2}, {2, 3}, {2, 3, 4}, {2, 3, 4, 5}, {5, 6}, {5, 6, 7}
    ]  # fmt: skip
    assert [len(names) for names in kept] == [size * len(g) for g in generations]


def test_the_end_of_training_removes_all_but_an_error_none(some_ranks, folder):
    def act(comm, error):
        trainer = new_trainer(comm, folder, 2)
        checkpointer = create_multi_node_checkpointer("cp", comm)
        trainer.extend(checkpointer, trigger=(1, "iteration"))

        def fail(trainer):
            if trainer.updater.iteration == 2:
                raise error("enough")

        if error:
            trainer.extend(fail, trigger=(1, "iteration"), priority=-200)
            with pytest.raises(error, match="enough"):
                trainer.run(show_loop_exception_msg=False)
        else:
            trainer.run()
        comm.barrier()
        left = sorted(os.listdir(folder))
        comm.barrier()
        assert "seconds per checkpoint: mean" in checkpointer.get_stats()
        return left

    results = some_ranks(act, RuntimeError)
    names = [f"cp.{r}.{i}" for r in range(len(results)) for i in (1, 2)]
    assert results == [names] * len(results)
    # SystemExit stands for the signal that ends the ranks of a job in which one has
    # failed.
    assert some_ranks(act, SystemExit) == [names] * len(results)
    assert some_ranks(act, None) == [[]] * len(results)


@pytest.mark.filterwarnings("ignore:checkpoint 4 is skipped")
@pytest.mark.parametrize("harm", ["missing", "cut", "temporary", "a bit"])
def test_the_newest_complete_one_is_found(some_ranks, folder, harm):
    def act(comm):
        run(comm, folder, 4)
        comm.barrier()
        if comm.rank == comm.size - 1:
            newest = os.path.join(folder, f"cp.{comm.rank}.4")
            if harm == "cut":
                os.truncate(newest, os.path.getsize(newest) // 2)
            elif harm == "a bit":
                with open(newest, "r+b") as file:
                    file.seek(file.read().index(b"NUMPY") + 30)
                    file.write(b"?")
            else:
                os.remove(newest)
            if harm == "temporary":
                open(f"{folder}/.cp.{comm.rank}.4.abcd.tmp", "wb").close()
        comm.barrier()
        trainer = new_trainer(comm, folder, 9)
        create_multi_node_checkpointer("cp", comm).maybe_load(trainer)
        return trainer.updater.iteration

    assert set(some_ranks(act)) == {3}


def test_nothing_to_load(some_ranks, folder):
    def act(comm):
        trainer = new_trainer(comm, folder, 9)
        create_multi_node_checkpointer("cp", comm).maybe_load(trainer, path=folder)
        return trainer.updater.iteration

    assert set(some_ranks(act)) == {0}


def group_of(comm, size):
    group = comm.split(int(comm.rank >= size), comm.rank)
    return group if comm.rank < size else None


@pytest.mark.parametrize("saved_by", ["checkpointer", "snapshot"])
def test_other_numbers_of_ranks(some_ranks, folder, saved_by):
    """Saved on n of the ranks, loaded on m of them."""

    def save(comm):
        if saved_by == "checkpointer":
            return run(comm, folder, 3, load=False)[1]
        trainer = new_trainer(comm, folder, 3)
        trainer.extend(snapshot_of(comm), trigger=(3, "iteration"))
        trainer.run()
        return state_of(trainer)

    def snapshot_of(comm):
        snapshot = extensions.snapshot(filename="s", autoload=True)
        return multi_node_snapshot(comm, snapshot, [range(comm.size)])

    def load(comm):
        trainer = new_trainer(comm, folder, 3)
        if saved_by == "checkpointer":
            create_multi_node_checkpointer("cp", comm).maybe_load(trainer)
        else:
            snapshot_of(comm).initialize(trainer)
        loaded = state_of(trainer)
        detail = trainer.updater.epoch_detail
        trainer.updater.update()
        return loaded, detail, state_of(trainer)

    def act(comm, n, m):
        saved = loaded = None
        if comm.rank == 0:
            shutil.rmtree(folder, ignore_errors=True)
        comm.barrier()
        savers = group_of(comm, n)
        if savers is not None:
            saved = save(savers)
        comm.barrier()
        loaders = group_of(comm, m)
        if loaders is not None:
            loaded = load(loaders)
        comm.barrier()
        return saved, loaded

    size = len(some_ranks(lambda comm: None))
    for n, m in {
        (1, size),
        (size, 1),
        (size, max(1, size - 1)),
        (max(1, size // 2), size),
    }:
        outcomes = some_ranks(act, n, m)
        saved = [s for s, _ in outcomes if s is not None]
        afters = []
        for rank, (_, loaded) in enumerate(outcomes[:m]):
            state, detail, after = loaded
            writer = saved[rank % n if saved_by == "checkpointer" else 0]
            for key, value in writer.items():
                if "iterator:" not in key:
                    np.testing.assert_array_equal(state[key], value, err_msg=key)
            # 9 n of 24 samples were used up, and this rank goes on from there.
            assert abs(detail - 9 * n / 24) <= 1 / (24 // m)
            afters.append(after)
        for after in afters:
            for key, value in after.items():
                if "model:main/fc" in key or "optimizer:" in key:
                    np.testing.assert_array_equal(value, afters[0][key], err_msg=key)


def own_order(comm):
    return shuffling(X, 4, comm.rank)


def synchronized(comm):
    return create_synchronized_iterator(own_order(comm), comm)


def masters(comm):
    return create_multi_node_iterator(own_order(comm), comm)


def in_order(comm):
    return renga.iterators.SerialIterator(X, 4, shuffle=False)


def masters_in_order(comm):
    return create_multi_node_iterator(in_order(comm), comm)


@pytest.mark.parametrize(
    "make", [own_order, synchronized, masters, in_order, masters_in_order]
)
def test_iterators_over_all_examples_on_other_numbers_of_ranks(
    some_ranks, folder, make
):
    def save(comm):
        iterator = make(comm)
        updater = new_trainer(comm, folder, 1, iterator).updater
        read = [tuple(x) for _ in range(4) for x in next(iterator)]
        create_multi_node_checkpointer("cp", comm, path=folder).save(updater, 4)
        return read

    def load(comm):
        iterator = make(comm)
        updater = new_trainer(comm, folder, 1, iterator).updater
        create_multi_node_checkpointer("cp", comm, path=folder).maybe_load(updater)
        return [[tuple(x) for _ in range(n) for x in next(iterator)] for n in (2, 6)]

    def act(comm, n, m):
        groups = group_of(comm, n), group_of(comm, m)
        if comm.rank == 0:
            shutil.rmtree(folder, ignore_errors=True)
        comm.barrier()
        read = None if groups[0] is None else save(groups[0])
        comm.barrier()
        return read, None if groups[1] is None else load(groups[1])

    examples = sorted(map(tuple, X))
    size = len(some_ranks(lambda comm: None))
    for n, m in {(1, size), (size, 1), (size, max(1, size - 1))}:
        outcomes = some_ranks(act, n, m)
        before = [read for read, _ in outcomes[:n]]
        after = [read for _, read in outcomes[:m]]
        for rank, (rest, epoch) in enumerate(after):
            assert sorted(before[rank % n] + rest) == examples
            assert sorted(epoch) == examples
            if make is not own_order:
                assert (rest, epoch) == tuple(after[0])


SETS = {
    "one": lambda size: [list(range(size))],
    "each": lambda size: [[r] for r in range(size)],
    "the others": lambda size: [[size - 1]],
    "none": lambda size: [],
}


@pytest.mark.parametrize("kind", SETS)
def test_each_replica_set_writes_one_file(some_ranks, folder, kind):
    def act(comm, autoload, iterations):
        trainer = new_trainer(comm, folder, iterations)
        snapshot = extensions.snapshot(
            filename="s{.updater.iteration}", autoload=autoload, n_retains=2
        )
        snapshot = multi_node_snapshot(comm, snapshot, SETS[kind](comm.size))
        trainer.extend(snapshot, trigger=(1, "iteration"))
        trainer.run()
        comm.barrier()
        names = sorted(os.listdir(folder))
        comm.barrier()
        return names, state_of(trainer)

    size = len(some_ranks(lambda comm: None))
    writers = {"each": range(size), "the others": sorted({0, size - 1})}.get(kind, [0])
    files = [f"s{i}.{rank}" for i in (3, 4) for rank in writers]
    for names, _ in some_ranks(act, False, 4):
        assert names == files
    if kind == "each":
        # All have written 4 but one: 3 is the newest that every set has.
        some_ranks(lambda comm: comm.rank or os.remove(os.path.join(folder, "s4.0")))
    resumed = some_ranks(act, True, 6)
    some_ranks(lambda comm: comm.rank or shutil.rmtree(folder))
    straight = some_ranks(act, False, 6)
    if kind == "each":
        for (_, state), (_, expected) in zip(resumed, straight):
            equal(state, expected)
    for _, state in resumed:
        assert state["iteration"] == 6


def test_sets_that_cannot_be(some_ranks):
    def act(comm):
        for sets in ([[0], [0]], [[comm.size]]):
            with pytest.raises(ValueError, match="expected disjoint sets of ranks"):
                multi_node_snapshot(comm, extensions.snapshot(), sets)
        return True

    assert all(some_ranks(act))
