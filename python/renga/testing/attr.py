"""Marks of tests that need special hardware or libraries."""

from __future__ import annotations

import importlib.util
from typing import Any, Callable, TypeVar

_Test = TypeVar("_Test")

_HAS_PYTEST = importlib.util.find_spec("pytest") is not None


def _marked(name: str, decorated: Any) -> Any:
    # Looked up when a test is marked: pytest may refuse unregistered marks.
    if not _HAS_PYTEST:
        return decorated
    import pytest

    return getattr(pytest.mark, name)(decorated)


def is_available() -> bool:
    """Whether pytest, which reads the marks, is installed."""
    return _HAS_PYTEST


def check_available() -> None:
    """Raises RuntimeError if pytest is not installed."""
    if not _HAS_PYTEST:
        raise RuntimeError("testing.attr: pytest is not installed")


def get_error() -> ImportError | None:
    """Why pytest is not available, or None."""
    return None if _HAS_PYTEST else ImportError("pytest is not installed")


def slow(decorated: _Test, **kwargs: object) -> _Test:
    """Mark of a test that takes long."""
    return _marked("slow", decorated)


def cudnn(decorated: _Test, **kwargs: object) -> _Test:
    """Mark of a test that needs cuDNN."""
    return _marked("cudnn", decorated)


def ideep(decorated: _Test, **kwargs: object) -> _Test:
    """Mark of a test that needs iDeep."""
    return _marked("ideep", decorated)


def chainerx(decorated: _Test, **kwargs: object) -> _Test:
    """Mark of a test that needs ChainerX."""
    return _marked("chainerx", decorated)


def multi_gpu(gpu_num: int) -> Callable[[_Test], _Test]:
    """Mark of a test that needs ``gpu_num`` GPUs."""

    def mark(decorated: Any) -> Any:
        return _marked("gpu", _marked(f"gpus_{gpu_num}", decorated))

    return mark


def gpu(f: _Test) -> _Test:
    """Mark of a test that needs a GPU."""
    return _marked("gpu", f)
