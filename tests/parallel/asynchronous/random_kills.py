"""Kills random ranks, and checks that the others go on where no rank waits for all.

python -m tests.parallel.asynchronous.random_kills --kills 200

With servers, shards in shared memory and gossip the others end well, and know how many
are left. Synchronous training, local SGD and elastic averaging end with an error.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

from renga.launch import mpiexec_command, mpiexec_environment

SERVED = ("0", "2", "inf")  # by their staleness
SHARED = ("shared 2", "shared inf")
METHODS = (*SERVED, *SHARED, "dpsgd", "sgp", "adpsgd", "shared adpsgd", "gosgd")
SYNCHRONOUS = ("synchronous", "local", "elastic")
PROGRAM = pathlib.Path(__file__).with_name("killed_worker.py")
ROOT = PROGRAM.parents[3]
STEPS = 40  # of the program


def train(
    method: str, ranks: int, deaths: dict[int, int], timeout: float = 2.0
) -> None:
    """Runs the program; raises AssertionError unless the others do what they should.

    Args:
        method: a staleness or a method of gossip, in shared memory or not, or one that
            is synchronous.
        ranks: with a server as rank 0 for a staleness of shards that are not.
        deaths: of which rank after how many updates.
        timeout: the seconds after which a rank is lost. None that lives may pause for
            so long, as it may on a machine that does other things.
    """
    first, *command = mpiexec_command(ranks)
    if method not in SYNCHRONOUS:
        command.insert(0, "--enable-recovery")
    kills = [f"{rank}:{step}" for rank, step in deaths.items()]
    environment = {**mpiexec_environment(ranks), "PYTHONPATH": str(ROOT)}
    environment.update(OMP_NUM_THREADS="1", RENGA_TIMEOUT="60")
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(PROGRAM), method, folder, str(timeout), *kills]
        job = subprocess.run(
            [first, *command, *program],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        found = {
            int(path.stem): dict(np.load(path))
            for path in pathlib.Path(folder).glob("*.npz")
        }
    if method in SYNCHRONOUS:
        assert job.returncode != 0 and not found, (method, deaths, sorted(found))
        return
    assert found.keys() == set(range(ranks)) - deaths.keys(), job.stderr.decode()
    left = ranks - len(deaths)
    for rank, result in found.items():
        assert np.isfinite(result["x"]).all()
        if method in SHARED or (method in SERVED and rank > 0):
            # All have the parameters of the shards.
            np.testing.assert_array_equal(result["x"], found[max(found)]["x"])
        # Whoever pushes to servers, or sends without an answer, may not notice that a
        # rank is missing.
        if method != "gosgd" and (method not in SERVED or rank == 0):
            assert result["left"] == left, (method, deaths, rank, result["left"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    kills = 0
    while kills < arguments.kills:
        method = chance.choice(METHODS + SYNCHRONOUS)
        victims = chance.sample(range(1, 6), chance.randint(1, 4))
        deaths = {rank: chance.randrange(1, STEPS - 5) for rank in victims}
        train(method, 6, deaths, arguments.timeout)
        kills += len(deaths)
        print(f"{kills}: {method} without {sorted(deaths)}", flush=True)


if __name__ == "__main__":
    main()
