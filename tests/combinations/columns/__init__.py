"""The ways to run on ranks, by package."""

from tests.combinations.columns import (
    asynchronous,
    grids,
    multi_node,
    parallelized,
    pipelines,
    restarted,
)

PACKAGES = (multi_node, asynchronous, parallelized, pipelines, grids, restarted)
COLUMNS = [column for package in PACKAGES for column in package.COLUMNS]
