"""Optimizer states, and gradients, of which each rank keeps a shard (ZeRO)."""
