"""Pipeline parallelism: the layers of a model on several ranks.

:class:`Pipeline` cuts a model into stages and :class:`PipelineUpdater` trains it. The
schedules are in ``schedule.py``, the treatment of weights that change while a batch is
on its way in ``weights.py``, and how an unchanged model runs on several ranks in
``stage_run.py``.
"""

from renga.pipeline.partition import Partition
from renga.pipeline.pipeline import Pipeline
from renga.pipeline.updater import PipelineUpdater

__all__ = ["Partition", "Pipeline", "PipelineUpdater"]
