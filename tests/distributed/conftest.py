"""What tests of averaged gradients vary."""

import pytest

from renga.distributed.optimizers import overlapped_mean
from renga.distributed.optimizers.shared_updates import UNABLE, SharedUpdates


@pytest.fixture
def no_shared_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rank makes all updates alone, as where not all are on one node."""
    monkeypatch.setattr(SharedUpdates, "stage", lambda self: UNABLE)


@pytest.fixture(params=["shared updates", "one bucket", "small buckets"])
def buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "shared updates":
        request.getfixturevalue("no_shared_updates")
    if request.param == "small buckets":
        monkeypatch.setattr(overlapped_mean, "_BUCKET", 40)
