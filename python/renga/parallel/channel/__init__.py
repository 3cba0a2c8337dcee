"""Models whose channels are sharded over several ranks."""
