"""Losses with parameters."""
