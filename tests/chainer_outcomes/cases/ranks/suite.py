"""Iterators, snapshots, evaluators and communicators as ChainerMN's own tests see them."""

import warnings
from unittest.mock import MagicMock

import chainer
import chainermn
import numpy as np
from chainer.training import extensions

EXPRESSIONS = """
ordered(comm, np.arange(6, dtype='f'), 2, shuffle=False)
ordered(comm, np.arange(6, dtype='f'), 2, shuffle=True)
ordered(comm, np.arange(5, dtype='f'), 3, shuffle=True, rank_master=last)
ordered(comm, [(np.ones(2, 'f') * i, np.zeros(1, 'f')) for i in range(4)], 2, shuffle=True)
resumed(comm, False, False)
resumed(comm, True, True)
resumed(comm, False, True)
resumed(comm, True, False)
masters(comm, [])
masters(comm, [0])
masters(comm, [last])
masters(comm, [range(size)])
masters(comm, [0], filename=lambda trainer: 'snapshot')
"""


def names(comm):
    """What the expressions see."""
    return {"np": np, "ordered": ordered, "resumed": resumed, "masters": masters}


def iterator_of(comm, samples, size, shuffle, rank_master=0):
    own = chainer.iterators.SerialIterator(samples, size, shuffle=shuffle)
    return chainermn.iterators.create_multi_node_iterator(own, comm, rank_master)


def order_of(comm, iterator, rank_master=0):
    if comm.rank == rank_master:
        return iterator._state.order
    return iterator._order


def ordered(comm, samples, size, shuffle, rank_master=0):
    """Whether every rank knows the master's order of the first epoch."""
    np.random.seed(comm.rank)
    iterator = iterator_of(comm, samples, size, shuffle, rank_master)
    orders = [order_of(comm, iterator, rank_master)]
    next(iterator)
    orders.append(order_of(comm, iterator, rank_master))
    known = [orders[0]] if comm.rank == rank_master else None
    (of_master,) = comm.bcast_obj(known, root=rank_master)
    return [np.array_equal(order, of_master) for order in orders]


class Flat(chainer.serializer.Serializer):
    """Values by names, in one level."""

    def __init__(self):
        self.target = {}

    def __getitem__(self, key):
        raise NotImplementedError

    def __call__(self, key, value):
        self.target[key] = value
        return value


class Unflat(chainer.serializer.Deserializer):
    def __init__(self, target):
        self.target = target

    def __getitem__(self, key):
        raise NotImplementedError

    def __call__(self, key, value):
        return self.target[key]


def resumed(comm, saves_plain, loads_plain):
    """An iterator that goes on where another one was, of which one may be plain."""

    def new(plain):
        samples = np.arange(6, dtype="f")
        if plain:
            return chainer.iterators.SerialIterator(samples, 4, shuffle=True)
        return iterator_of(comm, samples, 4, True)

    np.random.seed(comm.rank if not saves_plain else 0)
    first, second = new(saves_plain), new(loads_plain)
    next(first)
    next(first)
    saved = Flat()
    first.serialize(saved)
    second.serialize(Unflat(saved.target))
    places = [
        (it.epoch, it.current_position, it.is_new_epoch, round(it.epoch_detail, 4))
        for it in (first, second)
    ]
    known = {"current_position", "epoch", "is_new_epoch", "order"}
    return places, sorted(known & set(saved.target))


def masters(comm, replica_sets, **options):
    """Whether this rank writes, and the ending of its file."""
    own = extensions.snapshot(**options)
    shared = chainermn.extensions.multi_node_snapshot(comm, own, replica_sets)
    name = shared.snapshot.filename
    text = name if isinstance(name, str) else name(None)
    return shared.is_master, text.rpartition(".")[2], shared.comm is comm


def case_rules_that_are_mocks(comm):
    """The first update is of replaced parameters; gradients keep their arrays."""
    link = chainer.Link()
    with link.init_scope():
        link.w = chainer.Parameter(np.full(2, comm.rank, "f"))
    link.w.grad = np.ones(2, "f")
    plain = chainer.GradientMethod()
    plain.create_update_rule = MagicMock
    optimizer = chainermn.create_multi_node_optimizer(plain, comm).setup(link)
    optimizer.update()
    found = [plain.t, link.w.array.tolist(), link.w.update_rule.update.call_count]
    link.w.grad[:] = comm.rank
    optimizer.update()
    return [*found, plain.t, link.w.update_rule.update.call_count, link.w.grad]


def case_warnings_of_old_names(comm):
    link = chainer.links.Linear(1, 1)
    link.cleargrads()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comm.allreduce_grad(link)
    return [warning.category for warning in caught]


def case_devices(comm):
    from chainermn.testing import device, get_device

    found = [
        get_device(),
        get_device(None, False),
        device.get_device(use_chainerx=False),
    ]
    return [str(each) for each in found]


def case_nodes_of_own_communicators(comm):
    class Own(chainermn.communicators.mpi_communicator_base.MpiCommunicatorBase):
        def multi_node_mean_grad(self, model, zero_fill=False):
            pass

    if not hasattr(comm, "mpi_comm"):  # ranks are threads
        return comm.rank, comm.size, comm.intra_rank, comm.inter_rank
    own = Own(comm.mpi_comm)
    return own.rank, own.size, own.intra_rank, own.inter_rank


def case_batched_copies(comm):
    found = [comm.batched_copy, comm.get_config("batched_copy")]
    comm.set_config("batched_copy")
    found += [comm.batched_copy, comm.get_config("batched_copy")]
    comm.set_config("batched_copy", value=False)
    return found + [comm.batched_copy]


def case_names_of_checkpoints(comm):
    own = chainermn.create_multi_node_checkpointer(name="mine", comm=comm)
    written = own._filenames([3, 12])
    return written, own._parse_filenames([*written, "other.0.1", "mine.0"])


def case_statistics_of_checkpoints(comm):
    own = chainermn.create_multi_node_checkpointer(name="mine", comm=comm)
    own.stats.start()
    own.stats.end()
    return isinstance(own.get_stats(), str), own.stats.report() == own.get_stats()


def case_results_of_batches(comm):
    seen = []

    def target(*args, **kwargs):
        seen.append((args, kwargs))
        return 5

    iterator = chainer.iterators.SerialIterator([1], 1, repeat=False, shuffle=False)
    own = chainermn.extensions.GenericMultiNodeEvaluator(comm, iterator, target)
    return own.calc_local(1, b=2), seen


def case_messages_of_mpi(comm):
    if not hasattr(comm, "mpi_comm"):  # ranks are threads
        return {"a": [comm.size]} if comm.rank == 0 else None
    if comm.rank == 0:
        return comm.mpi_comm.recv(source=comm.size - 1)
    if comm.rank == comm.size - 1:
        comm.mpi_comm.ssend({"a": [comm.size]}, dest=0)
    return None
