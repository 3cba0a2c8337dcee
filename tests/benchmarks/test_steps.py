"""The benchmarked steps still run; their times are nobody's concern here."""

import pytest

from tests.benchmarks.steps import renga_steps
from tests.benchmarks.training import measure


@pytest.mark.parametrize("model", sorted(renga_steps.STEPS))
def test_a_step_runs(model):
    assert measure("renga_steps", model, 1) > 0
