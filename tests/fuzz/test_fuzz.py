"""A short run of the fuzzer, and what it has to cover."""

import numpy
import pytest

from .check import CASES, Trial
from .compare import differ
from .draw import Draw, Operand
from .layouts import Layout, arrange, choose
from .runner import Campaign

SEED = 7
TRIALS = 1200


def test_rows_draw_arguments():
    for case in CASES:
        for seed in range(3):
            g = Draw(numpy.random.default_rng(seed), case.dtypes, case.special)
            args, kwargs = case.draw(g)
            assert isinstance(args, tuple) and isinstance(kwargs, dict), case.name


def test_layouts_keep_the_elements():
    rng = numpy.random.default_rng(0)
    for _ in range(200):
        g = Draw(rng)
        x = g.x(*g.shape())
        layout = choose(g, x)
        array, memory = arrange(x.value, layout)
        numpy.testing.assert_array_equal(array, x.value)
        assert array.flags.writeable == layout.writeable
        assert (array.dtype.byteorder == ">") == layout.swapped


def test_an_overlapping_layout_repeats_elements():
    x = Operand(numpy.arange(3.0).reshape(3, 1).repeat(2, 1))
    array, _ = arrange(x.value, Layout((0, 1), (-2, 0)))
    assert array.strides[1] == 0 and array.strides[0] < 0
    numpy.testing.assert_array_equal(array, x.value)


@pytest.mark.parametrize(
    "found, expected, same",
    [
        (1.0, 1.0 + 1e-9, True),
        (1.0, 1.1, False),
        (numpy.nan, numpy.nan, True),
        (numpy.nan, 1.0, False),
        (numpy.inf, 1.0, False),
        (numpy.inf, -numpy.inf, False),
    ],
)
def test_comparison(found, expected, same):
    found, expected = numpy.array([found, 0.0]), numpy.array([expected, 0.0])
    assert (differ(found, expected, 1e-7) is None) == same


def test_trials_repeat():
    assert Trial(1, 5).check() == Trial(1, 5).check()


def test_a_short_run():
    campaign = Campaign(SEED, processes=1)
    campaign.run(seconds=60, trials=TRIALS)
    assert campaign.trials >= TRIALS
    assert not campaign.faults, "\n".join(
        campaign.line(found[0]) for found in campaign.faults.values()
    )
