"""Data sets and iterators that ranks share, and files."""

import os
import shutil
import tempfile

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np
from chainer import optimizers, training

LINES = """
scattered(comm, range(6))
scattered(comm, range(7))
scattered(comm, range(7), force_equal_length=False)
scattered(comm, range(1))
scattered(comm, range(1), force_equal_length=False)
scattered(comm, [])
scattered(comm, [], force_equal_length=False)
scattered(comm, ['a', {'b': 1}, None, (2, 3)])
scattered(comm, range(6), root=last)
scattered(comm, range(9), shuffle=True, seed=3)
scattered(comm, range(9), shuffle=True, seed=3, root=last)
scattered(comm, range(5), max_buf_len=3)
scattered(comm, np.arange(8).reshape(4, 2))
scattered(comm, chainer.datasets.TupleDataset(range(4), 'abcd'))
chainermn.scatter_index(7, comm)
chainermn.scatter_index(7, comm, force_equal_length=False)
chainermn.scatter_index(6, comm, root=last)
chainermn.scatter_index(1, comm)
chainermn.scatter_index(0, comm, force_equal_length=False)
[list(chainermn.datasets.create_empty_dataset(range(3)))]
chainermn.datasets.get_n_iterations_for_one_epoch(range(7), 2, comm)
chainermn.datasets.scatter.get_n_iterations_for_one_epoch(range(7), 2, comm)
chainermn.datasets.scatter.get_epoch_trigger(2, range(7), 2, comm)
iterated(comm, [1., 2., 3., 4.], 2)
iterated(comm, [1., 2., 3.], 2)
iterated(comm, [1., 2., 3.], 2, repeat=True)
iterated(comm, [(1., 2), (3., 4), (5., 6)], 2)
iterated(comm, np.arange(6, dtype='f').reshape(3, 2), 2)
iterated(comm, np.arange(6, dtype='d').reshape(3, 2), 1)
iterated(comm, [(np.ones(2, 'f'), np.zeros(1, 'f'))] * 3, 2)
iterated(comm, [1., 2., 3., 4.], 2, rank_master=last)
iterated(comm, ['a', 'b'], 1)
iterated(comm, np.arange(6, dtype='f').reshape(3, 2), 2, repeat=True)
iterated(comm, [(np.float32(i), np.int32(i)) for i in range(3)], 2, repeat=True)
chainermn.iterators.create_synchronized_iterator(iter([1]), comm)
"""

EXPRESSIONS = LINES


def names(comm):
    """What the expressions see."""
    known = {"np": np, "chainer": chainer, "chainermn": chainermn}
    return {**known, "scattered": scattered, "iterated": iterated}


def scattered(comm, dataset, root=0, **options):
    """This rank's samples, the whole data set being at the root."""
    whole = dataset if comm.rank == root else None
    mine = chainermn.scatter_dataset(whole, comm, root=root, **options)
    return len(mine), [mine[i] for i in range(len(mine))]


def iterated(comm, dataset, batch_size, rank_master=0, repeat=False, shuffle=False):
    """Up to four batches, with where the iterator is after each."""
    np.random.seed(1)
    iterator = chainer.iterators.SerialIterator(
        dataset, batch_size, repeat=repeat, shuffle=shuffle
    )
    shared = chainermn.iterators.create_multi_node_iterator(iterator, comm, rank_master)
    found = []
    for _ in range(4):
        try:
            batch = next(shared)
        except StopIteration:
            found.append("end")
            break
        place = shared.epoch, shared.is_new_epoch, shared.epoch_detail
        found.append(
            (sorted(map(plain, batch)) if shuffle else list(map(plain, batch)), place)
        )
    return found


def plain(sample):
    """A sample as floats: ChainerMN's other ranks get arrays of float32."""
    if isinstance(sample, (tuple, list)):
        return [plain(part) for part in sample]
    return np.asarray(sample, "d").tolist() if not isinstance(sample, str) else sample


def case_synchronized_iterator(comm):
    """The same order everywhere, whatever the generators' states were."""
    np.random.seed(comm.rank)
    iterator = chainer.iterators.SerialIterator(list(range(8)), 8)
    shared = chainermn.iterators.create_synchronized_iterator(iterator, comm)
    orders = [comm.gather_obj(next(shared)) for _ in range(2)]
    return [o is None or all(each == o[0] for each in o) for o in orders]


def case_synchronized_iterator_attributes(comm):
    iterator = chainer.iterators.SerialIterator(list(range(4)), 3, shuffle=True)
    shared = chainermn.iterators.create_synchronized_iterator(iterator, comm)
    next(shared)
    return shared.epoch, shared.is_new_epoch, shared.epoch_detail, shared.batch_size


