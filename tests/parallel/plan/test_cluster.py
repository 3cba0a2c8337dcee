import pytest

from renga import planning
from renga.communicators import local, simulated
from renga.parallel.plan.strategies.collective_times import (
    CollectiveTimes,
    interpolated,
)
from renga.parallel.redistribute.cost import rates_of


def test_a_description_has_the_units_that_it_names():
    cluster = planning.Cluster.describe("4 nodes × 8 ranks, 10 Gbit/s, 5 µs")
    machine = cluster.machine
    assert (cluster.ranks, machine.intra_size) == (32, 8)
    assert machine.bandwidth == 10e9 / 8
    assert machine.latency == pytest.approx(5e-6, rel=1e-15)
    text = "1 node x 2 ranks, 1 ms, 250 MB/s, in nodes: 20 GB/s, 300 ns"
    machine = planning.Cluster.describe(text).machine
    assert (machine.latency, machine.bandwidth) == (1e-3, 250e6)
    assert machine.node_bandwidth == 20e9
    assert machine.node_latency == pytest.approx(3e-7, rel=1e-15)


@pytest.mark.parametrize(
    "text, part",
    [
        ("", "''"),
        ("4 nodes", "'4 nodes'"),
        ("0 nodes × 8 ranks", "a node and a rank"),
        ("4 nodes × 8 ranks, fast", "'fast'"),
        ("4 nodes × 8 ranks, 10 furlongs", "'10 furlongs'"),
        ("4 nodes × 8 ranks, 0 Gbit/s", "above 0"),
        ("4 nodes × 8 ranks, 1.2.3 s", "1.2.3"),
        ("4 nodes × 8 ranks, 5 µs, 6 µs", "one latency"),
        ("4 nodes × 8 ranks, 5 µs, in nodes: warp", "'warp'"),
    ],
)
def test_nonsense_is_no_description(text, part):
    with pytest.raises(ValueError) as raised:
        planning.Cluster.describe(text)
    assert part in str(raised.value)


def test_a_cluster_is_the_same_from_json():
    cluster = planning.Cluster.describe("2 nodes × 3 ranks, 56 Gbit/s, 2 µs")
    assert planning.Cluster.from_json(cluster.to_json()) == cluster


def test_an_all_reduce_within_a_node_does_not_use_the_network_between_nodes():
    text = "2 nodes × 2 ranks, 1 GB/s, 1 s, in nodes: 1 GB/s, 1 ms"
    cluster = planning.Cluster.describe(text)
    assert cluster.all_reduce([1], 1000) == 0
    inside = cluster.all_reduce([2, 3], 4)
    assert 1e-3 <= inside < 0.01  # a few messages of a millisecond
    assert 1 <= cluster.all_reduce([1, 2], 4) < 10
    assert cluster.all_reduce([0, 1, 2, 3], 4) > 1


def test_ranks_measure_the_same_network(some_ranks):
    def act(comm):
        cluster = planning.Cluster.of(comm)
        return cluster.ranks, cluster.machine, cluster.overlaps

    found = some_ranks(act)
    assert found == [found[0]] * len(found)
    ranks, machine, overlaps = found[0]
    assert ranks == len(found) and not overlaps
    assert 0 < machine.node_latency < 10 and machine.node_bandwidth > 0


def test_simulated_ranks_have_their_machine():
    comm = simulated.connect(4, intra_size=2, bandwidth=3e9)
    assert planning.Cluster.of(comm).machine is comm.machine


def test_rates_without_a_plan_are_not_measured():
    """A program chooses the same layouts, and has the same bits, in every run."""

    def act(comm):
        planning.Cluster.of(comm)
        return rates_of(comm)

    assert len({*local.run(act, ranks=2), *local.run(rates_of, ranks=2)}) == 1


def test_collectives_of_real_ranks_are_timed():
    def act(comm):
        cluster = planning.Cluster.of(comm)
        assert cluster.without_ranks.collectives is None
        return cluster.collectives, cluster.link_machine

    (times, machine), other = local.run(act, ranks=2)
    assert other == (times, machine)
    for points in times:
        assert [size for size, _ in points] == [4**n for n in range(5, 13)]
        assert all(seconds > 0 for _, seconds in points)
    assert machine.node_latency == times.all_to_all[0][1]


def test_times_of_collectives_between_and_beyond_measured_sizes():
    points = ((1000, 1e-3), (4000, 4e-3), (16000, 64e-3))
    assert interpolated(points, 8) == 1e-3
    assert interpolated(points, 4000) == pytest.approx(4e-3, rel=1e-12)
    # Half way on a logarithmic scale: the geometric means.
    assert interpolated(points, 2000) == pytest.approx(2e-3, rel=1e-12)
    assert interpolated(points, 8000) == pytest.approx(16e-3, rel=1e-12)
    assert interpolated(points, 32000) == pytest.approx(128e-3, rel=1e-12)
    cluster = planning.Cluster(
        3, simulated.Machine(3), False, None, CollectiveTimes(points, points)
    )
    # A pair sends half as much as three ranks.
    assert cluster.all_to_all(cluster.machine, 2, 4000) == pytest.approx(2e-3)
    assert cluster.all_reduce([0, 1, 2], 1000) == 1e-3


def test_a_cluster_with_switches_is_the_same_from_a_file(tmp_path):
    machine = simulated.Machine(
        8, 1e-5, 12e9, 3e-6, 130e9, 1, 4, [[4, 12e9, 2e-5, 2]], ["ring", "in-network"]
    )
    device = planning.Device(1e13, 7e11)
    cluster = planning.Cluster(
        128, machine, device=device, stragglers=0.02, price=2.5, comm=None
    )
    cluster.save(tmp_path / "cluster.json")
    assert planning.Cluster.load(tmp_path / "cluster.json") == cluster
    assert machine.share == pytest.approx(2 / 4 / 8)  # 2 links for a leaf of 4 nodes
    assert [level.size for level in machine.levels(128)] == [8, 4, 4]
    (tmp_path / "other.json").write_text('{"ranks": 2, "machine": {"speed": 1}}')
    with pytest.raises(ValueError, match=r"other.json, got .*'speed'"):
        planning.Cluster.load(tmp_path / "other.json")


def test_the_slowest_of_many_ranks():
    """Expected maxima of normal samples: Tippett, 1925."""
    for ranks, maximum in ((2, 0.564), (10, 1.539), (100, 2.508), (1000, 3.241)):
        cluster = planning.Cluster(ranks, simulated.Machine(), stragglers=0.1)
        assert cluster.straggling == pytest.approx(0.1 * maximum, rel=0.05)
