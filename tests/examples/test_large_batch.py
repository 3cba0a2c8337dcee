"""Batches eight times as large reach the accuracy of the first example."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from renga.launch import mpiexec_command, mpiexec_environment

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "03_large_batch"
SCRIPT /= "train_digits_large_batch.py"


@pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec")
def test_a_large_batch_reaches_the_accuracy_of_a_small_one(tmp_path):
    command = [*mpiexec_command(2), sys.executable, str(SCRIPT)]
    env = mpiexec_environment(2) | {"OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, "--out", str(tmp_path)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    last = json.loads((tmp_path / "log").read_text())[-1]
    assert last["iteration"] == 75  # the first example takes 300
    # Batches of 48 reach 0.980 to 0.986 in ten epochs, by seed.
    assert last["validation/main/accuracy"] >= 0.98
