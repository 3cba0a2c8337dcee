"""The choice of a compressor by measurement."""

import time

import numpy as np
import pytest

from renga.communicators import local, simulated
from renga.distributed import compression
from renga.parallel.compression import State, auto
from tests.parallel.compression.nodes import gradient, on_nodes


def test_ranks_that_are_threads_may_share_a_compressor():
    compressor = compression.Auto()

    def run(comm):
        x, kept = gradient(0).copy(), State("W", comm.rank, comm.size)
        for _ in range(2):
            time.sleep(0.05 * comm.rank)
            compressor.reduce([x], [kept], comm).wait()
        return repr(compressor.choice), int(kept["choice"])

    assert len(set(local.run(run, ranks=3))) == 1


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        # No gain that is worth the loss.
        ([0.010, 0.009, 0.010, 0.009, 0.009], "Uncompressed"),
        ([0.010, 0.007, 0.006, 0.006, 0.006], "Cast"),
        ([0.100, 0.050, 0.010, 0.009, 0.009], "PowerSGD"),
        ([0.100, 0.050, 0.030, 0.009, 0.008], "TopK"),
        ([0.010, 0.009, 0.010, 0.009, 0.005], "OneBit"),
    ],
)
def test_losses_have_to_pay(some_ranks, monkeypatch, seconds, expected):
    def time_of(compressor, xs, comm):
        names = ["Uncompressed", "Cast", "PowerSGD", "TopK", "OneBit"]
        # The slowest rank counts.
        slow = 1 if comm.rank == comm.size - 1 else 0.1
        return slow * seconds[names.index(type(compressor).__name__)]

    monkeypatch.setattr(auto, "_seconds", time_of)

    def run(comm):
        compressor = compression.Auto()
        x, kept = gradient(0).copy(), State("W", comm.rank, comm.size)
        for _ in range(2):
            assert compressor.choice is None
            compressor.reduce([x], [kept], on_nodes(comm)).wait()
        resumed = compression.Auto()
        monkeypatch.setattr(auto, "_seconds", None)  # not measured again
        resumed.reduce([x], [kept], on_nodes(comm)).wait()
        return type(compressor.choice).__name__, type(resumed.choice).__name__

    assert set(some_ranks(run)) == {(expected, expected)}


def test_the_first_step_sends_gradients_as_they_are(ranks):
    def run(comm):
        comm = on_nodes(comm)
        x, compressor = gradient(comm.rank).copy(), compression.Auto()
        compressor.reduce([x], [State("W", comm.rank, comm.size)], comm).wait()
        mean = comm.all_reduce(gradient(comm.rank), "sum")
        return x.tobytes() == mean.tobytes() and compressor.choice is None

    assert all(ranks(run))


def test_slow_networks_get_compression():
    def run(comm):
        compressor = compression.Auto()
        # The first bucket has little more than the latency of its message.
        buckets = {"b": np.zeros(10, "float32"), "W": np.zeros((300, 300), "float32")}
        for _ in range(2):
            for name, x in buckets.items():
                compressor.reduce([x], [State(name, comm.rank, 2)], comm).wait()
        return compressor.choice

    machine = simulated.Machine(intra_size=1, bandwidth=1e6)
    # Clocks on which encoding takes no time: runs do not depend on this machine's load.
    done = simulated.run(run, 2, machine, seconds_of=lambda rank, task: 0.0)
    # 360 kB take 0.36 s; factors, 9.6 ms; a hundredth of the elements, 7.2 ms.
    assert [repr(choice) for choice in done.results] == ["TopK(ratio=0.01)"] * 2
