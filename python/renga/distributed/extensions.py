"""Extensions for training on several ranks."""

from renga.extensions.multi_node_evaluator import create_multi_node_evaluator

__all__ = ["create_multi_node_evaluator"]
