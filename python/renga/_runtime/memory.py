"""Statistics of the caching allocator."""

from __future__ import annotations

from renga import _core


def stats(device: str | None = None) -> dict[str, int]:
    """Statistics of the memory that a device's allocator has handed out and cached.

    Args:
        device: Name of the device, the host's by default.

    Returns:
        A dict. ``in_use``, ``peak`` and ``cached`` are bytes; ``allocations``,
        ``hits`` (allocations served from the cache) and ``reserves`` (allocations
        from new memory) are counts since the start.

    """
    return _core.memory_stats(device or _core.host_name())


def empty_cache(device: str | None = None) -> None:
    """Returns the cached blocks that are not in use to the system."""
    _core.empty_cache(device or _core.host_name())
