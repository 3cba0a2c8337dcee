"""``GenericMultiNodeEvaluator`` of ``chainermn.extensions.multi_node_evaluator``."""

from renga.distributed.extensions.generic_multi_node_evaluator import (
    GenericMultiNodeEvaluator,
)

__all__ = ["GenericMultiNodeEvaluator"]
