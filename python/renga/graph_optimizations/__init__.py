"""Optimizations of graphs that stay the same."""

from renga.graph_optimizations import static_graph as static_graph
