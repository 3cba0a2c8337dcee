"""Planning of parallel strategies: costs, simulation, search, work and depth.

Source: Jia et al., Beyond data and model parallelism for deep neural networks, 2019
(FlexFlow).
"""

from renga.parallel.plan.analysis.work_depth import work_depth
from renga.parallel.plan.cluster import Cluster
from renga.parallel.plan.costs import K80, P100, Costs, Device
from renga.parallel.plan.graph import Graph
from renga.parallel.plan.plan import Plan
from renga.parallel.plan.plan_search import search
from renga.parallel.plan.scaling_table import MODELS, scale
from renga.parallel.plan.strategies.measurement import measure

__all__ = [
    "K80",
    "MODELS",
    "P100",
    "Cluster",
    "Costs",
    "Device",
    "Graph",
    "Plan",
    "measure",
    "scale",
    "search",
    "work_depth",
]
