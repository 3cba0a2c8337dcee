"""Schedules, executed on a model of ranks; messages take no time."""

import itertools

import pytest

from renga.parallel.pipeline.schedule import (
    Action,
    Stream,
    bubble,
    flush_schedule,
    rank_of_stage,
)
from renga.pipeline.timeline import timeline


def finish_times(schedules, stages, seconds):
    """When each pass ends, if ranks wait for what they need and nothing else."""
    passes = timeline(schedules, stages, lambda action: seconds.get(action.kind, 0))
    return {tuple(p.action): p.end for p in passes}


CASES = [
    (kind, p, m, v)
    for kind, p, m, v in itertools.product(
        ("gpipe", "1f1b", "interleaved"), (1, 2, 3, 4, 8), range(1, 9), (1, 2, 3)
    )
    if v == 1 or kind == "interleaved"
]


@pytest.mark.parametrize("kind,p,m,v", CASES)
def test_every_pass_comes_once_and_nothing_waits_for_ever(kind, p, m, v):
    schedules = flush_schedule(kind, p, m, v)
    for rank, actions in enumerate(schedules):
        passes = [a for a in actions if a.kind != "U"]
        stages = [s for s in range(p * v) if rank_of_stage(s, p) == rank]
        expected = {Action(k, s, i) for k in "FBW" for s in stages for i in range(m)}
        assert len(passes) == len(expected) and set(passes) == expected
        assert [a.kind for a in actions].index("U") == len(actions) - 1
        for stage, k in itertools.product(stages, "FBW"):
            order = [a.micro_batch for a in passes if a[:2] == (k, stage)]
            assert order == list(range(m))
    finish_times(schedules, p * v, {"F": 1, "B": 2})


@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_time_is_that_of_the_papers(kind, p, m):
    """(m + p - 1) (F + B): a bubble of p - 1 passes."""
    ends = finish_times(flush_schedule(kind, p, m), p, {"F": 1, "B": 2})
    assert max(ends.values()) == (m + p - 1) * 3


@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize("m", [4, 8])
def test_no_rank_waits_for_gradients_of_weights(kind, p, m):
    """m (F + B + W) + (p - 1) (F + B)."""
    ends = finish_times(flush_schedule(kind, p, m), p, {"F": 1, "B": 1, "W": 1})
    assert max(ends.values()) == 3 * m + 2 * (p - 1)
    assert bubble(kind, p, m) == pytest.approx(max(ends.values()) / (3 * m) - 1)


@pytest.mark.parametrize("p,m,v", [(2, 4, 2), (4, 8, 2), (4, 8, 3), (2, 8, 4)])
def test_interleaving_divides_the_bubble_by_the_number_of_stages(p, m, v):
    ends = finish_times(flush_schedule("interleaved", p, m, v), p * v, {"F": 1, "B": 2})
    busy = 3 * m * v
    assert max(ends.values()) - busy == 3 * (p - 1)
    seconds = {"F": 1, "B": 1, "W": 1}
    ends = finish_times(flush_schedule("interleaved", p, m, v), p * v, seconds)
    assert max(ends.values()) - busy == 2 * (p - 1)
    assert bubble("interleaved", p, m, v) == pytest.approx(2 * (p - 1) / busy)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_1f1b_holds_the_activations_of_few_micro_batches(p, m):
    for rank, actions in enumerate(flush_schedule("1f1b", p, m)):
        held = most = 0
        for action in actions:
            held += {"F": 1, "B": 0, "W": -1, "U": 0}[action.kind]
            most = max(most, held)
        assert most == min(m, p - rank)


@pytest.mark.parametrize("n", range(1, 17))
def test_version_differences_of_a_stream_are_those_of_spectrain(n):
    """Updates between a pass and the end of its micro-batch, without its own."""
    batches = 4 * n
    streams = [Stream(k, n, 1) for k in range(n)]
    schedules = [[a for _ in range(batches) for a in s.next_batch()] for s in streams]
    ends = finish_times(schedules, n, {"F": 1, "B": 1})
    for k, i in itertools.product(range(n), range(2 * n, 3 * n)):
        end = ends["B", 0, i]
        # Without waits, F of i on stage k is at 2i + k, as in the paper.
        assert ends["F", k, i] == 2 * i + k + 1 and end == 2 * i + 2 * n
        updates = [
            t for (kind, s, j), t in ends.items() if (kind, s) == ("B", k) and j != i
        ]

        for kind, expected in (("F", k // 2 + n - k - 1), ("B", k // 2)):
            start = ends[kind, k, i] - 1
            assert sum(start < update <= end for update in updates) == expected


@pytest.mark.parametrize("ranks,m", [(1, 1), (2, 1), (3, 2), (4, 4)])
def test_a_stream_completes_everything(ranks, m):
    schedules = []
    for rank in range(ranks):
        stream = Stream(rank, ranks, m)
        actions = [a for _ in range(5) for a in stream.next_batch()]
        actions += stream.drain()
        assert list(stream.drain()) == []
        assert [a.micro_batch for a in actions if a.kind == "B"] == list(range(5 * m))
        updates = [a.micro_batch for a in actions if a.kind == "U"]
        assert updates == [(t + 1) * m - 1 for t in range(5)]
        schedules.append(actions)
    finish_times(schedules, ranks, {"F": 1, "B": 2})


@pytest.mark.parametrize(
    "arguments",
    [("pipedream", 2, 2), ("gpipe", 0, 2), ("1f1b", 2, 0), ("gpipe", 2, 2, 2)],
)
def test_errors(arguments):
    with pytest.raises(ValueError, match="schedule: expected"):
        flush_schedule(*arguments)


def test_a_timeline_by_hand():
    """Two stages, two micro-batches, messages of half a second."""
    schedules = flush_schedule("1f1b", 2, 2)
    seconds = {("F", 0): 1, ("F", 1): 2, ("B", 0): 2, ("B", 1): 3}
    passes = timeline(schedules, 2, lambda a: seconds.get(a[:2], 0), 0.5)
    found = {tuple(p.action): (p.rank, p.start, p.end) for p in passes}
    assert found == {
        ("F", 0, 0): (0, 0, 1),
        ("F", 0, 1): (0, 1, 2),
        ("F", 1, 0): (1, 1.5, 3.5),
        ("B", 1, 0): (1, 3.5, 6.5),
        ("F", 1, 1): (1, 6.5, 8.5),
        ("B", 1, 1): (1, 8.5, 11.5),
        ("W", 1, 0): (1, 6.5, 6.5),
        ("W", 1, 1): (1, 11.5, 11.5),
        ("U", 1, 1): (1, 11.5, 11.5),
        ("B", 0, 0): (0, 7, 9),
        ("B", 0, 1): (0, 12, 14),
        ("W", 0, 0): (0, 9, 9),
        ("W", 0, 1): (0, 14, 14),
        ("U", 0, 1): (0, 14, 14),
    }


def test_a_schedule_that_cannot_run():
    schedules = [[Action("B", 0, 0), Action("F", 0, 0)]]
    with pytest.raises(RuntimeError, match="wait for each other"):
        timeline(schedules, 1, lambda action: 1.0)
