"""A few of the random kills that ``random_kills.py`` makes by the hundred."""

import random

import pytest

from tests.communicators.transport.mpi.random_kills import kill_once, last_complete

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)


def test_killed_jobs_end_and_the_last_checkpoint_loads(tmp_path):
    chance = random.Random(5)
    for _ in range(10):
        kill_once(tmp_path, chance)
        if last_complete(tmp_path) > 0:
            break
    else:
        pytest.fail("no job lived for as long as a checkpoint takes")
    for _ in range(2):  # each goes on from the last complete checkpoint
        kill_once(tmp_path, chance)


def test_ranks_end_with_their_launcher(tmp_path):
    kill_once(tmp_path, random.Random(1), launcher=1.0)
