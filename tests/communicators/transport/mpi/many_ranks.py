"""Every collective, group and grid on this job's ranks, beside numbers of one process.

Rank 0 prints the number of checks and the private memory of the rank that has most.
Sums are of integers and exact, so that results are compared without a tolerance.
"""

from __future__ import annotations

import sys

import numpy as np

import renga
import renga.links as L
from renga.communicators import create_communicator
from renga.links.parallel import spatial
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.process_grid import requestable_grids

ALGORITHMS = ("all_gather", "direct", "recursive_doubling", "rabenseifner")
ALGORITHMS += ("tree", "torus", "ring")


class Checks:
    """The comparisons of one rank."""

    def __init__(self):
        self.count = 0

    def equal(self, y, expected, within=0):
        np.testing.assert_allclose(y, expected, rtol=0, atol=within)
        self.count += 1


def operand(rank, shape, dtype="float32"):
    return np.random.RandomState(rank).randint(-9, 9, shape).astype(dtype)


def array(seed, *shape):
    return np.random.RandomState(seed).normal(size=shape)


def all_operands(ranks, shape, dtype="float32"):
    return np.stack([operand(rank, shape, dtype) for rank in ranks])


def check_arrays(comm, ranks, checks, n):
    """The collectives of arrays; ``ranks`` are the group's ranks in the job."""
    mine, x = comm.rank, operand(ranks[comm.rank], n)
    xs = all_operands(ranks, n)
    checks.equal(comm.all_reduce(x), xs.sum(0))
    checks.equal(comm.all_reduce(x, "max"), xs.max(0))
    checks.equal(comm.all_gather(x), xs)
    rows = all_operands(ranks, (comm.size, n))
    checks.equal(comm.reduce_scatter(rows[mine]), rows.sum(0)[mine])
    checks.equal(comm.all_to_all(rows[mine]), rows[:, mine])
    for root in {0, comm.size - 1}:
        checks.equal(comm.broadcast(x.copy(), root), xs[root])
        checks.equal(comm.bcast(x if mine == root else None, root), xs[root])
    parts = [operand(rank, 3 + i) for i, rank in enumerate(ranks)]
    for y, expected in zip(comm.allgather(parts[mine]), parts):
        checks.equal(y, expected)


def check_objects(comm, ranks, checks):
    """Those of objects, and messages around the ring of ranks."""
    mine, last = comm.rank, comm.size - 1
    assert comm.allgather_obj(ranks[mine]) == ranks
    assert comm.bcast_obj(ranks if mine == last else None, root=last) == ranks
    everyone = list(range(comm.size)) if mine == last else None
    assert comm.gather_obj(mine, last) == everyone
    assert comm.scatter_obj(ranks if mine == 0 else None) == ranks[mine]
    assert comm.allreduce_obj(mine) == last * comm.size // 2
    before, after = (mine - 1) % comm.size, (mine + 1) % comm.size
    work = comm.send(operand(mine, 5), after, tag=3, wait=False)
    checks.equal(comm.recv(before, tag=3), operand(before, 5))
    work.wait()
    checks.count += 5


def check_grids(comm, checks):
    """A layer and its gradients on all grids of channels, and all grids of pixels."""
    size = comm.size
    x, gy = array(1, 2, 2 * size, size, 16), array(2, 2, size, size, 16)
    weight = dict(initialW=array(3, size, 2 * size, 3, 3), initial_bias=array(4, size))
    channels = (2 * size, size, 3)
    expected = gradients(L.Convolution2D(*channels, pad=1, **weight), x, gy)
    for grid in requestable_grids(size):
        layer = ParallelConvolution2D(
            comm, *channels, pad=1, algorithm=grid.name, **weight
        )
        y, gx, *own = gradients(layer, x, gy)
        whole = [p.whole(g) for p, g in zip((layer.W, layer.b), own)]
        for found, wanted in zip((y, gx, *whole), expected):
            checks.equal(found, wanted, 1e-9)
    for rows in [n for n in range(1, size + 1) if size % n == 0]:
        grid = spatial.SpatialGrid(comm, (rows, size // rows))
        layer = spatial.SpatialConvolution2D(grid, *channels, pad=1, **weight)
        parts = [spatial.scatter_image(grid, a).array for a in (x, gy)]
        y, gx, *whole = gradients(layer, *parts)
        y, gx = (spatial.gather_image(grid, a).array for a in (y, gx))
        for found, wanted in zip((y, gx, *whole), expected):
            checks.equal(found, wanted, 1e-9)


def gradients(layer, x, gy):
    """The output and the gradients of x, W and b."""
    x = renga.Variable(x)
    y = layer(x)
    y.grad = gy
    layer.cleargrads()
    y.backward()
    return y.array, x.grad, layer.W.grad, layer.b.grad


def private_mebibytes():
    """What this process has in memory and shares with no other one."""
    with open("/proc/self/smaps_rollup") as file:
        lines = dict(line.split(":", 1) for line in list(file)[1:])
    kinds = ("Private_Clean", "Private_Dirty")
    return sum(int(lines[kind].split()[0]) for kind in kinds) / 1024


def main():
    comm = create_communicator(sys.argv[1])
    checks, everyone = Checks(), list(range(comm.size))
    # The lengths go from less than one element a rank to one that is cut among all
    # ranks.
    for n in (1, 5, 10_007):
        check_arrays(comm, everyone, checks, n)
    x, xs = operand(comm.rank, 1000), all_operands(everyone, 1000)
    for algorithm in ALGORITHMS:
        comm.set_config("all_reduce_algorithm", algorithm)
        checks.equal(comm.all_reduce(x), xs.sum(0))
    comm.set_config("all_reduce_algorithm", None)
    check_objects(comm, everyone, checks)
    for groups in (2, 3):
        color = comm.rank % groups
        group = comm.split(color, -comm.rank)  # in the opposite order
        ranks = everyone[color::groups][::-1]
        check_arrays(group, ranks, checks, 1003)
        check_objects(group, ranks, checks)
    with renga.using_config("dtype", np.float64):
        check_grids(comm, checks)
    used = max(comm.allgather_obj(private_mebibytes()))
    if comm.rank == 0:
        print("checks", checks.count)
        print("mebibytes", used)


if __name__ == "__main__":
    main()
