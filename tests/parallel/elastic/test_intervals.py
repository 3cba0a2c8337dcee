"""How often to save: against simulated failures, and in a trainer."""

import math
import random
import statistics

import pytest

from renga.communicators import local
from renga.distributed import elastic
from renga.parallel.elastic import intervals
from renga.testing import get_trainer_with_mock_updater

HOUR = 3600.0


def simulated_seconds(work, computed, save, restart, between_failures, seed):
    """The time of one job, whose failures are drawn at random."""
    generator = random.Random(seed)
    now = done = 0.0
    failure = generator.expovariate(1 / between_failures)
    while done < work:
        step = min(computed, work - done)
        end = now + step + save
        if end <= failure:
            now, done = end, done + step
            continue
        now = failure + restart
        failure += generator.expovariate(1 / between_failures)
        while failure < now:  # the restart failed
            now = failure + restart
            failure += generator.expovariate(1 / between_failures)
    return now


@pytest.mark.parametrize(
    "save, between_failures, restart",
    [(60, 4 * HOUR, 120), (300, 24 * HOUR, 300), (600, 2 * HOUR, 60)],
)
def test_ten_thousand_hours_with_failures(save, between_failures, restart):
    best = intervals.interval(save, between_failures)
    job = save, restart, between_failures
    expected = intervals.expected_seconds(10_000 * HOUR, best, *job)
    simulated = statistics.mean(
        simulated_seconds(10_000 * HOUR, best, *job, seed=seed) for seed in range(4)
    )
    assert simulated == pytest.approx(expected, rel=0.02)
    for factor in (0.5, 0.8, 1.25, 2):
        other = intervals.expected_seconds(10_000 * HOUR, factor * best, *job)
        assert other > expected


def test_youngs_interval_where_saving_is_short():
    """The square root of twice the product: 1974, equation 3."""
    assert intervals.interval(1, 50_000) == pytest.approx(316.2, rel=0.01)
    assert intervals.interval(20, 5) == 5
    with pytest.raises(ValueError, match="save: expected a number > 0, got 0"):
        intervals.interval(0, 5)


def test_jobs_that_never_end_and_times_that_are_none():
    assert intervals.expected_seconds(1, 1, 1, 1, 1e-9) == math.inf
    with pytest.raises(ValueError, match="computed: expected a number > 0, got 0"):
        intervals.expected_seconds(1, 0, 1, 1, 1)
    with pytest.raises(ValueError, match="hours_between_failures: expected .* got -1"):
        elastic.Checkpoints(None, "none", hours_between_failures=-1)


class Clock:
    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def pace_of_hours(comm, folder):
    return elastic.Checkpoints(comm, folder, hours_between_failures=2)._pace


@pytest.mark.parametrize(
    ("make", "between_failures"),
    [(lambda comm, folder: intervals.Pace(comm, 5000), 5000), (pace_of_hours, 7200)],
)
def test_ranks_save_as_often_as_loses_least(
    make, between_failures, monkeypatch, tmp_path
):
    """Iterations of 1 s, saves of 2 s: Young has sqrt(4 * between_failures) s."""

    clock = Clock()
    monkeypatch.setattr(intervals, "time", clock)

    def act(comm):
        pace, saved = make(comm, tmp_path), []
        for iteration in range(1, 1000):
            if comm.rank == 0:
                clock.now += 1
            if pace.is_due(iteration):
                with pace.saving(iteration):
                    clock.now += 2
                saved.append(iteration)
        return saved

    (saved,) = local.run(act, ranks=1)
    gaps = [b - a for a, b in zip(saved, saved[1:])]
    assert gaps[:7] == [1, 2, 4, 8, 16, 32, 64]
    best = round(intervals.interval(2, between_failures))
    assert gaps[8:] == [best] * len(gaps[8:])
    assert gaps[-1] == pytest.approx((4 * between_failures) ** 0.5, rel=0.02)


def test_all_ranks_save_after_the_same_iterations(tmp_path):
    def act(comm):
        checkpoints = elastic.Checkpoints(comm, tmp_path, hours_between_failures=1)
        assert checkpoints.trigger == (1, "iteration")
        saved = []
        checkpoints.save = lambda trainer, iteration: saved.append(iteration)
        trainer = get_trainer_with_mock_updater((50, "iteration"))
        trainer.extend(checkpoints)
        trainer.run()
        return saved

    first, second = local.run(act, ranks=2)
    assert first == second
    assert first[:2] == [1, 2]
