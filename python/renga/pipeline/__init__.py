"""Pipeline parallelism: the layers of a model on several ranks.

:class:`Pipeline` cuts a model into stages and :class:`PipelineUpdater` trains it.
"""

from renga.parallel.pipeline.partition import Partition
from renga.parallel.pipeline.pipeline import Pipeline
from renga.parallel.pipeline.updater import PipelineUpdater

__all__ = ["Partition", "Pipeline", "PipelineUpdater"]
