"""Gossip: ranks that exchange parameters with their neighbours in a graph."""
