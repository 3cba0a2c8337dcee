"""Convolutions of images whose parts lie on several ranks."""
