"""Attention, and blocks of it."""
