"""Schedules of optimizers' hyperparameters."""
