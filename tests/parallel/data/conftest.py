"""Fixtures: how gradients are reduced."""

import pytest

from renga.parallel.data import buckets
from renga.parallel.data.synchronization import Eligibility
from renga.parallel.data.updating_reducer import UpdatingReducer


@pytest.fixture
def no_sharded_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rank computes whole updates, as where the ranks are on several nodes."""
    monkeypatch.setattr(
        UpdatingReducer, "eligibility", lambda self: Eligibility.NOT_POSSIBLE
    )


@pytest.fixture(params=["sharded updates", "one bucket", "small buckets"])
def reduction(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "sharded updates":
        request.getfixturevalue("no_sharded_updates")
    if request.param == "small buckets":
        monkeypatch.setattr(buckets, "BUCKET_BYTES", 40)
