"""The ways to run on ranks, by package."""

from tests.combinations.columns import (
    asynchronous,
    grids,
    multi_node,
    parallelized,
    pipelines,
)

PACKAGES = (multi_node, asynchronous, parallelized, pipelines, grids)
COLUMNS = [column for package in PACKAGES for column in package.COLUMNS]
