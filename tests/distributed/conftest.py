"""What tests of averaged gradients vary."""

import pytest

from renga.distributed.optimizers import overlapped_mean


@pytest.fixture(params=[1 << 22, 40], ids=["one bucket", "small buckets"])
def buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlapped_mean, "_BUCKET", request.param)
