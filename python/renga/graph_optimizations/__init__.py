"""Optimizations of static graphs."""

from renga.graph_optimizations import static_graph as static_graph
