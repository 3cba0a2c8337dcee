"""A few of the kills that ``random_kills.py`` makes by the hundred."""

import pytest

from tests.parallel.asynchronous.random_kills import train

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)


def test_servers_go_on_without_killed_workers():
    train("2", 4, {2: 5, 3: 20})


def test_a_killed_rank_leaves_the_shards_to_those_that_share_them():
    train("shared 2", 4, {0: 5, 3: 20})


@pytest.mark.parametrize("method", ["adpsgd", "shared adpsgd"])
def test_gossip_goes_on_without_killed_ranks(method):
    train(method, 4, {1: 12, 3: 12})


def test_local_sgd_ends_with_a_killed_rank():
    train("local", 3, {1: 6})
