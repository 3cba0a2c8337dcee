"""What tests of averaged gradients vary."""

import pytest

from renga.distributed.optimizers import overlapped_mean
from renga.optimizer import GradientMethod

# How many bytes a bucket has, and whether it may wait for the update.
_WAYS = {
    "one bucket": (1 << 22, True),
    "small buckets": (40, True),
    "small early buckets": (40, False),
}


@pytest.fixture(params=_WAYS)
def buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    bytes_of_one, may_wait = _WAYS[request.param]
    monkeypatch.setattr(overlapped_mean, "_BUCKET", bytes_of_one)
    if not may_wait:
        monkeypatch.setattr(GradientMethod, "updates_one_by_one", False)
