"""Models for images that are sharded over several ranks."""
