"""Extensions for several ranks, with ChainerMN's names."""

from renga.parallel.data.extensions import (
    allreduce_persistent as allreduce_persistent,
    checkpoint as checkpoint,
    multi_node_early_stopping_trigger as multi_node_early_stopping_trigger,
    multi_node_evaluator as multi_node_evaluator,
    observation_aggregator as observation_aggregator,
)
from renga.parallel.data.extensions.allreduce_persistent import (
    AllreducePersistent as AllreducePersistent,
)
from renga.parallel.data.extensions.checkpoint import (
    create_multi_node_checkpointer as create_multi_node_checkpointer,
)
from renga.parallel.data.extensions.generic_multi_node_evaluator import (
    GenericMultiNodeEvaluator as GenericMultiNodeEvaluator,
)
from renga.parallel.data.extensions.multi_node_early_stopping_trigger import (
    MultiNodeEarlyStoppingTrigger as MultiNodeEarlyStoppingTrigger,
)
from renga.parallel.data.extensions.multi_node_evaluator import (
    create_multi_node_evaluator as create_multi_node_evaluator,
)
from renga.parallel.data.extensions.multi_node_snapshot import (
    multi_node_snapshot as multi_node_snapshot,
)
from renga.parallel.data.extensions.observation_aggregator import (
    ObservationAggregator as ObservationAggregator,
)
