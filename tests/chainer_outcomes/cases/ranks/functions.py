"""Functions that communicate, with their gradients."""

import chainer
import chainer.functions as F
import numpy as np
from chainermn import functions as CF

LINES = """
run(CF.allgather, comm, x(2))
run(CF.allgather, comm, x(rank + 1, 2))
run(CF.allgather, comm, x(2, dtype='d'))
run(CF.allgather, comm, x(2, dtype='e'))
run(CF.gather, comm, x(2))
run(CF.gather, comm, x(2), last)
run(CF.gather, comm, x(rank + 1), root=last)
run(CF.bcast, comm, x(2))[:2]
run(CF.bcast, comm, x(2) if rank == 0 else None)
run(CF.bcast, comm, x(2) if rank == last else None, last)
run(CF.scatter, comm, [x(2) for _ in range(size)])
run(CF.scatter, comm, tuple(x(2) for _ in range(size)) if rank == 0 else None)
run(CF.scatter, comm, [x(2, dtype='d')] * size if rank == last else None, root=last)
run(CF.alltoall, comm, [x(2) for _ in range(size)])
run(CF.alltoall, comm, tuple(x(2, dtype='d') for _ in range(size)))
CF.alltoall(comm, [x(2)] * (size + 1))
CF.alltoall(comm, [])
CF.send(x(2), comm, rank)
CF.recv(comm, rank)
CF.send(x(2), comm, rank=rank, tag=1)
CF.allgather(comm, None)
CF.allgather(comm, 3)
CF.pseudo_connect(None, x(2))
CF.pseudo_connect(x(1), x(2))
CF.pseudo_connect(x(1), x(2), x(3))
CF.pseudo_connect(x(1))
CF.pseudo_connect(None)
CF.pseudo_connect(None, x(2), x(3))
"""

EXPRESSIONS = LINES


def names(comm):
    """What the expressions see."""

    def x(*shape, dtype="f"):
        n = int(np.prod(shape))
        data = np.arange(1, n + 1).reshape(shape) * (comm.rank + 1)
        return chainer.Variable(data.astype(dtype))

    return {"x": x, "run": run, "CF": CF}


def listed(values):
    return list(values) if isinstance(values, (list, tuple)) else [values]


def run(function, comm, xs, *args, **options):
    """Outputs and gradients of the sum of their squares, weighted by rank."""
    ys = function(comm, xs, *args, **options)
    found = [y for y in listed(ys) if y is not None]
    loss = sum(F.sum(y * y) for y in found) * (comm.rank + 1.0)
    loss.backward()
    gradients = [None if x is None else x.grad for x in listed(xs)]
    return type(ys).__name__, [y.array for y in found], gradients


def variable(comm, n=2):
    return chainer.Variable(np.arange(n, dtype="f") + comm.rank)


def case_there_and_back(comm):
    """Rank 0 sends to the last rank, which squares and sends back."""
    last = comm.size - 1
    x = variable(comm)
    if comm.rank == 0:
        phi = CF.send(x, comm, rank=last)
        y = CF.recv(comm, rank=last, delegate_variable=phi)
        F.sum(y).backward()
        return phi.shape, phi.array, y.array, x.grad
    if comm.rank == last:
        z = CF.recv(comm, rank=0)
        CF.send(z * z, comm, rank=0).backward()
        return z.array, z.grad
    return None


def case_several_arrays_at_once(comm):
    last = comm.size - 1
    if comm.rank == 0:
        xs = [variable(comm), variable(comm, 3)]
        CF.send(xs, comm, last, tag=1).backward()
        return [x.grad for x in xs]
    if comm.rank == last:
        ys = CF.recv(comm, 0, tag=1)
        (F.sum(ys[0]) * 2 + F.sum(ys[1] * ys[1])).backward()
        return type(ys).__name__, [y.array for y in ys]
    return None


def case_one_array_as_a_tuple(comm):
    last = comm.size - 1
    if comm.rank == 0:
        CF.send((variable(comm),), comm, last)
    if comm.rank == last:
        return type(CF.recv(comm, 0)).__name__
    return None


def case_force_tuple(comm):
    last = comm.size - 1
    if comm.rank == 0:
        CF.send(variable(comm), comm, last)
    if comm.rank == last:
        ys = CF.recv(comm, 0, force_tuple=True)
        return type(ys).__name__, [y.array for y in ys]
    return None


def case_two_messages_of_one_pair(comm):
    last = comm.size - 1
    if comm.rank == 0:
        a, b = variable(comm), variable(comm, 3)
        phi = CF.send(a, comm, last)
        (second,) = CF.pseudo_connect(phi, b)
        CF.send(second, comm, last, tag=2).backward()
        return a.grad, b.grad
    if comm.rank == last:
        a = CF.recv(comm, 0)
        b = CF.recv(comm, 0, delegate_variable=a, tag=2)
        y = F.sum(CF.pseudo_connect(b, a)[0] * 3)
        y.backward()
        return a.array, b.array
    return None


def case_connected_values(comm):
    a, b = variable(comm), variable(comm, 3)
    ys = CF.pseudo_connect(a, b, variable(comm, 1))
    (F.sum(ys[0] * ys[0]) + F.sum(ys[1])).backward()
    return type(ys).__name__, [y.array for y in ys], a.grad, b.grad


def case_gradients_through_the_ring(comm):
    x = variable(comm)
    before, after = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if comm.rank == 0:
        phi = CF.send(x * 2, comm, after)
        y = CF.recv(comm, before, delegate_variable=phi)
        F.sum(y * y).backward()
        return y.array, x.grad
    y = CF.recv(comm, before) + x
    CF.send(y, comm, after).backward()
    return y.array, x.grad


def case_half_precision_through_messages(comm):
    last = comm.size - 1
    if comm.rank == 0:
        x = chainer.Variable(np.ones(2, "e"))
        CF.send(x, comm, last).backward()
        return x.grad
    if comm.rank == last:
        y = CF.recv(comm, 0)
        F.sum(y * 3).backward()
        return y
    return None


def case_no_gradient_of_integers(comm):
    return CF.allgather(comm, chainer.Variable(np.arange(2, dtype="i")))


def case_allgather_without_backprop(comm):
    with chainer.no_backprop_mode():
        return CF.allgather(comm, variable(comm))
