"""Metrics of predictions."""
