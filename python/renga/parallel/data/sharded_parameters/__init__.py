"""Optimizer states, gradients and parameters of which each rank keeps a shard."""
