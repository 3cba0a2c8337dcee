"""A stage that is killed ends the job; the next one goes on from the snapshot."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest

from renga.launch import mpiexec_command, mpiexec_environment
from renga.optimizers import MomentumSGD
from tests.communicators.transport.mpi.random_kills import processes, wait_until
from tests.parallel.pipeline import killed_pipeline, networks, oracles

RANKS = 3
ROOT = Path(__file__).parents[3]
SECONDS = 10  # from the kill to the end of the job


@pytest.fixture
def job(tmp_path):
    """Starts the job; its process, and a function that gives the ranks' processes."""
    pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
    started = []

    def start():
        mark = uuid.uuid4().hex
        environment = {**mpiexec_environment(RANKS), "RENGA_TEST_JOB": mark}
        environment["OMP_NUM_THREADS"] = "1"
        command = [*mpiexec_command(RANKS), sys.executable, "-m"]
        with open(tmp_path / "output", "wb") as output:
            process = subprocess.Popen(
                [*command, killed_pipeline.__name__, str(tmp_path)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        return process, lambda: {rank: pid for pid, rank in processes(mark).items()}

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()


def iterations(folder: Path) -> list[int]:
    """Of which there are snapshots."""
    return [int(path.name.split("_")[-1]) for path in folder.glob("snapshot_iter_*")]


@pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec")
def test_a_killed_stage_ends_the_job_which_resumes_bit_by_bit(job, tmp_path):
    process, rank_processes = job()
    output = tmp_path / "output"

    def has_trained():
        assert process.poll() is None, output.read_text()
        return max(iterations(tmp_path), default=0) >= 3

    wait_until(has_trained, 120, "three iterations")
    os.kill(rank_processes()[0], signal.SIGKILL)
    wait_until(lambda: process.poll() is not None, SECONDS, "the end of the job")
    assert process.returncode != 0
    wait_until(lambda: not rank_processes(), SECONDS, "no process is left")
    last = max(iterations(tmp_path))
    assert 3 <= last < killed_pipeline.ITERATIONS

    process, _ = job()
    assert process.wait(120) == 0, output.read_text()
    assert int((tmp_path / "begun").read_text()) == last
    batches = killed_pipeline.batches()
    expected = oracles.accumulated(
        networks.Residual(),
        MomentumSGD(0.01),
        [batches[i % len(batches)] for i in range(killed_pipeline.ITERATIONS)],
        2,
    )
    with np.load(tmp_path / "model.npz") as found:
        assert sorted(found) == sorted(path[1:] for path in expected)
        for path, x in expected.items():
            np.testing.assert_array_equal(found[path[1:]], x, err_msg=path)
