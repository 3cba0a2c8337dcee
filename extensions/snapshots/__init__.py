"""Snapshots from which training can be resumed."""
