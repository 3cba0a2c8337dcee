"""Jobs over TCP between hosts that are network namespaces."""

import pathlib
import time

import numpy as np
import pytest

from tests.communicators.transport.mpi.hosts import hosts, missing

pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "present")

PROGRAM = str(pathlib.Path(__file__).with_name("data_parallel_training.py"))


def serial_result():
    """The same training in float64, by hand: y = x W^T + b, momentum 0.9."""
    random = np.random.RandomState(0)
    x = random.normal(size=(24, 8)).astype("float32").astype("float64")
    t = random.normal(size=(24, 3)).astype("float32").astype("float64")
    parts = [random.normal(size=(3, 8)).astype("float32").astype("float64")]
    parts.append(np.zeros(3))
    speeds = [np.zeros((3, 8)), np.zeros(3)]
    for _ in range(10):
        gy = 2 * (x @ parts[0].T + parts[1] - t) / t.size
        for part, speed, g in zip(parts, speeds, [gy.T @ x, gy.sum(0)]):
            speed *= 0.9
            speed -= 0.05 * g
            part += speed
    return np.concatenate([parts[0].ravel(), parts[1]])


def words(output, first):
    lines = [line.split() for line in output.replace("\0", "").splitlines()]
    return next(line[1:] for line in lines if line[:1] == [first])


@pytest.mark.parametrize(
    "count, ranks_each, kind",
    [(2, 1, "mpi"), (3, 1, "flat"), (2, 2, "hierarchical")],
)
def test_training_equals_one_process(tmp_path, count, ranks_each, kind):
    with hosts(count, tmp_path) as some:
        done = some.run(PROGRAM, kind, ranks_each=ranks_each)
    assert done.returncode == 0, done.stdout
    placement = [str(count * ranks_each), str(ranks_each), str(count)]
    assert words(done.stdout, "placement") == placement
    values = [float.fromhex(word) for word in words(done.stdout, "parameters")]
    np.testing.assert_allclose(values, serial_result(), rtol=0, atol=2e-6)


def test_sharded_parameters_are_gathered_from_other_hosts(tmp_path):
    """Also by rank 0 alone, when the other rank's program has come to its end."""
    with hosts(2, tmp_path) as some:
        done = some.run(PROGRAM, "mpi", "shard", ranks_each=1)
    assert done.returncode == 0, done.stdout
    values = [float.fromhex(word) for word in words(done.stdout, "parameters")]
    np.testing.assert_allclose(values, serial_result(), rtol=0, atol=2e-6)


def test_unequal_hosts_send_partial_results(tmp_path):
    program = pathlib.Path(__file__).with_name("unequal_hosts.py")
    with hosts(2, tmp_path) as some:
        done = some.run(str(program), ranks_each=[3, 3])
    assert done.returncode == 0, done.stdout
    # A host has two subtrees, of ranks (0 1) and 2: it sends half of the vector for
    # each, and half of the result. By messages of all ranks it is twice as much.
    vectors = float(words(done.stdout, "vectors")[0])
    assert 1.4 < vectors < 1.7
    assert 2.9 < float(words(done.stdout, "messages")[0])


@pytest.mark.parametrize(
    "what, message",
    [("fail", "[rank 2] ValueError: no luck"), ("leave", "rank 2 has exited")],
)
def test_failure_on_one_host_ends_the_job(tmp_path, what, message):
    with hosts(3, tmp_path) as some:
        begun = time.perf_counter()
        done = some.run(PROGRAM, "mpi", what)
    assert done.returncode != 0
    assert message in done.stdout
    assert "parameters" not in done.stdout
    assert time.perf_counter() - begun < 40  # and not the 60 s of RENGA_TIMEOUT


def test_single_node_refuses_two_nodes(tmp_path):
    with hosts(2, tmp_path) as some:
        done = some.run(PROGRAM, "single_node")
    assert done.returncode != 0
    assert "single_node: expected ranks on one node, got 2 nodes" in done.stdout


@pytest.mark.parametrize("count, ranks_each", [(2, 1), (2, 2), (3, 1)])
def test_messages_arrive_while_all_ranks_compute(tmp_path, count, ranks_each):
    program = pathlib.Path(__file__).with_name("arriving_messages.py")
    with hosts(count, tmp_path) as some:
        some.limit(1000)
        done = some.run(str(program), ranks_each=ranks_each)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("arrived") == count * ranks_each
