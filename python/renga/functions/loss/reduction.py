"""How losses are put together."""


def check_reduce(name: str, reduce: str) -> None:
    """Raises ValueError unless ``reduce`` is "mean" or "no"."""
    if reduce not in ("mean", "no"):
        raise ValueError(f"{name}: expected reduce 'mean' or 'no', got {reduce!r}")
