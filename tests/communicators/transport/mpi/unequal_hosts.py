"""An all-reduce over hosts with several ranks each, and what leaves the first one.

Every rank checks the bits. Rank 0 prints how many times the vector has left its host,
by the algorithm that is chosen and by messages of all ranks.
"""

import pathlib
import time

import numpy as np

from renga.distributed import create_communicator
from tests.communicators.operands import data, in_rank_order


def sent_bytes():
    lines = pathlib.Path("/proc/self/net/dev").read_text().splitlines()
    return sum(int(s.split(":")[1].split()[8]) for s in lines[2:] if " lo:" not in s)


SIZE, PERIOD = 6_000_000, 59_999  # a prime number: no two parts of a vector are alike

comm = create_communicator("mpi")
operands = [data(r, PERIOD, "float32") for r in range(comm.size)]
x = np.resize(operands[comm.rank], SIZE)
expected = np.resize(in_rank_order(operands, "sum"), SIZE)
comm.all_reduce(x)  # measures the network, which long vectors keep busy on any host
for name, algorithm in (("vectors", ""), ("messages", "direct")):
    comm.set_config("all_reduce_algorithm", value=algorithm)
    comm.barrier()
    before, begun = sent_bytes(), time.perf_counter()
    y = comm.all_reduce(x)
    seconds = time.perf_counter() - begun
    comm.barrier()
    np.testing.assert_array_equal(y, expected)
    if comm.rank == 0:
        times = (sent_bytes() - before) / x.nbytes
        print(name, f"{times:.2f} in {seconds:.3f} s", flush=True)
