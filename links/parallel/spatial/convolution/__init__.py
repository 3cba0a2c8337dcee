"""Convolutions of images that are sharded over several ranks."""