def case_empty_data_set(comm):
    empty = chainermn.datasets.create_empty_dataset([5, 6])
    return len(empty), empty[0], empty[1]


def shared_folder(comm):
    return comm.bcast_obj(tempfile.mkdtemp() if comm.rank == 0 else None)


def barrier(comm):
    comm.allreduce(np.zeros(1, "f"))


def finished(comm, folder):
    barrier(comm)
    if comm.rank == 0:
        shutil.rmtree(folder)


def trainer_in(comm, folder, stop=3, start=None):
    """Every rank's parameter is a number of its own."""
    link = L.Linear(1, 1, initialW=start or comm.rank + 1.0)
    optimizer = optimizers.SGD(0.5).setup(link)
    iterator = chainer.iterators.SerialIterator(np.ones((2, 1), "f"), 1, shuffle=False)
    updater = training.StandardUpdater(
        iterator, optimizer, loss_func=lambda x: F.sum(link(x))
    )
    return training.Trainer(updater, (stop, "iteration"), out=folder), link


def files_in(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def snapshots(comm, replica_sets, autoload=False, trigger=(1, "iteration")):
    """The files of a snapshot, and parameters after a training that loads them."""
    folder = shared_folder(comm)
    found = []
    for start in (None, 100.0):
        trainer, link = trainer_in(comm, folder, 3 if start is None else 4, start)
        snapshot = training.extensions.snapshot(
            filename="at_{.updater.iteration}", autoload=autoload
        )
        shared = chainermn.extensions.multi_node_snapshot(comm, snapshot, replica_sets)
        trainer.extend(shared, trigger=trigger)
        trainer.run()
        barrier(comm)
        found.append((files_in(folder), link.W.array, trainer.updater.iteration))
        barrier(comm)
    finished(comm, folder)
    return found


def case_snapshot_of_each(comm):
    return snapshots(comm, [])


def case_snapshot_of_replicas(comm):
    return snapshots(comm, [range(comm.size)])


def case_snapshot_of_one_and_the_rest(comm):
    return snapshots(comm, [0])


def case_snapshot_is_loaded_by_replicas(comm):
    return snapshots(comm, [range(comm.size)], autoload=True)


def case_snapshot_is_loaded_by_each(comm):
    return snapshots(comm, list(range(comm.size)), autoload=True)


def case_snapshot_of_a_rank_that_does_not_exist(comm):
    chainermn.extensions.multi_node_snapshot(
        comm, training.extensions.snapshot(), [[comm.size]]
    )


def case_snapshot_of_sets_that_overlap(comm):
    chainermn.extensions.multi_node_snapshot(
        comm, training.extensions.snapshot(), [[0, 1], [0]]
    )


def checkpoints(comm, iterations=4, resumed=6, **options):
    """Files while and after a training, and the training that a second one resumes."""
    folder = shared_folder(comm)
    found = []
    for stop, start in ((iterations, None), (resumed, 100.0)):
        trainer, link = trainer_in(comm, folder, stop, start)
        checkpointer = chainermn.create_multi_node_checkpointer(
            name="run", comm=comm, path=folder, **options
        )
        checkpointer.maybe_load(trainer)
        began = trainer.updater.iteration, link.W.array.copy()
        trainer.extend(checkpointer, trigger=(1, "iteration"))
        trainer.run()
        found.append((began, link.W.array))
    finished(comm, folder)
    return found


def case_checkpoints(comm):
    return checkpoints(comm)


def case_checkpoints_that_are_many(comm):
    return checkpoints(comm, 12, 13, cp_interval=2, gc_interval=2)


def case_files_of_checkpoints(comm):
    folder = shared_folder(comm)
    trainer, link = trainer_in(comm, folder)
    checkpointer = chainermn.create_multi_node_checkpointer(
        name="run", comm=comm, path=folder, cp_interval=2
    )
    for iteration in range(1, 9):
        checkpointer.save(trainer, iteration)
    barrier(comm)
    files = files_in(folder), sorted(checkpointer.get_stats())
    barrier(comm)
    checkpointer.finalize()
    barrier(comm)
    left = files_in(folder)
    finished(comm, folder)
    return files, left


def case_checkpoint_statistics_before_any(comm):
    checkpointer = chainermn.create_multi_node_checkpointer("run", comm)
    return checkpointer.get_stats()


def case_checkpoint_without_a_name(comm):
    chainermn.create_multi_node_checkpointer(None, comm)


def case_nothing_to_load(comm):
    folder = shared_folder(comm)
    trainer, link = trainer_in(comm, folder)
    checkpointer = chainermn.create_multi_node_checkpointer("run", comm, path=folder)
    found = checkpointer.maybe_load(trainer), trainer.updater.iteration
    finished(comm, folder)
    return found
