"""Partitions, against all partitions."""

import itertools

import numpy as np
import pytest

from renga.pipeline.measurement import Costs, Segment
from renga.pipeline.partition import partition


def random_costs(seed, n):
    rng = np.random.default_rng(seed)
    segments = [
        Segment(f"/l{i}", *rng.random(3).tolist(), int(rng.integers(99)))
        for i in range(n)
    ]
    values = []
    for _ in range(2 * n):
        first, last = sorted(rng.choice(n, 2, replace=False).tolist())
        values.append((first, last, int(rng.integers(1, 50))))
    return Costs(segments, values)


def slowest(costs, cuts, seconds_per_byte):
    """Of a partition: all of a stage, and messages over both of its edges."""
    n = len(costs.segments)
    edges = [0, *cuts, n]

    def message(cut):
        if cut in (0, n):
            return 0
        crossing = [b for first, last, b in costs.values if first < cut <= last]
        return 2 * seconds_per_byte * sum(crossing)

    times = []
    for first, end in zip(edges, edges[1:]):
        own = costs.segments[first:end]
        seconds = sum(s.forward + s.backward + s.update for s in own)
        times.append(seconds + message(first) + message(end))
    return max(times)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("seconds_per_byte", [0.0, 0.01])
def test_balanced_partition_is_the_best_of_all(seed, stages, seconds_per_byte):
    costs = random_costs(seed, 7)
    found = partition(costs, stages, seconds_per_byte, 0.0)
    links = [link for stage in found.stages for link in stage.links]
    assert links == [segment.link for segment in costs.segments]
    cuts = np.cumsum([len(stage.links) for stage in found.stages])[:-1].tolist()
    best = min(
        slowest(costs, cuts, seconds_per_byte)
        for cuts in itertools.combinations(range(1, 7), stages - 1)
    )
    assert slowest(costs, cuts, seconds_per_byte) == pytest.approx(best)


def test_given_cuts_and_the_table():
    costs = Costs(
        [
            Segment("/a", 0.001, 0.002, 0.0005, 4_000_000),
            Segment("/b", 0.001, 0.002, 0.0, 0),
            Segment("/c", 0.002, 0.004, 0.0005, 8_000_000),
        ],
        [(0, 1, 1_000_000), (0, 2, 2_000_000)],
    )
    found = partition(costs, ["/c"], 0.0, 0.25)
    assert [stage.links for stage in found.stages] == [("/a", "/b"), ("/c",)]
    assert found.stage_of == {"/a": 0, "/b": 0, "/c": 1}
    assert [stage.received for stage in found.stages] == [0, 2_000_000]
    assert [stage.parameters for stage in found.stages] == [4_000_000, 8_000_000]
    text = str(found)
    assert "/a to /b" in text and "6.50 ms" not in text
    assert (
        text.count("2.00 ms  4.00 ms   0.50 ms") == 2 and "1.00 times the mean" in text
    )


@pytest.mark.parametrize(
    "stages,message",
    [
        (4, "at most as many stages as the 3 links"),
        (["/x"], "one of /l1, /l2, got '/x'"),
        (["/l0"], "one of /l1, /l2, got '/l0'"),
        (["/l2", "/l1"], "in the order"),
        (["/l1", "/l1"], "in the order"),
    ],
)
def test_stages_that_do_not_fit(stages, message):
    with pytest.raises(ValueError, match=message):
        partition(random_costs(0, 3), stages, 0.0, 0.0)
