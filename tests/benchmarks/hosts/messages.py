"""Messages that arrive while both ranks compute.

    python -m tests.benchmarks.hosts.messages  # as root: makes the hosts
    python -m tests.benchmarks.hosts.messages --rank ...  # what runs on each rank

Rank 0 sends an array that rank 1 has posted a receive for; then both multiply matrices,
about 20 ms each time, and call nothing of the communicator. Prints the median
milliseconds from the start of the send until the last element is there, beside those
that the link takes at its rate; if it has not come when the products are over, the time
includes them and the wait. The hosts are network namespaces
(tests/communicators/transport/mpi/hosts.py).
"""

from __future__ import annotations

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np

SIZES = (4_000_000, 60_000_000)
ROUNDS = 5


def compute(seconds: float) -> Iterator[None]:
    """Multiplies matrices for so long, about 20 ms at a time."""
    x = np.ones((900, 900), np.float32)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        x @ x
        yield


def arrival(comm, size: int, seconds: float) -> float:
    """Seconds until an array from rank 0 is on rank 1, which computes meanwhile."""
    x = np.zeros(size // 4, np.float32)
    if comm.rank == 0:
        x[:] = 1
    else:
        work = comm.recv(0, out=x, wait=False)
    comm.barrier()
    begun = time.perf_counter()
    if comm.rank == 0:
        work = comm.send(x, 1, wait=False)
    arrived = None
    for _ in compute(seconds):
        if arrived is None and comm.rank == 1 and x[-1]:
            arrived = time.perf_counter()
    work.wait()
    begun, _ = comm.allgather_obj(begun)  # one clock: both ranks are on this machine
    return float(comm.bcast_obj((arrived or time.perf_counter()) - begun, root=1))


def play_rank(rate: float) -> None:
    """Prints a row of the table on rank 0."""
    from renga.distributed import create_communicator

    comm = create_communicator("mpi")
    cells = []
    for size in SIZES:
        link = size * 8 / rate
        times = [arrival(comm, size, 0.4 + 1.5 * link) for _ in range(ROUNDS)]
        cells.append(f"{link * 1e3:>12.1f}{statistics.median(times) * 1e3:>12.1f}")
    if comm.rank == 0:
        print("row" + "".join(cells), flush=True)


def report(name: str, done: subprocess.CompletedProcess[str]) -> None:
    rows = [line for line in done.stdout.splitlines() if line.startswith("row")]
    assert done.returncode == 0 and rows, done.stdout
    print(f"{name:>12}{rows[0][3:]}", flush=True)


def main() -> None:
    from renga.launch import mpiexec_command, mpiexec_environment
    from tests.communicators.transport.mpi.hosts import hosts, missing

    print(f"{'':>12}" + "".join(f"{'link':>12}{size // 10**6:>9} MB" for size in SIZES))
    command = [*mpiexec_command(2), sys.executable, __file__, "--rank", "1e12"]
    environment = {**mpiexec_environment(2), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    report("one host", done)
    if missing():
        sys.exit(f"messages: {missing()}")
    with tempfile.TemporaryDirectory() as name:
        with hosts(2, pathlib.Path(name)) as pair:
            for rate in ("10", "1", "0.1"):
                pair.limit(int(float(rate) * 1000))
                done = pair.run(__file__, "--rank", str(float(rate) * 1e9), timeout=200)
                report(f"{rate} Gbit/s", done)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        play_rank(float(sys.argv[2]))
    else:
        main()
