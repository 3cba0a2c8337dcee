"""Grids of two kinds of parallelism: four ranks."""

from __future__ import annotations

import contextlib
import io

from renga.distributed import (
    create_groups,
    create_multi_node_optimizer,
    parallelize,
)
from renga.pipeline import Pipeline
from tests.combinations.column import Column
from tests.combinations.columns.pipelines import NEEDS, Pipelined, told


class Grid(Column):
    """Two ranks for data, by two for another kind, whose ranks are consecutive."""

    ranks = 4
    zero_fill = True
    lacks = {"other ranks": "a grid has its number of ranks"}
    shard: str | None = None  # of the optimizer

    def replica(self, rank, ranks):
        return rank // 2

    def replicas(self, ranks):
        return ranks // 2


class DataAndLinks(Grid):
    """Data × ``parallelize``."""

    strategy = "channel"

    def wrap(self, comm, model, optimizer, example, row):
        groups = create_groups(comm, **{self.strategy: 2})
        inner = getattr(groups, self.strategy)
        with contextlib.redirect_stdout(io.StringIO()):
            model = parallelize(model, inner, self.strategy, example)
        shard = {"shard": self.shard}
        optimizer = create_multi_node_optimizer(optimizer, groups.data, **shard)
        return model, model, optimizer.setup(model)


class DataAndChannel(DataAndLinks):
    name = "grid, data and channel"
    covers = ("create_groups: channel", "create_groups: data")


class DataAndSpatial(DataAndLinks):
    name = "grid, data and spatial"
    covers = ("create_groups: spatial",)
    strategy = "spatial"
    agrees_on = frozenset({"random"})
    kinds = ("images",)


class DataAndStage(Grid, Pipelined):
    name = "grid, data and stages"
    lacks = {**NEEDS, **Grid.lacks}
    covers = ("create_groups: stage",)

    def wrap(self, comm, model, optimizer, example, row):
        groups = create_groups(comm, stage=2)
        part = example[: len(example) // 2]
        options = {"micro_batches": self.parts, **told(row)}
        model = Pipeline(model, groups.stage, part, **options)
        shard = {"shard": self.shard}
        optimizer = create_multi_node_optimizer(optimizer, groups.data, **shard)
        return model, model.model, optimizer.setup(model)


class StatesAndChannel(DataAndChannel):
    name = "grid, sharded states and channel"
    covers = ()
    shard = "states"


class ParametersAndStage(DataAndStage):
    name = "grid, sharded parameters and stages"
    covers = ()
    shard = "parameters"


COLUMNS = [
    *(DataAndChannel(), DataAndSpatial(), DataAndStage()),
    *(StatesAndChannel(), ParametersAndStage()),
]
