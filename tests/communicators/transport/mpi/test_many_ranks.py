"""Collectives, groups and grids on 8 and 16 processes.

RENGA_RANKS=32 adds a job of so many, which takes minutes on two cores.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from renga.launch import mpiexec_command, mpiexec_environment

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)

PROGRAM = str(pathlib.Path(__file__).with_name("many_ranks.py"))
JOBS = [(8, "messages"), (16, "mpi")]
if "RENGA_RANKS" in os.environ:
    JOBS.append((int(os.environ["RENGA_RANKS"]), "mpi"))


@pytest.mark.parametrize(("ranks", "kind"), JOBS)
def test_results_of_one_process(ranks, kind):
    environment = mpiexec_environment(ranks)
    done = subprocess.run(
        [*mpiexec_command(ranks), sys.executable, PROGRAM, kind],
        env={**environment, "OMP_NUM_THREADS": "1", "RENGA_TIMEOUT": "120"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines())
    # Arrays, algorithms, objects and groups have more than 60, and each grid has 4.
    grids = 2 * len([n for n in range(1, ranks + 1) if ranks % n == 0]) + 2
    assert int(lines["checks"]) > 60 + 4 * grids
    # Python, renga and the buffers of all these calls, which no other process shares.
    assert float(lines["mebibytes"]) < 60
