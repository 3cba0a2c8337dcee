"""The kinds of arrays on CUDA devices."""

from __future__ import annotations

import gc
import sys

import pytest

from renga.backends import cuda


@pytest.fixture(params=["CuPy", "own"])
def kind(request, monkeypatch):
    """Which arrays there are."""
    if request.param == "CuPy":
        pytest.importorskip("cupy")
        yield request.param
        return
    monkeypatch.setitem(sys.modules, "cupy", None)
    cuda.loaded.cache_clear()
    yield request.param
    monkeypatch.undo()
    cuda.loaded.cache_clear()
    cuda.load_plugin()


@pytest.fixture
def without_garbage():
    """Frees nothing of earlier tests meanwhile, which might wait for a device."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
