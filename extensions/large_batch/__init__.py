"""Schedules for training with very large batches."""
