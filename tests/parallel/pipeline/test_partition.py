"""Partitions, against all partitions."""

import itertools

import numpy as np
import pytest

import renga
import renga.links as L
from renga.parallel.pipeline.measurement import (
    Segment,
    SegmentCosts,
    measure,
    memory_seconds_per_byte,
)
from renga.parallel.pipeline.partition import partition


def random_costs(seed, n):
    rng = np.random.default_rng(seed)
    segments = [
        Segment(f"/l{i}", *rng.random(3).tolist(), int(rng.integers(99)), rng.random())
        for i in range(n)
    ]
    values = []
    for _ in range(2 * n):
        first, last = sorted(rng.choice(n, 2, replace=False).tolist())
        values.append((first, last, int(rng.integers(1, 50))))
    return SegmentCosts(segments, values)


def period(costs, cuts, seconds_per_byte):
    """Of the slowest stage, message or backward pass, between two micro-batches."""
    n, p = len(costs.segments), len(cuts) + 1
    edges = [0, *cuts, n]
    messages = [0.0] * (p + 1)
    for k in range(1, p):
        crossing = [b for first, last, b in costs.values if first < edges[k] <= last]
        messages[k] = seconds_per_byte * sum(crossing)
    periods = []
    for k in range(p):
        own, later = costs.segments[edges[k] : edges[k + 1]], costs.segments[edges[k] :]
        periods.append(sum(s.forward + s.backward + s.weights + s.update for s in own))
        periods.append(messages[k])
        way = sum(s.forward + s.backward for s in later) + 2 * sum(messages[k + 1 :])
        periods.append(way / (p - k))
    return max(periods)


def cuts_of(found):
    return np.cumsum([len(stage.links) for stage in found.stages])[:-1].tolist()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "stages,seconds_per_byte",
    [
        (1, 0.01),
        (2, 0),
        (2, 0.01),
        (2, 0.1),
        (3, 0),
        (3, 0.02),
        (4, 0),
        (4, 0.1),
        (6, 0.02),
    ],
)
def test_balanced_partition_is_the_best_of_all(seed, stages, seconds_per_byte):
    costs = random_costs(seed, 7)
    found = partition(costs, stages, seconds_per_byte, 0.0)
    links = [link for stage in found.stages for link in stage.links]
    assert links == [segment.link for segment in costs.segments]
    best = min(
        period(costs, cuts, seconds_per_byte)
        for cuts in itertools.combinations(range(1, 7), stages - 1)
    )
    assert period(costs, cuts_of(found), seconds_per_byte) == pytest.approx(best)


def test_given_cuts_and_the_table():
    costs = SegmentCosts(
        [
            Segment("/a", 0.001, 0.001, 0.0005, 4_000_000, 0.001),
            Segment("/b", 0.001, 0.001, 0.0, 0, 0.001),
            Segment("/c", 0.002, 0.002, 0.0005, 8_000_000, 0.002),
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
    assert text.count("2.00 ms  2.00 ms   2.00 ms  0.50 ms") == 2
    assert "1.00 times the mean" in text


@pytest.mark.parametrize(("least", "links"), [(1, "ba"), (2, "ba"), (3, "bac")])
def test_links_that_are_not_used_are_segments_where_more_are_wanted(least, links):
    model = renga.Chain(**{name: L.Linear(2, 2) for name in "abcd"})
    x = np.ones((1, 2), "f")
    costs = measure(model, lambda x: model.a(model.b(x)), (x,), least=least)
    assert [segment.link for segment in costs.segments] == [
        f"/{name}" for name in links
    ]


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


@pytest.mark.parametrize("seed", range(4))
def test_no_stage_begins_between_the_calls_of_a_link(seed):
    costs = random_costs(seed, 6)
    costs.spans["/l1"] = 1, 3  # called again after /l3
    for links in (["/l2"], ["/l3"], ["/l1", "/l3"], ["/l2", "/l4"]):
        with pytest.raises(ValueError, match="no cut between the calls of /l1"):
            partition(costs, links, 0.0, 0.0)
    for cuts in ([1], [4], [1, 4], [4, 5]):
        found = partition(costs, [f"/l{cut}" for cut in cuts], 0.0, 0.0)
        assert cuts_of(found) == cuts
    for stages in range(1, 5):
        best = min(
            period(costs, cuts, 0.02)
            for cuts in itertools.combinations([1, 4, 5], stages - 1)
        )
        cuts = cuts_of(partition(costs, stages, 0.02, 0.0))
        assert {2, 3}.isdisjoint(cuts)
        assert period(costs, cuts, 0.02) == pytest.approx(best)
    with pytest.raises(ValueError, match="at most as many stages as the 4 links"):
        partition(costs, 5, 0.0, 0.0)


def test_memory_is_measured_once_for_each_number_of_ranks():
    assert memory_seconds_per_byte(2) == memory_seconds_per_byte(2) > 0
