"""What the caching allocator holds."""

from renga import _core


def stats(device=None):
    """What the allocator of a device has given out and keeps.

    Args:
        device: Name of the device, the host's by default.

    Returns:
        A dict. ``in_use``, ``peak`` and ``cached`` are bytes; ``allocations``,
        ``hits`` (allocations in memory that was used before) and ``reserves``
        (allocations in memory that was not) count since the start.

    """
    return _core.memory_stats(device or _core.host_name())


def empty_cache(device=None):
    """Gives the blocks that nobody uses back to the system."""
    _core.empty_cache(device or _core.host_name())
