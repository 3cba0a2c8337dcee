"""The benchmarked steps still run; their times are nobody's concern here."""

import pytest

from renga.communicators import local
from tests.benchmarks.steps import (
    data_parallel_steps,
    recurrent_steps,
    renga_steps,
)
from tests.benchmarks.training import measure


@pytest.mark.parametrize("model", sorted(renga_steps.STEPS))
def test_a_step_runs(model):
    assert measure("renga_steps", model, 1) > 0


@pytest.mark.parametrize("synchronized", [False, True])
@pytest.mark.parametrize("model", sorted(data_parallel_steps.STEPS))
def test_a_data_parallel_step_runs(model, synchronized):
    def on_rank(comm):
        data_parallel_steps.STEPS[model](2, comm, synchronized)()
        return True

    assert all(local.run(on_rank, ranks=2))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn", "cell"])
def test_a_recurrent_step_runs(kind):
    assert recurrent_steps.renga_step(kind, "many")() > 0
