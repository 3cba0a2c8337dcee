"""Iterators whose batches the ranks agree on."""
