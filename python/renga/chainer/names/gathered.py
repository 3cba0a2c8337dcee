"""Functions of ``chainer.training.updaters.multiprocess_parallel_updater``."""

from __future__ import annotations

from typing import Any, NoReturn


def size_num_grads(link: Any) -> tuple[int, int]:
    """The number of elements of a link's parameters, and of those that have any."""
    sizes = [param.size for param in link.params() if param.size]
    return sum(sizes), len(sizes)


def _only_on_gpus(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: not available; it works only on GPUs")


def gather_grads(link: Any) -> NoReturn:
    """Raises RuntimeError: in Chainer it works only on GPUs."""
    _only_on_gpus("gather_grads")


def gather_params(link: Any) -> NoReturn:
    """Raises RuntimeError: in Chainer it works only on GPUs."""
    _only_on_gpus("gather_params")


def scatter_grads(link: Any, array: Any) -> NoReturn:
    """Raises RuntimeError: in Chainer it works only on GPUs."""
    _only_on_gpus("scatter_grads")


def scatter_params(link: Any, array: Any) -> NoReturn:
    """Raises RuntimeError: in Chainer it works only on GPUs."""
    _only_on_gpus("scatter_params")
