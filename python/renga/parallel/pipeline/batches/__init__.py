"""Batches in micro-batches: arguments are split, results and states are joined."""
