"""Ranks whose calls differ: all raise, and nothing is moved."""

import os

import numpy as np
import pytest

from renga.communicators import local
from renga.utils.type_check import InvalidType
from tests.communicators.errors.mismatches import play

ROUNDS = int(os.environ.get("RENGA_FUZZ_ROUNDS", 60))
SEED = int(os.environ.get("RENGA_FUZZ_SEED", 5))


def test_random_calls(ranks):
    results = ranks(lambda comm: play(comm, ROUNDS, SEED))
    assert 0 < results[0] <= ROUNDS


def of_rank(rank, *values):
    return values[min(rank, len(values) - 1)]


# A collective is called so on rank 0, and, after it, on the others.
CASES = {
    "all_gather of other shapes": lambda comm, r: comm.all_gather(np.ones(r + 1)),
    "all_gather of other dtypes": lambda comm, r: comm.all_gather(
        np.ones(6, of_rank(r, "f4", "i4"))
    ),
    "all_gather of other large shapes": lambda comm, r: comm.all_gather(
        np.ones(200_000 + 100_000 * r)
    ),
    "all_to_all of other shapes": lambda comm, r: comm.all_to_all(
        np.ones((comm.size, of_rank(r, 2, 3)))
    ),
    "all_to_all of other dtypes": lambda comm, r: comm.all_to_all(
        np.ones((comm.size, 2), of_rank(r, "f4", "i4"))
    ),
    "reduce_scatter of other dtypes": lambda comm, r: comm.reduce_scatter(
        np.ones((comm.size, 2), of_rank(r, "f4", "i4"))
    ),
    "other reductions": lambda comm, r: comm.all_reduce(
        np.ones(3), of_rank(r, "sum", "max")
    ),
    "lists of other shapes": lambda comm, r: comm.all_reduce(
        of_rank(r, [np.ones((3, 4)), np.ones(5)], [np.ones(5), np.ones((3, 4))])
    ),
    "lists of other lengths": lambda comm, r: comm.all_reduce(
        of_rank(r, [np.ones(6)], [np.ones(2), np.ones(4)])
    ),
    "other roots of gather": lambda comm, r: comm.gather(np.ones(2), of_rank(r, 0, 1)),
    "other roots of scatter": lambda comm, r: comm.scatter(
        [np.ones(2)] * comm.size, of_rank(r, 0, 1)
    ),
    "an object and an array": lambda comm, r: (
        comm.allgather_obj("a") if r else comm.allgather(np.ones(3))
    ),
    "a split and a barrier": lambda comm, r: comm.split(0, 0) if r else comm.barrier(),
    "windows of other sizes": lambda comm, r: comm.window(of_rank(r, 8, 9)),
    "other algorithms' all_reduce": lambda comm, r: comm.all_reduce(
        np.ones(of_rank(r, 5000, 5001))
    ),
}


def raise_of_a_mismatch(comm, call):
    with pytest.raises(InvalidType, match="expected the same call") as raised:
        call(comm, comm.rank)
    texts = comm.allgather_obj(str(raised.value))
    assert len(set(texts)) == 1
    assert "on rank 0" in texts[0] and "on rank 1" in texts[0]
    assert comm.all_reduce(np.ones(3)).tolist() == [comm.size] * 3


def test_mismatch_raises_on_every_rank(ranks):
    def act(comm):
        for call in CASES.values() if comm.size > 1 else ():
            raise_of_a_mismatch(comm, call)

    ranks(act)


@pytest.mark.parametrize("algorithm", ["whole", "ring", "rabenseifner"])
def test_mismatch_raises_with_every_algorithm(ranks, algorithm):
    def act(comm):
        comm = comm.split(0, comm.rank)
        comm.set_config("all_reduce_algorithm", value=algorithm)
        if comm.size > 1:
            with pytest.raises(InvalidType, match="expected the same call"):
                comm.all_reduce(np.ones(2000 + comm.rank))
        return comm.all_reduce(np.ones(2000))[0], comm.size

    assert all(total == size for total, size in ranks(act))


def test_mismatch_of_more_ranks_than_exchange_first_messages():
    def act(comm):
        with pytest.raises(InvalidType, match="expected the same call.*on rank 17"):
            comm.all_reduce(np.ones(3 + (comm.rank == 17)))
        return float(comm.all_reduce(np.ones(3))[0])

    assert local.run(act, ranks=18, shared_memory=False) == [18.0] * 18
