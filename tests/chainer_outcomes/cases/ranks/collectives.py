"""Collectives of communicators: dtypes, shapes, roots, arguments that are refused."""

import chainer
import numpy as np

LINES = """
(comm.rank, comm.size, comm.intra_rank, comm.intra_size, comm.inter_rank, comm.inter_size)
comm.allreduce(x())
comm.allreduce(x(0, 2))
comm.allreduce(x(2, 3).T)
comm.allreduce(x(6)[::-2])
comm.allreduce(np.full(3, rank - 1, 'i')).dtype
comm.allreduce(2.5)
comm.allreduce(None)
comm.allreduce([1, 2])
comm.allreduce([x(2), x(3)])
comm.allreduce((x(2), x(2)))
comm.allreduce([x(2), x(2, dtype='d')])
comm.allreduce('text')
comm.allreduce(chainer.Variable(x(2)))
comm.allreduce(np.array([None]))
comm.allgather(x(3))
comm.allgather(x())
comm.allgather(x(rank + 1, 2))
comm.allgather(x(2 * rank))
comm.allgather(x(2, 3).T)
comm.allgather((x(2), x(2)))
comm.allgather(None)
comm.allgather(3)
comm.gather(x(2))
comm.gather(x(2), root=last)
comm.gather(x(2), last)
comm.gather(x(rank, 2))
comm.gather(x(3, 2).T, root=last)
comm.gather(x())
comm.gather(None)
comm.gather('text')
comm.bcast(x(2, 2))
comm.bcast(x(2, 2), root=last)
comm.bcast(x(2) if rank == 0 else None)
comm.bcast(None if rank == 0 else x(3), last)
comm.bcast(x(2, 3).T.copy() if rank == 0 else None)
comm.bcast(x() if rank == 0 else None)
comm.bcast(x(0, 3) if rank == 0 else None)
comm.bcast(x(2) if rank == 0 else x(7))
comm.scatter(tuple(x(2) + i for i in range(size)))
comm.scatter([x(2) + i for i in range(size)])
comm.scatter([x(i + 1, 2) for i in range(size)])
comm.scatter([x(2) + i for i in range(size)] if rank == last else None, root=last)
comm.scatter(x(size, 2) if rank == 0 else None)
comm.scatter(x(size, 1) if rank == 0 else 'ignored')
comm.scatter([x() for i in range(size)])
comm.alltoall(tuple(x(2) + i for i in range(size)))
comm.alltoall([x(2, 1) + i for i in range(size)])
comm.alltoall([x(rank + 1, i) for i in range(size)])
comm.alltoall([x() + i for i in range(size)])
comm.alltoall([x(3, 2).T for i in range(size)])
comm.alltoall([x(2)] * (size + 1))
comm.alltoall([])
comm.alltoall(x(size, 2))
comm.alltoall(None)
comm.alltoall([x(2)] * (size - 1) + [x(2, dtype='d')])
comm.alltoall([x(2)] * (size - 1) + [3])
"""

# Not float16, of which ChainerMN leaves half of the result as the memory was.
DTYPES = "?bBhHiIlLfdgFO"
# Ranks that are no root would wait forever where the root refuses an array.
WITH_ROOT = "ilfd"


def calls_of_dtypes():
    for dtype in DTYPES:
        x = f"ones(2, dtype='{dtype}')"
        yield f"comm.allreduce({x})"
        yield f"comm.allgather({x})"
        yield f"comm.gather({x})"
        yield f"comm.alltoall([{x}] * size)"
        if dtype in WITH_ROOT:
            yield f"comm.bcast({x})"
            yield f"comm.scatter([{x}] * size)"


EXPRESSIONS = LINES + "\n".join(calls_of_dtypes())


def ones(*shape, **dtype):
    return np.ones(shape, **dtype)


def names(comm):
    """What the expressions see."""

    def x(*shape, dtype="f"):
        n = int(np.prod(shape))
        y = np.arange(1, n + 1, dtype=dtype).reshape(shape)
        y *= comm.rank + 1  # a product without axes would be no array
        return y

    return {"x": x, "ones": ones, "np": np, "chainer": chainer}


def parts(comm):
    """Ranks, sizes and a sum in the communicators that a split makes."""
    return comm.rank, comm.size, comm.allreduce(np.ones(1, "f"))


def case_split_by_parity(comm):
    return parts(comm.split(comm.rank % 2, comm.rank))


def case_split_in_reverse(comm):
    part = comm.split(0, -comm.rank)
    return part.bcast(np.full(1, comm.rank, "f")), parts(part)


def case_split_with_equal_keys(comm):
    return parts(comm.split(0, 0))


def case_split_each_alone(comm):
    return parts(comm.split(comm.rank, 0))


def case_split_twice(comm):
    return parts(comm.split(0, -comm.rank).split(comm.rank % 2, comm.rank))


def case_split_with_keywords(comm):
    return parts(comm.split(color=1, key=comm.rank))


def case_results_are_new_arrays(comm):
    x = np.ones(2, "f")
    ys = comm.allreduce(x), comm.allgather(x)[comm.rank], comm.bcast(x)
    for y in ys:
        y += 1
    return x, [y is x for y in ys]


def case_configuration(comm):
    before = comm.get_config("batched_copy")
    comm.set_config("batched_copy", True)
    after = comm.get_config("batched_copy")
    comm.set_config("batched_copy")
    again = comm.get_config(name="batched_copy")
    comm.set_config("batched_copy", False)
    return before, after, again, comm.get_config("batched_copy")


def case_unknown_configuration(comm):
    comm.set_config("unknown", 1)


def case_unknown_configuration_is_read(comm):
    return comm.get_config("unknown")


def case_all_of_the_configuration(comm):
    return comm.get_config()


def case_configuration_with_unknown_keywords(comm):
    comm.set_config("batched_copy", True, unknown=1)
    return comm.get_config("batched_copy")


def case_attributes_outside_of_a_scope(comm):
    found = comm.within_config_scope
    with comm.config_scope():
        return found, comm.within_config_scope


def case_finalize(comm):
    return comm.split(0, comm.rank).finalize()


def case_methods_that_are_deprecated(comm):
    link = chainer.links.Linear(2, 1, initialW=comm.rank + 1.0)
    link.W.grad = np.full((1, 2), comm.rank, "f")
    link.b.grad = np.zeros(1, "f")
    comm.broadcast_data(link)
    comm.allreduce_grad(link)
    return link.W.array, link.W.grad
