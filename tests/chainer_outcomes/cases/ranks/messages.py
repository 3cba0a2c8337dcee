"""Messages of arrays and of objects."""

import chainer
import numpy as np
from mpi4py import MPI

LINES = """
comm.bcast_obj(at(0, {'a': [1, 2.5, None], 'b': ('x', rank)}))
comm.bcast_obj(at(last, 'rank of %d' % rank), root=last)
comm.bcast_obj(at(0, 'text'), max_buf_len=1)
comm.bcast_obj(at(last, list(range(100))), max_buf_len=7, root=last)
comm.bcast_obj(at(0, np.arange(3)))
comm.gather_obj((rank, 'x' * rank))
comm.gather_obj(rank, root=last)
comm.gather_obj(None)
comm.gather_obj(np.full(rank, rank))
comm.allreduce_obj(rank + 1)
comm.allreduce_obj(1.5)
comm.allreduce_obj([rank])
comm.allreduce_obj('x' * (rank + 1))
comm.allreduce_obj((rank, 2))
comm.allreduce_obj(np.full(2, rank))
comm.allreduce_obj(True)
comm.send_obj(lambda: 1, 0)
comm.send(None, 0, 0)
comm.send([1], 0, 0)
comm.send(x('?'), 0, 0)
comm.send([x('f'), x('d')], 0, 0)
comm.send(chainer.Variable(x('f')), 0, 0)
comm.send('text', 0, 0)
ring(comm, x('i'))
ring(comm, x('l'))
ring(comm, x('e'))
ring(comm, x('f'))
ring(comm, x('d'))
ring(comm, np.array(rank, 'f'))
ring(comm, np.zeros((0, 2), 'f'))
ring(comm, x('f')[::-1])
ring(comm, np.arange(6, dtype='f').reshape(2, 3).T)
ring(comm, (x('f'), x('f')[1:]))
ring(comm, [x('d')])
ring(comm, [x('e'), x('e')])
ring_of_objects(comm, {'rank': rank})
ring_of_objects(comm, None)
ring_of_objects(comm, x('e'))
ring_of_objects(comm, ['x' * 1000, rank])
"""

EXPRESSIONS = LINES


def names(comm):
    """What the expressions see."""

    def x(dtype):
        return (np.arange(3) * (comm.rank + 1)).astype(dtype)

    def at(root, value):
        return value if comm.rank == root else None

    return {
        **{"x": x, "at": at, "np": np, "chainer": chainer},
        **{"ring": ring, "ring_of_objects": ring_of_objects},
    }


def neighbours(comm):
    return (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size


def ring(comm, data):
    """Rank 0 receives last, so that no two ranks wait for each other."""
    before, after = neighbours(comm)
    if comm.rank == 0:
        comm.send(data, after, 3)
        return comm.recv(before, 3)
    received = comm.recv(before, 3)
    comm.send(data, after, 3)
    return received


def ring_of_objects(comm, data):
    before, after = neighbours(comm)
    if comm.rank == 0:
        comm.send_obj(data, after)
        return comm.recv_obj(before)
    received = comm.recv_obj(before)
    comm.send_obj(data, after)
    return received


def from_zero_to_last(comm, send, receive):
    if comm.rank == 0:
        return send(comm.size - 1)
    if comm.rank == comm.size - 1:
        return receive(0)
    return None


def case_object_of_any_tag(comm):
    return from_zero_to_last(
        comm, lambda to: comm.send_obj("tagged", to, tag=5), comm.recv_obj
    )


def case_objects_in_order_of_tags(comm):
    def send(to):
        for tag in (1, 2, 1):
            comm.send_obj((tag, to), to, tag=tag)

    def receive(source):
        return [comm.recv_obj(source, tag=tag) for tag in (1, 1, 2)]

    return from_zero_to_last(comm, send, receive)


def case_objects_without_tags_in_order(comm):
    def send(to):
        for tag in (4, 0, 2):
            comm.send_obj(tag, to, tag=tag)

    def receive(source):
        return [comm.recv_obj(source) for _ in range(3)]

    return from_zero_to_last(comm, send, receive)


def case_objects_of_any_source(comm):
    if comm.rank > 0:
        return comm.send_obj(comm.rank * 10, 0, tag=comm.rank)
    return sorted(comm.recv_obj(MPI.ANY_SOURCE) for _ in range(comm.size - 1))


def case_status_of_an_object(comm):
    def receive(source):
        status = MPI.Status()
        found = comm.recv_obj(source, status)
        return found, status.Get_source(), status.Get_tag()

    return from_zero_to_last(comm, lambda to: comm.send_obj("x", to, tag=7), receive)


def case_status_of_any_source(comm):
    if comm.rank > 0:
        return comm.send_obj("x", 0, tag=comm.rank + 4)
    found = []
    for _ in range(comm.size - 1):
        status = MPI.Status()
        comm.recv_obj(MPI.ANY_SOURCE, status=status)
        found.append((status.source, status.tag))
    return sorted(found)


def case_arrays_of_several_tags(comm):
    def send(to):
        for tag in (1, 2):
            comm.send(np.full(tag, tag, "f"), to, tag)

    def receive(source):
        return [comm.recv(source, tag) for tag in (1, 2)]

    return from_zero_to_last(comm, send, receive)


def case_arrays_between_objects(comm):
    def send(to):
        comm.send_obj("before", to)
        comm.send((np.ones(2, "d"), np.zeros((1, 2), "d")), to, 0)
        comm.send_obj("after", to)

    def receive(source):
        return comm.recv_obj(source), comm.recv(source, 0), comm.recv_obj(source)

    return from_zero_to_last(comm, send, receive)


def case_arrays_with_keywords(comm):
    return from_zero_to_last(
        comm,
        lambda to: comm.send(data=np.ones(2, "f"), dest=to, tag=1),
        lambda source: comm.recv(source=source, tag=1),
    )


def case_mean_gradients_of_a_split(comm):
    part = comm.split(comm.rank % 2, comm.rank)
    link = chainer.links.Linear(1, 1, nobias=True)
    link.W.grad = np.full((1, 1), comm.rank, "f")
    part.multi_node_mean_grad(link)
    return link.W.grad
