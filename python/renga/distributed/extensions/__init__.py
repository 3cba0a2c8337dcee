"""Extensions for several ranks, with ChainerMN's names."""

from renga.parallel.data.extensions import (
    allreduce_persistent,
    checkpoint,
    multi_node_early_stopping_trigger,
    multi_node_evaluator,
    observation_aggregator,
)
from renga.parallel.data.extensions.allreduce_persistent import AllreducePersistent
from renga.parallel.data.extensions.checkpoint import create_multi_node_checkpointer
from renga.parallel.data.extensions.generic_multi_node_evaluator import (
    GenericMultiNodeEvaluator,
)
from renga.parallel.data.extensions.multi_node_early_stopping_trigger import (
    MultiNodeEarlyStoppingTrigger,
)
from renga.parallel.data.extensions.multi_node_evaluator import (
    create_multi_node_evaluator,
)
from renga.parallel.data.extensions.multi_node_snapshot import multi_node_snapshot
from renga.parallel.data.extensions.observation_aggregator import ObservationAggregator

__all__ = [
    "AllreducePersistent",
    "GenericMultiNodeEvaluator",
    "MultiNodeEarlyStoppingTrigger",
    "ObservationAggregator",
    "allreduce_persistent",
    "checkpoint",
    "create_multi_node_checkpointer",
    "create_multi_node_evaluator",
    "multi_node_early_stopping_trigger",
    "multi_node_evaluator",
    "multi_node_snapshot",
    "observation_aggregator",
]
