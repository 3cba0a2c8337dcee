"""Layers whose channels are sharded: each rank has a part of every weight."""
