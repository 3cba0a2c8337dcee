"""No function is far slower than it was, beside a copy or a product.

These are the only timed assertions: a function fails at half of its recorded share of
the machine's speed, if it does so three times. A processor of another kind has other
vectors and caches: there it fails at a fifth.
"""

import json

import pytest

from renga._runtime import runtime_info

from .measure import Trial
from .record import FILE, ROWS

RECORD = json.loads(FILE.read_text())
SHARES = RECORD["shares"]
IS_SAME_KIND = RECORD["processor"] == runtime_info.cpu()
LEAST = 0.5 if IS_SAME_KIND else 0.2  # of the recorded share


def test_every_row_has_a_recorded_share():
    assert {row.name for row in ROWS} == set(SHARES)


@pytest.mark.timed
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_speed(row):
    for mode, recorded in SHARES[row.name].items():
        trial = Trial(row, backward=mode == "backward")
        share = 0.0
        for rounds in (5, 15, 45):
            if share < LEAST * recorded:
                share = max(share, trial.share(rounds).share)
        assert share >= LEAST * recorded, (
            f"{row.name}, {mode}: expected at least {LEAST} of the recorded share "
            f"{recorded:.4f} of the speed of a {trial.reference}, got {share:.4f}"
        )
