"""Models for sequences that are sharded over several ranks."""
