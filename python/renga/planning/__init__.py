"""Planning of parallel strategies: costs, simulation, search, work and depth.

Source: Jia et al., Beyond data and model parallelism for deep neural networks, 2019
(FlexFlow).
"""

from renga.parallel.plan.analysis.work_depth import work_depth as work_depth
from renga.parallel.plan.cluster import Cluster as Cluster
from renga.parallel.plan.costs import (
    K80 as K80,
    P100 as P100,
    Costs as Costs,
    Device as Device,
)
from renga.parallel.plan.graph import Graph as Graph
from renga.parallel.plan.plan import Plan as Plan
from renga.parallel.plan.plan_search import search as search
from renga.parallel.plan.scaling_table import MODELS as MODELS, scale as scale
from renga.parallel.plan.strategies.measurement import measure as measure
