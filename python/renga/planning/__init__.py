"""Planning of parallel strategies: costs, simulation, search, work and depth.

Source: Jia et al., Beyond data and model parallelism for deep neural networks, 2019
(FlexFlow).
"""

from renga.planning.analysis.work_depth import work_depth
from renga.planning.cluster import Cluster
from renga.planning.costs import K80, P100, Costs, Device
from renga.planning.graph import Graph
from renga.planning.links.measurement import measure
from renga.planning.plan import Plan
from renga.planning.plan_search import search

__all__ = [
    "K80",
    "P100",
    "Cluster",
    "Costs",
    "Device",
    "Graph",
    "Plan",
    "measure",
    "search",
    "work_depth",
]
